"""Gathering of byte ranges, rows and variable-width chunks: every variant gives what plain Python gives."""

from __future__ import annotations

from collections.abc import Callable
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
def gather(request: pytest.FixtureRequest) -> ModuleType:
    return load(request.param)["gather"]


@pytest.fixture(params=VARIANTS, scope="module")
def variable(request: pytest.FixtureRequest) -> ModuleType:
    return load(request.param)["variable"]


def outcome(call: Callable[[], Any]) -> str:
    """What a call gives, or the error it raises, as text that can be compared."""
    try:
        return repr([np.asarray(part).tolist() for part in call()])
    except LanceletError as error:
        return f"{type(error).__name__}: {error}"


def i64(*values: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


values_lists = st.lists(st.binary(max_size=24), max_size=20)


def packed(values: list[bytes], dtype: type) -> tuple[Any, Any]:
    offsets = np.cumsum([0, *map(len, values)]).astype(dtype)
    return offsets, np.frombuffer(b"".join(values), np.uint8)


def unpacked(offsets: Any, data: Any) -> list[bytes]:
    return [data[a:b].tobytes() for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


@settings(max_examples=200)
@given(pieces=st.lists(st.tuples(st.integers(-2, 40), st.integers(-2, 40)), max_size=6), room=st.integers(0, 60))
def test_pieces_are_copied_or_refused_alike(pieces: list[tuple[int, int]], room: int) -> None:
    data = np.arange(40, dtype=np.uint8)
    starts, sizes = i64(*(p[0] for p in pieces)), i64(*(p[1] for p in pieces))
    if all(s >= 0 for s in sizes) and room % 2:
        room = int(sizes.sum())
    seen = set()
    for variant in VARIANTS:
        out = np.zeros(room, np.uint8)
        seen.add(outcome(lambda v=variant, o=out: [load(v)["gather"].copy_pieces(data, starts, sizes, o), o]))
    assert len(seen) == 1


@pytest.mark.parametrize("item_size", [1, 2, 3, 4, 8, 12, 16, 100])
def test_fixed_rows_are_taken_in_the_order_asked_for(gather: ModuleType, item_size: int) -> None:
    rows = np.random.default_rng(1).integers(0, 256, (50, item_size)).astype(np.uint8)
    indices = np.random.default_rng(2).integers(0, 50, 70)
    out = np.empty((70, item_size), np.uint8)
    gather.take_fixed(rows.reshape(-1), item_size, indices, out.reshape(-1))
    assert (out == rows[indices]).all()


@pytest.mark.parametrize("index", [-1, 3, 2**62])
def test_a_row_that_does_not_exist_is_refused(gather: ModuleType, index: int) -> None:
    with pytest.raises(InvalidInput, match=f"lookup 1 asks for value {index}, expected 0 to 2"):
        gather.take_fixed(np.zeros(7, np.uint8), 2, i64(0, index), np.zeros(4, np.uint8))
    with pytest.raises(InvalidInput, match=f"lookup 1 asks for value {index}, expected 0 to 2"):
        gather.take_variable(i64(0, 1, 1, 2), np.zeros(2, np.uint8), i64(0, index))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@given(values=values_lists, data=st.data())
def test_variable_rows_are_taken_in_the_order_asked_for(dtype: type, values: list[bytes], data: st.DataObject) -> None:
    indices = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20)) if values else []
    for variant in VARIANTS:
        offsets, taken = load(variant)["gather"].take_variable(*packed(values, dtype), i64(*indices))
        assert offsets.dtype == dtype
        assert unpacked(offsets, taken) == [values[i] for i in indices]


@pytest.mark.parametrize("offsets", [[0, 3, 2], [-1, 1, 2], [0, 1, 9]])
def test_offsets_outside_of_the_bytes_are_refused(gather: ModuleType, offsets: list[int]) -> None:
    with pytest.raises(InvalidInput, match="has offsets"):
        gather.take_variable(i64(*offsets), np.zeros(4, np.uint8), i64(0, 1))


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@given(values=values_lists, data=st.data())
def test_chunks_of_variable_values_come_back(bits: int, dtype: type, values: list[bytes], data: st.DataObject) -> None:
    cuts = data.draw(st.sets(st.integers(0, len(values)), max_size=4))
    bounds = i64(*sorted({0, len(values)} | cuts))
    lookups = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=9)) if values else []
    chunk_of = np.searchsorted(bounds, i64(*lookups), side="right") - 1
    buffers = set()
    for variant in VARIANTS:
        kernel = load(variant)["variable"]
        buffer, starts, sizes = kernel.split_variable(*packed(values, dtype), bounds, bits)
        counts = np.diff(bounds)
        lengths = kernel.variable_sizes(buffer, starts, sizes, counts, bits)
        offsets, out = np.empty(len(values) + 1, dtype), np.empty(int(lengths.sum()), np.uint8)
        kernel.variable_chunks(buffer, starts, sizes, counts, bits, offsets, out)
        assert unpacked(offsets, out) == values
        taken = kernel.variable_at(
            buffer, starts, sizes, counts, bits, chunk_of.astype(np.int64), i64(*lookups) - bounds[chunk_of]
        )
        assert unpacked(*taken) == [values[i] for i in lookups]
        buffers.add(buffer.tobytes())
        assert (sizes % (bits // 8) == 0).all()
    assert len(buffers) == 1


@settings(max_examples=300)
@given(
    bits=st.sampled_from([32, 64]),
    at=st.integers(0, 47),
    byte=st.sampled_from([0, 1, 11, 12, 13, 16, 17, 24, 40, 127, 255]),
    start=st.integers(-1, 50),
    size=st.integers(-1, 50),
    count=st.integers(-1, 6),
)
def test_damaged_chunks_are_read_or_refused_alike(
    bits: int, at: int, byte: int, start: int, size: int, count: int
) -> None:
    good = load("reference")["variable"].split_variable(i64(0, 2, 5), np.arange(5, dtype=np.uint8), i64(0, 2), bits)[0]
    data = np.concatenate([good, np.zeros(48, np.uint8)])[:48]
    data[at] = byte
    places = i64(start), i64(size), i64(count)
    whole, single = set(), set()
    for variant in VARIANTS:
        kernel = load(variant)["variable"]

        def read(kernel: ModuleType = kernel) -> list[Any]:
            lengths = kernel.variable_sizes(data, *places, bits)
            offsets, out = np.zeros(count + 1, np.int32), np.zeros(int(lengths.sum()), np.uint8)
            kernel.variable_chunks(data, *places, bits, offsets, out)
            return [offsets, out]

        whole.add(outcome(read))
        single.add(outcome(lambda k=kernel: k.variable_at(data, *places, bits, i64(0, 0), i64(0, 1))))
    assert len(whole) == 1
    assert len(single) == 1


def test_outputs_of_another_size_are_refused(variable: ModuleType) -> None:
    data, starts, sizes = variable.split_variable(i64(0, 2, 5), np.arange(5, dtype=np.uint8), i64(0, 2), 32)
    for offsets, out in [(3, 4), (2, 5), (4, 5)]:
        with pytest.raises(Corrupt, match="expected"):
            variable.variable_chunks(
                data, starts, sizes, i64(2), 32, np.empty(offsets, np.int32), np.empty(out, np.uint8)
            )


@pytest.mark.parametrize("bounds", [[0, 3], [1, 0], [-1, 2]])
def test_bounds_outside_of_the_values_are_refused(variable: ModuleType, bounds: list[int]) -> None:
    with pytest.raises(InvalidInput, match="bounds"):
        variable.split_variable(i64(0, 2, 5), np.arange(5, dtype=np.uint8), i64(*bounds), 32)


def test_widths_that_the_format_does_not_have_are_refused(variable: ModuleType) -> None:
    with pytest.raises(Corrupt, match="16 bits wide"):
        variable.variable_sizes(np.zeros(8, np.uint8), i64(0), i64(8), i64(1), 16)
