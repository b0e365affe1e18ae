"""Packed rows: every variant finds and fills fields as the twin does, and refuses the same."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

import numpy as np
import pytest

from lancelet.errors import Corrupt, InvalidInput
from lancelet.kernels.reference import packed_rows as twin

Modules = Mapping[str, ModuleType]


def rows_of(draw: np.random.Generator, widths: list[int], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with fields of these widths, every fifth of them empty."""
    rows = []
    for row in range(count):
        parts = []
        for width in widths if row % 5 else []:
            size = width if width > 0 else int(draw.integers(0, 9))
            parts.append((size.to_bytes(-width, "little") if width < 0 else b"") + draw.bytes(size))
        rows.append(b"".join(parts))
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]).astype(np.int64)
    return np.frombuffer(b"".join(rows), np.uint8), offsets


@pytest.mark.parametrize("widths", [[1], [-4], [-8, 3], [2, -4, -8, 7], []])
@pytest.mark.parametrize("count", [0, 1, 90])
def test_fields_are_found_where_the_twin_finds_them(modules: Modules, widths: list[int], count: int) -> None:
    draw = np.random.default_rng(count)
    data, offsets = rows_of(draw, widths, count)
    found = modules["packed_rows"].field_places(data, offsets, np.array(widths, np.int64))
    expected = twin.field_places(data, offsets, np.array(widths, np.int64))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape == (len(widths), count)
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_rows_are_refused_alike(modules: Modules, seed: int) -> None:
    draw = np.random.default_rng(seed)
    widths = np.array([2, -4, -8, 7], np.int64)
    data, offsets = rows_of(draw, widths.tolist(), 20)
    data = data.copy()
    data[draw.integers(0, len(data), 3)] = draw.choice([0, 1, 255], 3)
    assert outcome(modules["packed_rows"], data, offsets, widths) == outcome(twin, data, offsets, widths)


def outcome(module: ModuleType, data: np.ndarray, offsets: np.ndarray, widths: np.ndarray) -> str:
    try:
        starts, sizes = module.field_places(data, offsets, widths)
    except (Corrupt, InvalidInput) as error:
        return f"{type(error).__name__}: {error}"
    return f"{starts.tolist()} {sizes.tolist()}"


@pytest.mark.parametrize(
    ("data", "offsets", "widths"),
    [
        (b"", [0, 0], [0]),
        (b"", [0, 0], [-3]),
        (b"ab", [0, 3], [1]),
        (b"ab", [2, 0], [1]),
        (b"ab", [0, 2], []),
        (b"\xff" * 12, [0, 12], [-8]),
        (b"\xff" * 12, [0, 12], [-4]),
    ],
)
def test_what_cannot_be_is_refused_alike(modules: Modules, data: bytes, offsets: list[int], widths: list[int]) -> None:
    arguments = (np.frombuffer(data, np.uint8), np.array(offsets, np.int64), np.array(widths, np.int64))
    assert outcome(modules["packed_rows"], *arguments) == outcome(twin, *arguments)
    assert "expected" in outcome(twin, *arguments) or ": " in outcome(twin, *arguments)


def test_pieces_go_where_they_belong(modules: Modules) -> None:
    draw = np.random.default_rng(0)
    sizes = draw.integers(0, 40, 200)
    starts = np.cumsum(sizes) - sizes
    data = draw.integers(0, 256, int(sizes.sum())).astype(np.uint8)
    order = draw.permutation(200)
    places = np.empty(200, np.int64)
    places[order] = np.cumsum(sizes[order]) - sizes[order]
    out, expected = np.zeros_like(data), np.zeros_like(data)
    modules["packed_rows"].scatter_pieces(data, starts, sizes, out, places)
    twin.scatter_pieces(data, starts, sizes, expected, places)
    np.testing.assert_array_equal(out, expected)
    assert out.any()


@pytest.mark.parametrize(
    ("starts", "sizes", "places"),
    [([0], [4], [0]), ([-1], [1], [0]), ([0], [-1], [0]), ([0], [3], [1]), ([0], [1], [3])],
)
def test_pieces_outside_are_refused_alike(
    modules: Modules, starts: list[int], sizes: list[int], places: list[int]
) -> None:
    messages = set()
    for module in (modules["packed_rows"], twin):
        data, out = np.zeros(3, np.uint8), np.zeros(3, np.uint8)
        with pytest.raises(Corrupt, match=r"is bytes|has a size") as caught:
            module.scatter_pieces(data, np.array(starts), np.array(sizes), out, np.array(places))
        messages.add(str(caught.value))
    assert len(messages) == 1
