"""Range coalescing: from the byte ranges that are wanted to the requests that are worth making, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lancelet.errors import Corrupt, InvalidInput
from lancelet.storage.store import Range

__all__ = ["ReadPlan", "check_ranges", "coalesce", "end_of", "past_end", "slice_back"]


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
    order = sorted((index for index, (_, length) in enumerate(ranges) if length), key=ranges.__getitem__)
    requests: list[Range] = []
    pieces: list[tuple[tuple[int, int, int], ...]] = [()] * len(ranges)
    for members, start, end in _overlapping(ranges, order):
        if end - start > largest:
            first = len(requests)
            size = _even(end - start, largest)
            requests.extend((at, min(size, end - at)) for at in range(start, end, size))
            for index in members:
                pieces[index] = tuple(_cut(ranges[index], requests, first, start, size))
            continue
        if requests and start - end_of(requests[-1]) <= gap and end - requests[-1][0] <= largest:
            requests[-1] = (requests[-1][0], end - requests[-1][0])
        else:
            requests.append((start, end - start))
        base = requests[-1][0]
        for index in members:
            pieces[index] = ((len(requests) - 1, ranges[index][0] - base, ranges[index][1]),)
    return ReadPlan(tuple(requests), tuple(pieces))


def slice_back(plan: ReadPlan, answers: Sequence[memoryview]) -> list[memoryview]:
    """The wanted ranges, cut from the answers to the plan's requests; copied only where a range was split.

    >>> plan = coalesce([(4, 2), (0, 3)], gap=4, largest=64)
    >>> [bytes(view) for view in slice_back(plan, [memoryview(b"abcdef")])]
    [b'ef', b'abc']
    """
    return [_assemble(parts, answers) for parts in plan.pieces]


def check_ranges(ranges: Sequence[Range], *, uri: str | None = None) -> None:
    """InvalidInput where a range starts or extends below zero."""
    for start, length in ranges:
        if start < 0 or length < 0:
            raise InvalidInput(f"byte range ({start}, {length}) is negative", uri=uri)


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


def _overlapping(ranges: Sequence[Range], order: Sequence[int]) -> list[tuple[list[int], int, int]]:
    """Groups of ranges that share bytes, as (indices, start, end); touching ranges are separate groups."""
    groups: list[tuple[list[int], int, int]] = []
    for index in order:
        start, length = ranges[index]
        if groups and start < groups[-1][2]:
            members, first, end = groups[-1]
            members.append(index)
            groups[-1] = (members, first, max(end, start + length))
        else:
            groups.append(([index], start, start + length))
    return groups


def _even(length: int, largest: int) -> int:
    """The size of the requests that share ``length`` bytes fairly, none above ``largest``."""
    count = -(-length // largest)
    return -(-length // count)


def _cut(wanted: Range, requests: Sequence[Range], first: int, base: int, size: int) -> list[tuple[int, int, int]]:
    """Where a range lies in the equal requests that begin at index ``first`` and byte ``base``."""
    start, end = wanted[0], end_of(wanted)
    cut: list[tuple[int, int, int]] = []
    for number in range(first + (start - base) // size, first + (end - 1 - base) // size + 1):
        at, length = requests[number]
        begin = max(start, at)
        cut.append((number, begin - at, min(end, at + length) - begin))
    return cut


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
