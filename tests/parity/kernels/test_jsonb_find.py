"""Values at paths of JSONB: every variant finds what Python finds in the same document, and refuses the same."""

from __future__ import annotations

import json
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from lancelet.errors import LanceletError
from lancelet.kernels.reference import jsonb as text
from lancelet.kernels.reference import jsonb_encode
from lancelet.kernels.reference import jsonb_find as twin

NAMES = ("a", "b", "ab", "", "é", "0", "1", "long name of a field")


def value(draw: Random, depth: int = 0) -> object:
    choice = draw.randrange(4 if depth > 3 else 7)
    if choice > 4:
        return {draw.choice(NAMES): value(draw, depth + 1) for _ in range(draw.randrange(6))}
    if choice > 3:
        return [value(draw, depth + 1) for _ in range(draw.randrange(4))]
    return (None, draw.random() < 0.5, draw.choice(("", "x", "é" * 9)), draw.choice((0, 7, -300, 2**63, 1.5)))[choice]


def stored(values: list[object]) -> tuple[np.ndarray, np.ndarray]:
    texts = [json.dumps(item, ensure_ascii=False).encode() for item in values]
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return jsonb_encode.encode(offsets, np.frombuffer(b"".join(texts), np.uint8), np.ones(len(texts), np.uint8))


def path_of(steps: list[tuple[str | None, int]]) -> tuple[np.ndarray, ...]:
    names = [(name or "").encode() for name, _ in steps]
    return (
        np.frombuffer(b"".join(names), np.uint8),
        np.cumsum([len(name) for name in names], dtype=np.int64),
        np.array([name is not None for name, _ in steps], np.uint8),
        np.array([number for _, number in steps], np.int64),
    )


def reached(item: object, steps: list[tuple[str | None, int]]) -> tuple[bool, object]:
    for name, number in steps:
        if isinstance(item, dict) and name is not None and name in item:
            item = item[name]
        elif isinstance(item, list) and 0 <= number < len(item):
            item = item[number]
        else:
            return False, None
    return True, item


@pytest.mark.parametrize("seed", range(8))
def test_the_value_at_a_path_is_what_python_finds(modules, seed: int) -> None:
    draw = Random(seed)
    values = [value(draw) for _ in range(60)]
    offsets, data = stored(values)
    valid = np.array([draw.random() < 0.9 for _ in values], np.uint8)
    for _ in range(12):
        steps = [
            draw.choice([(draw.choice(NAMES), -1), (None, draw.randrange(3)), ("0", 0), ("1", 1)])
            for _ in range(draw.randrange(4))
        ]
        found = modules["jsonb_find"].find(offsets, data, valid, *path_of(steps))
        for one, other in zip(found, twin.find(offsets, data, valid, *path_of(steps)), strict=True):
            assert one.dtype == other.dtype
            assert one.tolist() == other.tolist()
        kinds, starts, sizes = (item.tolist() for item in found)
        for row, item in enumerate(values):
            there, wanted = reached(item, steps)
            assert (kinds[row] >= 0) == bool(there and valid[row])
            if kinds[row] == 1:
                assert data[starts[row] : starts[row] + sizes[row]].tobytes().decode() == wanted
            elif kinds[row] == 5:
                inside = data[starts[row] : starts[row] + sizes[row]]
                shown = text.decode(np.array([0, len(inside)]), inside, np.ones(1, np.uint8))[1].tobytes()
                assert json.loads(shown) == wanted
            elif kinds[row] != 2 and kinds[row] >= 0:
                assert {0: None, 3: False, 4: True}[kinds[row]] is wanted


@pytest.mark.parametrize("seed", range(20))
def test_damaged_documents_are_refused_alike(modules, seed: int) -> None:
    draw = Random(seed)
    offsets, data = stored([value(draw) for _ in range(8)])
    data = data.copy()
    for _ in range(40):
        damaged = data.copy()
        for _ in range(draw.randrange(1, 4)):
            if len(damaged):
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        path = path_of([(draw.choice(NAMES), draw.randrange(-1, 2)) for _ in range(draw.randrange(1, 4))])
        for start, end in pairwise(offsets.tolist()):
            row = np.array([start, end]), damaged, np.ones(1, np.uint8)
            assert outcome(modules["jsonb_find"].find, row, path) == outcome(twin.find, row, path)


def outcome(find, row, path) -> object:
    try:
        return [found.tolist() for found in find(*row, *path)]
    except LanceletError as error:
        return type(error), str(error)
