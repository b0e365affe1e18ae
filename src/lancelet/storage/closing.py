"""Leaving a block over a writer: it is closed where the block succeeds and aborted where it raises."""

from __future__ import annotations

from types import TracebackType
from typing import Self

__all__ = ["ClosesOrAborts"]


class ClosesOrAborts:
    """What writers that need no more than this inherit; they bring ``close`` and ``abort``."""

    __slots__ = ()

    def close(self) -> int:
        """Publish the file and return its size."""
        raise NotImplementedError

    def abort(self) -> None:
        """Discard what was written."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()
