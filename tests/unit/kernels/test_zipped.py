"""Full-zip pages: items written one by one in plain Python are read, and written again byte for byte."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancelet.errors import Corrupt, InvalidInput, LanceletError
from lancelet.kernels import load, variants

VARIANTS = variants()


@pytest.fixture(params=VARIANTS, scope="module")
def zipped(request: pytest.FixtureRequest) -> ModuleType:
    return load(request.param)["zipped"]


@pytest.fixture(params=VARIANTS, scope="module")
def zipping(request: pytest.FixtureRequest) -> ModuleType:
    return load(request.param)["zipping"]


@st.composite
def pages(draw: st.DrawFn) -> dict[str, Any]:
    bits_rep, bits_def = draw(st.sampled_from([(0, 0), (0, 1), (1, 0), (1, 2), (2, 8), (9, 9)]))
    max_visible = draw(st.integers(0, (1 << bits_def) - 1))
    levels = st.tuples(st.integers(0, (1 << bits_rep) - 1), st.integers(0, min(7, (1 << bits_def) - 1)))
    return {
        "bits_rep": bits_rep,
        "bits_def": bits_def,
        "max_visible": max_visible,
        "levels": draw(st.lists(levels, max_size=12)),
    }


def written(page: dict[str, Any], values: list[bytes], width: int) -> tuple[bytes, list[int]]:
    """The model; width is that of lengths, or 0 for values of fixed width."""
    control = {0: 0, 1: 1, 2: 1, 3: 1, 10: 2, 18: 4}[page["bits_rep"] + page["bits_def"]]
    result, rows, rest = b"", [], iter(values)
    for rep, definition in page["levels"]:
        if page["bits_rep"] == 0 or rep == 1:
            rows.append(len(result))
        result += (rep << page["bits_def"] | definition).to_bytes(control, "little")
        if definition <= page["max_visible"]:
            value = next(rest)
            if width == 0:
                result += value
            elif definition == 0:
                result += len(value).to_bytes(width, "little") + value
    return result, [*rows, len(result)]


def arrays_of(page: dict[str, Any]) -> tuple[Any, Any, int]:
    rep = np.array([r for r, _ in page["levels"]], np.uint16) if page["bits_rep"] else None
    definition = np.array([d for _, d in page["levels"]], np.uint16) if page["bits_def"] else None
    return rep, definition, sum(d <= page["max_visible"] for _, d in page["levels"])


def same(found: Any, expected: Any) -> bool:
    return (found is None and expected is None) or found.tolist() == expected.tolist()


@given(page=pages(), value_bytes=st.sampled_from([1, 3, 8]))
def test_fixed_width_items_are_read_and_written_as_the_model_does(page: dict[str, Any], value_bytes: int) -> None:
    rep, definition, visible = arrays_of(page)
    values = [bytes([i] * value_bytes) for i in range(visible)]
    data, rows = written(page, values, 0)
    kinds = {key: page[key] for key in ("bits_rep", "bits_def", "max_visible")}
    for variant in VARIANTS:
        kernel = load(variant)["zipped"]
        found = kernel.unzip_fixed(np.frombuffer(data, np.uint8), **kinds, value_bytes=value_bytes)
        assert same(found[0], rep)
        assert same(found[1], definition)
        assert found[2].tobytes() == b"".join(values)
        again, starts = load(variant)["zipping"].zip_fixed(
            rep, definition, found[2], **kinds, max_rep=1, value_bytes=value_bytes
        )
        assert again.tobytes() == data
        assert starts.tolist() == rows


@pytest.mark.parametrize("length_bits", [32, 64])
@pytest.mark.parametrize("offset_bits", [32, 64])
@given(page=pages(), lengths=st.lists(st.integers(0, 20), min_size=12, max_size=12))
def test_variable_width_items_are_read_and_written_as_the_model_does(
    length_bits: int, offset_bits: int, page: dict[str, Any], lengths: list[int]
) -> None:
    rep, definition, visible = arrays_of(page)
    shown = [d for _, d in page["levels"] if d <= page["max_visible"]]
    values = [bytes([i] * lengths[i]) if shown[i] == 0 else b"" for i in range(visible)]
    data, rows = written(page, values, length_bits // 8)
    kinds = {key: page[key] for key in ("bits_rep", "bits_def", "max_visible")} | {"length_bits": length_bits}
    for variant in VARIANTS:
        kernel = load(variant)["zipped"]
        found = kernel.unzip_variable(np.frombuffer(data, np.uint8), **kinds, offset_bits=offset_bits)
        assert same(found[0], rep)
        assert same(found[1], definition)
        assert found[2].itemsize * 8 == offset_bits
        assert found[2].tolist() == np.cumsum([0, *map(len, values)]).tolist()
        assert found[3].tobytes() == b"".join(values)
        again, starts = load(variant)["zipping"].zip_variable(rep, definition, found[2], found[3], **kinds, max_rep=1)
        assert again.tobytes() == data
        assert starts.tolist() == rows


@settings(max_examples=300)
@given(
    data=st.binary(max_size=40),
    bits=st.sampled_from([(0, 0), (0, 1), (1, 2), (4, 6), (12, 9)]),
    max_visible=st.integers(0, 3),
    value_bytes=st.integers(0, 9),
    length_bits=st.sampled_from([32, 64]),
)
def test_any_bytes_are_read_or_refused_alike(
    data: bytes, bits: tuple[int, int], max_visible: int, value_bytes: int, length_bits: int
) -> None:
    page = np.frombuffer(data, np.uint8)
    kinds = {"bits_rep": bits[0], "bits_def": bits[1], "max_visible": max_visible}
    seen: dict[str, set[str]] = {"fixed": set(), "variable": set()}
    for variant in VARIANTS:
        kernel = load(variant)["zipped"]
        calls = {
            "fixed": lambda k=kernel: k.unzip_fixed(page, **kinds, value_bytes=value_bytes),
            "variable": lambda k=kernel: k.unzip_variable(page, **kinds, length_bits=length_bits, offset_bits=32),
        }
        for name, call in calls.items():
            try:
                seen[name].add(str([None if part is None else part.tolist() for part in call()]))
            except LanceletError as error:
                seen[name].add(f"{type(error).__name__} {error}")
    assert [len(outcomes) for outcomes in seen.values()] == [1, 1]


@pytest.mark.parametrize(
    ("rep", "definition", "size"),
    [([2], [0], 1), ([0], [4], 1), ([0, 0], [0], 1), ([0], [0], 2), ([0], [0], 0), (None, [0], 1), ([0], None, 1)],
)
def test_levels_that_do_not_fit_are_not_written(zipping: ModuleType, rep: Any, definition: Any, size: int) -> None:
    levels = [None if part is None else np.array(part, np.uint16) for part in (rep, definition)]
    kinds = {"bits_rep": 1, "bits_def": 2, "max_rep": 1, "max_visible": 1}
    offsets = np.zeros(size + 1, np.int64)
    with pytest.raises(InvalidInput):
        zipping.zip_fixed(*levels, np.zeros(size, np.uint8), **kinds, value_bytes=1)
    with pytest.raises(InvalidInput):
        zipping.zip_variable(*levels, offsets, np.zeros(9, np.uint8), **kinds, length_bits=32)


@pytest.mark.parametrize("offsets", [[0, 5], [-1, 2], [2, 1]])
def test_values_outside_of_their_bytes_are_not_written(zipping: ModuleType, offsets: list[int]) -> None:
    kinds = {"bits_rep": 0, "bits_def": 0, "max_rep": 0, "max_visible": 0, "length_bits": 32}
    with pytest.raises(InvalidInput, match="offsets"):
        zipping.zip_variable(None, None, np.array(offsets), np.zeros(4, np.uint8), **kinds)


def test_items_without_any_bytes_are_corrupt(zipped: ModuleType) -> None:
    with pytest.raises(Corrupt):
        zipped.unzip_fixed(np.zeros(4, np.uint8), bits_rep=0, bits_def=0, max_visible=0, value_bytes=0)
