"""Mini-block chunk words, headers and assembly: what is written is read back, and damage is refused alike."""

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
def miniblock(request: pytest.FixtureRequest) -> ModuleType:
    return load(request.param)["miniblock"]


def i64(*values: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def pieces(parts: list[bytes]) -> tuple[Any, Any, Any]:
    sizes = i64(*map(len, parts))
    return np.frombuffer(b"".join(parts), np.uint8), np.cumsum(sizes) - sizes, sizes


@pytest.mark.parametrize("large", [False, True])
@given(data=st.data(), has_rep=st.booleans(), has_def=st.booleans(), num_buffers=st.integers(0, 3))
def test_what_is_assembled_is_read_back(
    large: bool, data: st.DataObject, has_rep: bool, has_def: bool, num_buffers: int
) -> None:
    chunks = data.draw(st.integers(1, 5))
    buffers = [
        data.draw(st.lists(st.binary(max_size=20), min_size=chunks, max_size=chunks))
        for _ in range(has_rep + has_def + num_buffers)
    ]
    logs = np.array([*data.draw(st.lists(st.integers(0, 12), min_size=chunks - 1, max_size=chunks - 1)), 0], np.uint8)
    rest = data.draw(st.integers(1, 4096))
    num_items = int((1 << logs[:-1].astype(np.int64)).sum()) + rest
    num_levels = i64(*data.draw(st.lists(st.integers(0, 65535), min_size=chunks, max_size=chunks)))
    written = set()
    for variant in VARIANTS:
        kernel = load(variant)["miniblock"]
        levels = has_rep + has_def
        words, page = kernel.assemble(
            [pieces(b) for b in buffers[:levels]], [pieces(b) for b in buffers[levels:]], num_levels, logs, large
        )
        written.add((words.tobytes(), page.tobytes()))
        starts, sizes, counts = kernel.chunk_table(words, large, num_items, len(page))
        assert counts.tolist() == [*(1 << logs[:-1].astype(np.int64)).tolist(), rest]
        found = kernel.chunk_headers(page, starts, sizes, has_rep, has_def, num_buffers, large)
        assert found[0].tolist() == num_levels.tolist()
        assert (found[1] % 8 == 0).all()
        for k, parts in enumerate(buffers):
            for i, part in enumerate(parts):
                assert page[found[1][i, k] : found[1][i, k] + found[2][i, k]].tobytes() == part
    assert len(written) == 1


def test_chunks_are_laid_out_as_in_files_of_the_reference_implementation(miniblock: ModuleType) -> None:
    words, page = miniblock.assemble([], [pieces([bytes(1288)] * 2)], i64(0, 0), np.array([10, 0], np.uint8), True)
    assert page[:8].tobytes().hex() == "000008050000fefe"
    assert words.tobytes().hex() == "1a0a0000100a0000"
    _, page = miniblock.assemble([pieces([bytes(5)])], [pieces([b"ab"])], i64(3), np.array([0], np.uint8), False)
    assert page.tobytes().hex() == "030005000200fefe" + "00" * 5 + "fe" * 3 + "6162" + "fe" * 6


def test_a_page_without_values_has_no_chunks(miniblock: ModuleType) -> None:
    empty = np.empty(0, np.uint8)
    assert [len(part) for part in miniblock.chunk_table(empty, True, 0, 0)] == [0, 0, 0]
    assert miniblock.chunk_headers(empty, i64(), i64(), True, True, 1, True)[1].shape == (0, 3)
    assert [len(part) for part in miniblock.assemble([], [pieces([])], i64(), empty, True)] == [0, 0]


@pytest.mark.parametrize(
    ("words", "large", "num_items", "data_size"),
    [
        pytest.param("1a00", False, 1025, 16, id="more values than the last chunk says"),
        pytest.param("1a001000", False, 1024, 32, id="none left for the last chunk"),
        pytest.param("1a001000", False, 500, 32, id="fewer values than the first chunk has"),
        pytest.param("1a001000", False, 2**60, 32, id="more values than a chunk can hold"),
        pytest.param("1000", False, 10, 24, id="chunks smaller than the buffer"),
        pytest.param("1000", False, 10, 8, id="chunks larger than the buffer"),
        pytest.param("100000", False, 10, 16, id="half a word"),
        pytest.param("1000", True, 10, 16, id="half a large word"),
        pytest.param("", False, 10, 0, id="values without chunks"),
        pytest.param("1000", False, 0, 16, id="chunks without values"),
        pytest.param("1000", False, -1, 16, id="a negative number of values"),
    ],
)
def test_chunk_words_that_do_not_add_up_are_corrupt(
    miniblock: ModuleType, words: str, large: bool, num_items: int, data_size: int
) -> None:
    with pytest.raises(Corrupt):
        miniblock.chunk_table(np.frombuffer(bytes.fromhex(words), np.uint8), large, num_items, data_size)


@settings(max_examples=300)
@given(
    header=st.binary(min_size=8, max_size=16),
    start=st.integers(-2, 40),
    size=st.integers(-2, 60),
    has_rep=st.booleans(),
    has_def=st.booleans(),
    num_buffers=st.integers(0, 4),
    large=st.booleans(),
)
def test_damaged_headers_are_read_or_refused_alike(
    header: bytes, start: int, size: int, has_rep: bool, has_def: bool, num_buffers: int, large: bool
) -> None:
    data = np.frombuffer(header + bytes(30), np.uint8)
    seen = set()
    for variant in VARIANTS:
        try:
            found = load(variant)["miniblock"].chunk_headers(
                data, i64(start), i64(size), has_rep, has_def, num_buffers, large
            )
        except LanceletError as error:
            seen.add(f"{type(error).__name__} {error}")
        else:
            assert (found[1] + found[2] <= start + size).all()
            seen.add(str([part.tolist() for part in found]))
    assert len(seen) == 1


@pytest.mark.parametrize("num_buffers", [-1, 256, 2**70])
def test_an_absurd_number_of_buffers_is_corrupt(miniblock: ModuleType, num_buffers: int) -> None:
    with pytest.raises(Corrupt, match="value buffers"):
        miniblock.chunk_headers(np.zeros(16, np.uint8), i64(0), i64(16), False, False, num_buffers, False)


@pytest.mark.parametrize(
    ("size", "levels", "log", "large"),
    [(65536, 0, 0, False), (40000, 0, 0, False), (8, 65536, 0, True), (8, 0, 16, True), (8, -1, 0, True)],
)
def test_what_a_chunk_cannot_say_is_not_written(
    miniblock: ModuleType, size: int, levels: int, log: int, large: bool
) -> None:
    with pytest.raises(InvalidInput):
        miniblock.assemble([], [pieces([bytes(size)])], i64(levels), np.array([log], np.uint8), large)


def test_level_buffers_stay_within_16_bits_of_size(miniblock: ModuleType) -> None:
    with pytest.raises(InvalidInput):
        miniblock.assemble([pieces([bytes(65536)])], [pieces([b"a"])], i64(1), np.array([0], np.uint8), True)
