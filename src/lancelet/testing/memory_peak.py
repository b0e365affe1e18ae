"""The most memory of its own that this process has in use while a block runs; Linux only."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["MemoryPeak", "in_use"]

_STATUS = Path("/proc/self/status")
_SECONDS = 0.002


def in_use() -> int:
    """Kilobytes in use. Pages of mapped files are given back whenever others want them: they are not counted.

    >>> in_use() > 1_000
    True
    """
    counted = (line for line in _STATUS.read_text().splitlines() if line.startswith(("RssAnon", "RssShmem")))
    return sum(int(line.split()[1]) for line in counted)


class MemoryPeak:
    """Looks every other millisecond, on a thread of its own.

    >>> with MemoryPeak() as peak:
    ...     rows = bytearray(10**6)
    >>> peak.most >= peak.base
    True
    """

    #: Kilobytes at the start of the block, and the most that were seen in it.
    base: int
    most: int

    def __enter__(self) -> Self:
        self.base = self.most = in_use()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            self.most = max(self.most, in_use())
            time.sleep(_SECONDS)
