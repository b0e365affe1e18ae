"""Hashes of values, 64 bits each: XXH64, which Bloom filters of files and transactions are made with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import check_some_offsets, range_of_value

__all__ = ["hash_bytes", "hash_words"]

Words = NDArray[np.uint64]

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(number)
    for number in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)


def hash_words(words: Words, hashes: Words) -> None:
    """Hash each word as its eight bytes, lowest first; ``hashes`` holds the seeds before and the hashes after.

    >>> hashes = np.zeros(1, np.uint64)
    >>> hash_words(np.array([1], np.uint64), hashes)
    >>> hex(int(hashes[0]))
    '0x9f29cb17a2a49995'
    """
    refuse.other_length("hashes", len(hashes), len(words))
    found = _with_word(hashes + _P5 + np.uint64(8), words)
    hashes[:] = _mixed(found)


def hash_bytes(offsets: NDArray[np.int32] | NDArray[np.int64], data: NDArray[np.uint8], hashes: Words) -> None:
    """Hash the bytes of each value; ``hashes`` holds the seeds before and the hashes after.

    >>> hashes = np.zeros(2, np.uint64)
    >>> hash_bytes(np.array([0, 0, 3]), np.frombuffer(b"abc", np.uint8), hashes)
    >>> [hex(one) for one in hashes.tolist()]
    ['0xef46db3751d8e999', '0x44bc2cf5ad770999']
    """
    check_some_offsets(offsets)
    refuse.other_length("hashes", len(hashes), len(offsets) - 1)
    if not len(hashes):
        return
    sizes = np.diff(offsets.astype(np.int64))
    wrong = np.flatnonzero((sizes < 0) | (offsets[:-1] < 0) | (offsets[1:] > len(data)))
    if len(wrong):
        at = int(wrong[0])
        raise range_of_value(at, int(offsets[at]), int(offsets[at + 1]), len(data))
    # Values of one length are hashed together; what is read past a value is masked by the lengths below.
    for size in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        held = data[offsets[rows].astype(np.int64)[:, None] + np.arange(size)]
        hashes[rows] = _of_one_size(np.ascontiguousarray(held), size, hashes[rows])


def _of_one_size(held: NDArray[np.uint8], size: int, seeds: Words) -> Words:
    done = size // 32 * 32
    found = _stripes(held[:, :done], seeds) if done else seeds + _P5
    found = found + np.uint64(size)
    while size - done >= 8:
        found = _with_word(found, _word(held, done, "<u8"))
        done += 8
    if size - done >= 4:
        found ^= _word(held, done, "<u4") * _P1
        found = _rotated(found, 23) * _P2 + _P3
        done += 4
    for place in range(done, size):
        found ^= held[:, place].astype(np.uint64) * _P5
        found = _rotated(found, 11) * _P1
    return _mixed(found)


def _stripes(held: NDArray[np.uint8], seeds: Words) -> Words:
    lanes = [seeds + _P1 + _P2, seeds + _P2, seeds.copy(), seeds - _P1]
    for place in range(0, held.shape[1], 8):
        number = place // 8 % 4
        lanes[number] = _round(lanes[number], _word(held, place, "<u8"))
    found = _rotated(lanes[0], 1) + _rotated(lanes[1], 7) + _rotated(lanes[2], 12) + _rotated(lanes[3], 18)
    for lane in lanes:
        found = (found ^ _round(np.zeros_like(lane), lane)) * _P1 + _P4
    return found


def _word(held: NDArray[np.uint8], place: int, kind: str) -> Words:
    size = np.dtype(kind).itemsize
    return np.ascontiguousarray(held[:, place : place + size]).view(kind)[:, 0].astype(np.uint64)


def _with_word(found: Words, words: Words) -> Words:
    mixed: Words = _rotated(found ^ _round(np.zeros_like(words), words), 27) * _P1 + _P4
    return mixed


def _round(lane: Words, words: Words) -> Words:
    mixed: Words = _rotated(lane + words * _P2, 31) * _P1
    return mixed


def _rotated(words: Words, bits: int) -> Words:
    turned: Words = (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))
    return turned


def _mixed(found: Words) -> Words:
    found = (found ^ (found >> np.uint64(33))) * _P2
    found = (found ^ (found >> np.uint64(29))) * _P3
    mixed: Words = found ^ (found >> np.uint64(32))
    return mixed
