"""Steps: reading written as generators that name the bytes they need, so that many of them share one request.

A generator yields :class:`Fetch` and is sent the bytes, or :class:`Decode` and is sent what the tasks made of them. It
reads nothing itself: whoever drives it does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import pyarrow as pa

from lancelet.encodings.values import Bytes
from lancelet.format.columns import Range

__all__ = ["Decode", "Fetch", "Step", "Steps", "both", "decode", "fetch", "together"]

_Result = TypeVar("_Result")
_First = TypeVar("_First")
_Second = TypeVar("_Second")


@dataclass(frozen=True, slots=True)
class Fetch:
    """Bytes of the file that are needed next."""

    ranges: Sequence[Range]


@dataclass(frozen=True, slots=True)
class Decode:
    """Work that needs no more bytes and may run on any thread, in any order."""

    tasks: Sequence[Callable[[], pa.Array]]


Step = Fetch | Decode
Answer = list[Bytes] | list[pa.Array] | None
Steps = Generator[Step, Answer, _Result]


def fetch(ranges: Sequence[Range]) -> Steps[list[Bytes]]:
    """The bytes of each range."""
    return cast(list[Bytes], (yield Fetch(ranges))) if ranges else []


def decode(tasks: Sequence[Callable[[], pa.Array]]) -> Steps[list[pa.Array]]:
    """What each task makes."""
    return cast(list[pa.Array], (yield Decode(tasks))) if tasks else []


def together(parts: Sequence[Steps[_Result]]) -> Steps[list[_Result]]:
    """The results of all parts, advanced side by side: their fetches of one round become one, likewise their tasks.

    Fetches go first, so that bytes are asked for in as few rounds as the longest part needs.

    >>> def part(start):
    ...     (found,) = yield from fetch([(start, 1)])
    ...     return bytes(found)
    >>> steps = together([part(2), part(0)])
    >>> next(steps).ranges
    [(2, 1), (0, 1)]
    >>> try:
    ...     steps.send([b"c", b"a"])
    ... except StopIteration as end:
    ...     end.value
    [b'c', b'a']
    """
    if len(parts) == 1:
        return [(yield from parts[0])]
    results: dict[int, _Result] = {}
    waiting: dict[int, Step] = {}
    for at, part in enumerate(parts):
        _advance(at, part, None, waiting, results)
    while waiting:
        fetches = {at: step.ranges for at, step in waiting.items() if isinstance(step, Fetch)}
        if fetches:
            counts = {at: len(ranges) for at, ranges in fetches.items()}
            answers: Answer = yield Fetch([one for ranges in fetches.values() for one in ranges])
        else:
            tasks = {at: step.tasks for at, step in waiting.items() if isinstance(step, Decode)}
            counts = {at: len(some) for at, some in tasks.items()}
            answers = yield Decode([one for some in tasks.values() for one in some])
        given = iter(answers or ())
        for at, count in counts.items():
            _advance(at, parts[at], [next(given) for _ in range(count)], waiting, results)
    return [results[at] for at in range(len(parts))]


def _advance(
    at: int, part: Steps[_Result], answer: Answer, waiting: dict[int, Step], results: dict[int, _Result]
) -> None:
    try:
        waiting[at] = part.send(answer)
    except StopIteration as end:
        waiting.pop(at, None)
        results[at] = end.value


def both(first: Steps[_First], second: Steps[_Second]) -> Steps[tuple[_First, _Second]]:
    """Two parts of different results, side by side."""
    one, other = yield from together([cast(Steps[object], first), cast(Steps[object], second)])
    return cast(_First, one), cast(_Second, other)
