"""Options: one frozen object that says how much memory, concurrency and patience the work may use."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path

from lancelet.errors import InvalidInput

__all__ = ["Options", "Retries", "available_memory", "default_options", "parse_size"]

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def parse_size(text: str | int) -> int:
    """Bytes meant by a size such as ``"512MiB"``, ``"2g"``, ``"10MB"`` or a plain number.

    >>> parse_size("1.5GiB"), parse_size("10kB"), parse_size(7)
    (1610612736, 10000, 7)
    """
    if isinstance(text, int):
        return text
    number = text.strip().rstrip("bBkKmMgGtTiI")
    unit = text.strip()[len(number) :].lower()
    try:
        return int(float(number) * _UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        raise InvalidInput(f"not a size: {text!r}", hint="write for example 512MiB, 2GB or 1048576") from None


@lru_cache(maxsize=1)
def available_memory() -> int:
    """Bytes of memory this process may use: the machine's, or the container's limit where that is lower."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 8 * 2**30
    limits = [machine]
    for name in _CGROUP_LIMITS:
        try:
            limits.append(int(Path(name).read_text()))
        except (OSError, ValueError):
            continue
    return min(limits)


@dataclass(frozen=True, slots=True)
class Retries:
    """How often, how soon and how long a failed request is repeated.

    Delays grow by ``factor`` from ``first_delay`` up to ``longest_delay``; each is drawn at random between
    half of that and all of it, so that clients which failed together do not come back together.

    >>> list(Retries(attempts=1).delays())
    []
    """

    attempts: int = 10
    first_delay: float = 0.1
    factor: float = 2.0
    longest_delay: float = 10.0
    deadline: float = 180.0

    def delays(self, generator: random.Random | None = None) -> Iterator[float]:
        """The waits between attempts, in seconds: one fewer than there are attempts."""
        draw = (generator or random).uniform
        delay = self.first_delay
        for _ in range(self.attempts - 1):
            yield draw(delay / 2, delay)
            delay = min(delay * self.factor, self.longest_delay)


@dataclass(frozen=True, slots=True)
class Options:
    """What every operation may use. Immutable; :meth:`with_` makes a changed copy.

    >>> Options(memory_budget=2**30).with_(io_concurrency=4).io_concurrency
    4
    """

    #: Bytes that one operation may hold at once.
    memory_budget: int = field(default_factory=lambda: available_memory() // 4)
    #: Requests under way at once against a remote store.
    io_concurrency: int = 64
    #: Bytes that the process-wide cache may hold.
    cache_bytes: int = field(default_factory=lambda: available_memory() // 16)
    #: Threads that decode and encode.
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    #: Gaps up to this many bytes are read rather than skipped.
    coalesce_gap: int = 64 * 2**10
    #: No request asks for more bytes than this: longer ranges are split into equal requests.
    largest_request: int = 16 * 2**20
    #: Whether a local write survives a power cut before it is acknowledged.
    durable: bool = False
    retries: Retries = field(default_factory=Retries)

    def __post_init__(self) -> None:
        for name in ("memory_budget", "io_concurrency", "threads", "largest_request"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"option {name} is {getattr(self, name)}, expected at least 1")

    def with_(self, **changes: object) -> Options:
        """A copy with the named options changed."""
        known = {item.name for item in fields(self)}
        unknown = sorted(set(changes) - known)
        if unknown:
            raise InvalidInput(f"unknown option {unknown[0]!r}", hint=f"known options: {', '.join(sorted(known))}")
        return replace(self, **changes)  # type: ignore[arg-type]

    @staticmethod
    def from_environment(environment: Mapping[str, str] | None = None) -> Options:
        """Defaults overridden by ``LANCELET_MEMORY_BUDGET``, ``_IO_CONCURRENCY``, ``_CACHE_BYTES``, ``_THREADS``.

        >>> Options.from_environment({"LANCELET_MEMORY_BUDGET": "1GiB"}).memory_budget
        1073741824
        """
        values = os.environ if environment is None else environment
        names = ("memory_budget", "io_concurrency", "cache_bytes", "threads")
        given = {name: values.get(f"LANCELET_{name.upper()}") for name in names}
        return Options().with_(**{name: parse_size(text) for name, text in given.items() if text})


@lru_cache(maxsize=1)
def default_options() -> Options:
    """The process's options, read from the environment once."""
    return Options.from_environment()
