"""Single rows out of chunks: every variant gives what whole chunks give, and refuses damage in the same words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancelet.errors import Corrupt, LanceletError
from lancelet.kernels import load, variants
from lancelet.kernels.reference import bitpack, miniblock

KERNELS = {variant: load(variant)["chunk_rows"] for variant in variants()}


def i64(*values: int) -> Any:
    return np.array(values, dtype=np.int64)


def same_everywhere(call: Callable[[Any], Any]) -> str:
    """What a call on each variant gives, or the error it raises, as text; all must agree."""
    outcomes = set()
    for kernel in KERNELS.values():
        try:
            outcomes.add(repr([np.asarray(part).tolist() for part in call(kernel)]))
        except LanceletError as error:
            outcomes.add(f"{type(error).__name__}: {error}")
    assert len(outcomes) == 1, outcomes
    return outcomes.pop()


def page(counts: list[int], *, large: bool) -> tuple[Any, Any, Any]:
    """A page of chunks with one level and one byte for each value: its bytes, chunk starts and chunk sizes."""
    sizes = i64(*counts)
    starts = np.cumsum(sizes) - sizes
    levels = np.zeros(int(sizes.sum()), np.uint16).view(np.uint8), 2 * starts, 2 * sizes
    values = np.arange(int(sizes.sum())).astype(np.uint8), starts, sizes
    words, data = miniblock.assemble([levels], [values], sizes, np.zeros(len(counts), np.uint8), large)
    lengths = (words.view("<u4" if large else "<u2").astype(np.int64) // 16 + 1) * 8
    return data, np.cumsum(lengths) - lengths, lengths


@pytest.mark.parametrize("large", [False, True])
@settings(max_examples=60)
@given(counts=st.lists(st.integers(1, 40), min_size=1, max_size=6), data=st.data())
def test_rows_are_found_in_their_chunks(large: bool, counts: list[int], data: st.DataObject) -> None:
    stored, starts, sizes = page(counts, large=large)
    first_rows = np.append(0, np.cumsum(counts))
    rows = i64(*data.draw(st.lists(st.integers(0, sum(counts) - 1), max_size=9)))
    for kernel in KERNELS.values():
        found, within, places, lengths = kernel.find(stored, starts, sizes, first_rows, rows, True, 1, large)
        out = np.empty(len(rows), np.uint8)
        kernel.values_at(stored, places[1], lengths[1], 1, np.arange(len(rows)), within, out)
        assert out.tolist() == (rows % 256).tolist()
        assert (found > within).all()
        assert lengths[0].tolist() == (2 * found).tolist()


@settings(max_examples=150)
@given(damage=st.binary(min_size=1, max_size=12), at=st.integers(0, 60), row=st.integers(-2, 14))
def test_damaged_chunks_are_refused_alike(damage: bytes, at: int, row: int) -> None:
    stored, starts, sizes = page([5, 7], large=False)
    stored = stored.copy()
    stored[at : at + len(damage)] = np.frombuffer(damage, np.uint8)[: len(stored) - at]
    same_everywhere(lambda kernel: kernel.find(stored, starts, sizes, i64(0, 5, 12), i64(row), True, 1, False))


@settings(max_examples=200)
@given(
    start=st.integers(-2, 30),
    size=st.integers(-2, 30),
    item_size=st.integers(0, 9),
    block=st.integers(-1, 1),
    index=st.integers(-1, 6),
)
def test_values_outside_their_buffer_are_refused_alike(
    start: int, size: int, item_size: int, block: int, index: int
) -> None:
    data, out = np.arange(24, dtype=np.uint8), np.empty(item_size, np.uint8)
    same_everywhere(
        lambda kernel: (kernel.values_at(data, i64(start), i64(size), item_size, i64(block), i64(index), out), out)
    )


@pytest.mark.parametrize("width", [0, 1, 2, 5, 11, 15, 16])
@pytest.mark.parametrize("count", [1, 63, 1023, 1024, 1025, 2500])
@pytest.mark.parametrize("raw", [False, True])
def test_packed_levels_are_looked_up(width: int, count: int, raw: bool) -> None:
    levels = (np.random.default_rng(count).integers(0, 65536, count) & ((1 << width) - 1)).astype(np.uint16)
    whole = count // 1024 * 1024 if raw else count
    blocks = -(-whole // 1024)
    padded = np.zeros(blocks * 1024, np.uint16)
    padded[:whole] = levels[:whole]
    packed = np.zeros(blocks * 128 * width, np.uint8)
    bitpack.pack_blocks(padded, np.full(blocks, width, np.uint8), packed)
    data = np.concatenate([np.zeros(3, np.uint8), packed, levels[whole:].view(np.uint8)])
    if raw and len(data) - 3 == -(-count // 1024) * 128 * width and count % 1024:
        pytest.skip("both forms have one size here: the tail counts as raw either way")
    many = np.ones(count, np.int64)
    for kernel in KERNELS.values():
        out = np.empty(count, np.uint16)
        kernel.levels_at(data, 3 * many, (len(data) - 3) * many, count * many, width, np.arange(count), out)
        assert out.tolist() == levels.tolist()


@settings(max_examples=200)
@given(
    start=st.integers(-3, 300),
    size=st.integers(-3, 300),
    count=st.integers(0, 3000),
    width=st.integers(-1, 17),
    index=st.integers(-2, 3000),
)
def test_levels_outside_their_buffer_are_refused_alike(
    start: int, size: int, count: int, width: int, index: int
) -> None:
    data, out = np.arange(300).astype(np.uint8), np.empty(1, np.uint16)
    same_everywhere(
        lambda kernel: (kernel.levels_at(data, i64(start), i64(size), i64(count), width, i64(index), out), out)
    )


@pytest.mark.parametrize("rows", [[-1], [12], [3, 99]])
def test_rows_outside_the_page_are_refused(rows: list[int]) -> None:
    stored, starts, sizes = page([5, 7], large=False)
    for kernel in KERNELS.values():
        with pytest.raises(Corrupt, match="asks for value"):
            kernel.find(stored, starts, sizes, i64(0, 5, 12), i64(*rows), True, 1, False)
