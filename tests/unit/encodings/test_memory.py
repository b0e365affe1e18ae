"""Memory for decoded pages: blocks come back only when nobody sees them, and no more are kept than the limit allows."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from lancelet.encodings import memory

MIB = 2**20


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    gc.collect()
    memory.release()
    yield
    memory.release()


def test_a_block_is_used_again_once_its_last_array_is_gone() -> None:
    first = memory.empty(8 * MIB)
    place, view = first.ctypes.data, pa.array(first[5:].view(np.uint8))
    del first
    assert memory.kept_bytes() == 0
    del view
    assert memory.kept_bytes() == 8 * MIB
    assert memory.empty(5 * MIB).ctypes.data == place


@pytest.mark.parametrize("size", [0, 1, MIB - 1, memory.KEPT_BYTES])
def test_small_and_huge_blocks_are_not_kept(size: int) -> None:
    assert len(memory.empty(size)) == size
    assert memory.kept_bytes() == 0


def test_blocks_far_too_large_are_left_for_others() -> None:
    large = memory.empty(16 * MIB)
    place = large.ctypes.data
    del large
    assert memory.empty(4 * MIB).ctypes.data != place


def test_no_more_is_kept_than_the_limit() -> None:
    blocks = [memory.empty(20 * MIB) for _ in range(6)]
    del blocks
    assert 0 < memory.kept_bytes() <= memory.KEPT_BYTES


def test_threads_never_share_a_block() -> None:
    wrong = []

    def work(mark: int) -> None:
        for _ in range(200):
            mine = memory.empty(MIB)
            mine[::4096] = mark
            if (mine[::4096] != mark).any():
                wrong.append(mark)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
