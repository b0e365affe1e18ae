"""The Store contract: what lancelet asks of a place where bytes live, and nothing more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, runtime_checkable

__all__ = ["Data", "Entry", "Range", "Store", "Writer"]

#: ``(start, length)`` in bytes.
Range = tuple[int, int]
#: What stores take: anything that exports its bytes.
Data = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Entry:
    """One object in a listing."""

    path: str
    size: int
    #: Seconds since the epoch, UTC.
    modified: float


class Writer(Protocol):
    """A file being written in pieces. It appears whole at :meth:`close`; until then, and after abort, it does not exist.

    As a context manager it closes on success and aborts when the block raises.
    """

    @property
    def position(self) -> int:
        """Bytes written so far."""

    def write(self, data: Data) -> None:
        """Append ``data``, which may be reused by the caller afterwards."""

    def close(self) -> int:
        """Publish the file and return its size."""

    def abort(self) -> None:
        """Discard what was written. Safe to call twice and after a failed close."""

    def __enter__(self) -> Writer: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@runtime_checkable
class Store(Protocol):
    """A flat space of objects below one root, named by ``/``-separated relative paths.

    Every store passes ``lancelet.testing.storage``. Stores pickle by their description (no live handle crosses a
    process), work after fork and spawn, and may be used from many threads. Failures are raised as
    :class:`~lancelet.errors.NotFound`, :class:`~lancelet.errors.AlreadyExists` or
    :class:`~lancelet.errors.Storage`, always with ``uri``.
    """

    @property
    def uri(self) -> str:
        """The root, as a user would write it, without credentials."""

    def size(self, path: str) -> int:
        """Bytes in an object; NotFound if there is none."""

    def read(self, path: str, ranges: Sequence[Range]) -> list[memoryview]:
        """The bytes of each range, in the order asked. A range past the end is Corrupt: the file is not what we think.

        Local stores return views of a memory map; nothing is copied. Remote stores coalesce and fetch in parallel.
        """

    def read_all(self, path: str) -> memoryview:
        """A whole object, in one request."""

    def read_tail(self, path: str, length: int) -> tuple[memoryview, int]:
        """The last ``length`` bytes (fewer if the object is smaller) and the object's size."""

    def put(self, path: str, data: Data) -> None:
        """Write or replace an object; readers see the old bytes or the new, never a mixture."""

    def put_if_absent(self, path: str, data: Data) -> None:
        """Write an object that must not exist; of many racing writers exactly one succeeds, the others get AlreadyExists."""

    def writer(self, path: str) -> Writer:
        """Start writing an object in pieces, replacing any that exists when it is closed."""

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[Entry]:
        """Objects whose path starts with ``prefix`` and sorts after ``start_after``, in path order (byte-wise)."""

    def copy(self, source: str, target: str) -> None:
        """Copy an object within the store, replacing the target whole."""

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects; those that do not exist are passed over."""
