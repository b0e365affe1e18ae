"""The Store contract: what lancelet asks of a place where bytes live, and nothing more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, TypeGuard, runtime_checkable

from lancelet.errors import InvalidInput

__all__ = [
    "Browsable",
    "Data",
    "Entry",
    "Mappable",
    "Range",
    "Store",
    "Writer",
    "as_bytes",
    "maps_files",
    "tells_names",
]

#: ``(start, length)`` in bytes.
Range = tuple[int, int]
#: What stores take: anything that exports its bytes.
Data = bytes | bytearray | memoryview


def as_bytes(data: Data) -> memoryview:
    """``data`` as a flat view of unsigned bytes, whatever its items were; nothing is copied.

    >>> as_bytes(memoryview(b"abcd").cast("I")).tolist()
    [97, 98, 99, 100]
    """
    view = memoryview(data)
    if not view.c_contiguous:
        raise InvalidInput("the data to write has gaps between its items", hint="copy it into one contiguous buffer")
    return view.cast("B") if view.nbytes else memoryview(b"")


@dataclass(frozen=True, slots=True)
class Entry:
    """One object in a listing."""

    path: str
    size: int
    #: Seconds since the epoch, UTC.
    modified: float


class Writer(Protocol):
    """A file being written in pieces: it appears whole at :meth:`close`; before that, and after abort, there is none.

    As a context manager it closes on success and aborts when the block raises. A write that failed leaves the
    writer good for nothing but :meth:`abort`. A writer belongs to the process that made it.
    """

    @property
    def position(self) -> int:
        """Bytes written so far."""

    def write(self, data: Data) -> None:
        """Append ``data``, which may be reused by the caller afterwards. InvalidInput after close or abort."""

    def close(self) -> int:
        """Publish the file and return its size; once more does nothing more. InvalidInput after abort."""

    def abort(self) -> None:
        """Discard what was written. Safe to call twice and after a failed close; nothing happens after close."""

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
    :class:`~lancelet.errors.Storage`, always with the object's ``uri``; ``retryable`` says whether the same call may
    succeed later. A path that is no object path (``..``, an absolute one) is InvalidInput. Views handed out are
    read-only, of unsigned bytes, and stay valid when the object is replaced or deleted.
    """

    @property
    def uri(self) -> str:
        """The root, as a user would write it, without credentials."""

    def size(self, path: str) -> int:
        """Bytes in an object; NotFound if there is none."""

    def read(self, path: str, ranges: Sequence[Range]) -> list[memoryview]:
        """The bytes of each range, in the order asked. A range past the end is Corrupt: the file is not what we think.

        Ranges may overlap and come in any order; a negative one is InvalidInput; one of length zero is answered
        without looking. No ranges, no request. Local stores return views of a memory map; nothing is copied.
        Remote stores coalesce and fetch in parallel.
        """

    def read_all(self, path: str) -> memoryview:
        """A whole object, in one request."""

    def read_tail(self, path: str, length: int) -> tuple[memoryview, int]:
        """The last ``length`` bytes (fewer if the object is smaller) and the object's size."""

    def put(self, path: str, data: Data) -> None:
        """Write or replace an object; readers see the old bytes or the new, never a mixture."""

    def put_if_absent(self, path: str, data: Data) -> None:
        """Write an object that must not exist: of many racing writers one succeeds, the others get AlreadyExists.

        An error that is neither leaves it open whether the object was written: the answer may have been lost.
        """

    def writer(self, path: str) -> Writer:
        """Start writing an object in pieces, replacing any that exists when it is closed."""

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[Entry]:
        """Objects whose path starts with ``prefix`` and sorts after ``start_after``, in path order (byte-wise).

        Neither need end at a slash or name an object. Unfinished writes are not listed. Objects that come or go
        while the iterator runs may or may not be seen; all others are seen once.
        """

    def copy(self, source: str, target: str) -> None:
        """Copy an object within the store, replacing the target whole; NotFound if there is no source."""

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects; those that do not exist are passed over."""


@runtime_checkable
class Mappable(Protocol):
    """A store that can show a whole object without reading it: bytes are fetched when they are touched."""

    def view(self, path: str) -> memoryview:
        """The whole object; nothing is read or copied by the call itself."""


def maps_files(store: Store) -> TypeGuard[Mappable]:
    """Whether a store is :class:`Mappable`: asked for every file, so that a look at the whole protocol would be felt.

    >>> from lancelet.storage.memory import MemoryStore
    >>> maps_files(MemoryStore("memory://mapped"))
    True
    """
    return hasattr(store, "view")


@runtime_checkable
class Browsable(Protocol):
    """A store that tells what is in a folder without looking at each object, as a listing has to."""

    def names(self, folder: str) -> list[str]:
        """The names of what is in a folder, in byte order; of folders in it, too. None where there is no folder."""


def tells_names(store: Store) -> TypeGuard[Browsable]:
    """Whether a store is :class:`Browsable`: asked at each opening of a table, as :func:`maps_files` of each file.

    >>> from lancelet.storage.local import LocalStore
    >>> tells_names(LocalStore("/tmp"))
    True
    """
    return hasattr(store, "names")
