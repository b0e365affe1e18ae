"""Range coalescing: from the byte ranges that are wanted to the requests that are worth making, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lancelet.errors import Corrupt, InvalidInput
from lancelet.storage.store import Range

__all__ = ["ReadPlan", "check_ranges", "coalesce", "end_of", "past_end", "slice_back"]

#: Offsets are 64-bit numbers with a sign, in every file system and object store.
_FARTHEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Which requests to make, and in which pieces of their answers each wanted range lies.

    ``requests`` are sorted, disjoint and not empty. ``pieces[i]`` lists ``(request, offset, length)`` for the
    ``i``-th wanted range: one piece mostly, several where it is longer than a request may be, none where it is empty.
    """

    requests: tuple[Range, ...]
    pieces: tuple[tuple[tuple[int, int, int], ...], ...]

    @property
    def total_bytes(self) -> int:
        """Bytes that the requests will bring, gaps included."""
        return sum(length for _, length in self.requests)


def coalesce(ranges: Sequence[Range], *, gap: int, largest: int) -> ReadPlan:
    """Join ranges that are at most ``gap`` bytes apart into requests of at most ``largest`` bytes.

    A range longer than ``largest`` is split into equal requests, to be fetched side by side; no other range is ever
    split, save where ranges overlap so much that together they are longer than ``largest``. No byte is asked twice.

    >>> coalesce([(100, 10), (0, 10), (15, 5)], gap=8, largest=1000)
    ReadPlan(requests=((0, 20), (100, 10)), pieces=(((1, 0, 10),), ((0, 0, 10),), ((0, 15, 5),)))
    """
    if gap < 0 or largest < 1:
        raise InvalidInput(f"coalescing with gap={gap} and largest={largest}, expected at least 0 and 1")
    check_ranges(ranges)
    starts, lengths = np.array(ranges, np.int64).reshape(-1, 2).T
    wanted = np.flatnonzero(lengths)
    order = wanted[np.argsort(starts[wanted], kind="stable")]
    if not len(order):
        return ReadPlan((), ((),) * len(ranges))
    # Ranges that share bytes form a group; ``reach`` is how far the ranges so far extend.
    reach = np.maximum.accumulate((starts + lengths)[order])
    opens = np.concatenate(([True], starts[order][1:] >= reach[:-1]))
    groups = np.flatnonzero(opens)
    begins = starts[order][groups].tolist()
    ends = reach[np.concatenate((groups[1:], [len(order)])) - 1].tolist()
    requests, first = _requests(begins, ends, gap, largest)
    number = np.array(first)[np.cumsum(opens) - 1]
    offsets = starts[order] - np.array([start for start, _ in requests])[number]
    pieces: list[tuple[tuple[int, int, int], ...]] = [()] * len(ranges)
    for index, *piece in zip(order.tolist(), number.tolist(), offsets.tolist(), lengths[order].tolist(), strict=True):
        at, offset, length = piece
        whole = offset + length <= requests[at][1]
        pieces[index] = ((at, offset, length),) if whole else tuple(_cut(requests, at, offset, length))
    return ReadPlan(tuple(requests), tuple(pieces))


def slice_back(plan: ReadPlan, answers: Sequence[memoryview]) -> list[memoryview]:
    """The wanted ranges, cut from the answers to the plan's requests; copied only where a range was split.

    >>> plan = coalesce([(4, 2), (0, 3)], gap=4, largest=64)
    >>> [bytes(view) for view in slice_back(plan, [memoryview(b"abcdef")])]
    [b'ef', b'abc']
    """
    return [_assemble(parts, answers) for parts in plan.pieces]


def check_ranges(ranges: Sequence[Range], *, uri: str | None = None) -> None:
    """InvalidInput where a range starts or extends below zero, Corrupt where no object can reach its end."""
    for start, length in ranges:
        if start < 0 or length < 0:
            raise InvalidInput(f"byte range ({start}, {length}) is negative", uri=uri)
        if start + length > _FARTHEST:
            text = f"the byte range ends at {start + length}, expected at most {_FARTHEST}: its source is damaged"
            raise Corrupt(text, uri=uri, byte_range=(start, length))


def end_of(piece: Range) -> int:
    """The first byte after a range."""
    return piece[0] + piece[1]


def past_end(piece: Range, size: int, *, uri: str) -> Corrupt:
    """The error for a range that an object of ``size`` bytes does not hold."""
    start, length = piece
    return Corrupt(
        f"the object has {size} bytes, expected at least {start + length}: it is cut short or not the one meant",
        uri=uri,
        byte_range=(start, length),
    )


def _requests(begins: Sequence[int], ends: Sequence[int], gap: int, largest: int) -> tuple[list[Range], list[int]]:
    """The requests for sorted, disjoint groups, and at which request each group begins."""
    requests: list[Range] = []
    first: list[int] = []
    at = length = 0
    for begin, end in zip(begins, ends, strict=True):
        if length and begin - at - length <= gap and end - at <= largest:
            length = end - at
            requests[-1] = (at, length)
            first.append(len(requests) - 1)
            continue
        first.append(len(requests))
        at, length = begin, end - begin
        if length <= largest:
            requests.append((at, length))
            continue
        # Equal shares, so that those fetched side by side end together.
        share = -(-(end - begin) // -(-(end - begin) // largest))
        requests.extend((start, min(share, end - start)) for start in range(begin, end, share))
        at, length = requests[-1]
    return requests, first


def _cut(requests: Sequence[Range], number: int, offset: int, length: int) -> Iterator[tuple[int, int, int]]:
    """Where a range lies that begins ``offset`` bytes after the start of a request and reaches into later ones."""
    while length:
        size = requests[number][1]
        if offset < size:
            taken = min(length, size - offset)
            yield number, offset, taken
            offset, length = offset + taken, length - taken
        number, offset = number + 1, offset - size


def _assemble(parts: tuple[tuple[int, int, int], ...], answers: Sequence[memoryview]) -> memoryview:
    views = [answers[number][offset : offset + length] for number, offset, length in parts]
    if len(views) == 1:
        return views[0]
    whole = bytearray(sum(length for _, _, length in parts))
    at = 0
    for view, (_, _, length) in zip(views, parts, strict=True):
        whole[at : at + length] = view
        at += length
    return memoryview(whole).toreadonly()
