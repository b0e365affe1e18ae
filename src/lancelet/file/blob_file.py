"""BlobFile: one blob as a file that is read lazily."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lancelet.errors import Corrupt, InvalidInput
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Mappable, Range, Store

__all__ = ["DEFAULT_BLOB_BUFFER_SIZE", "BlobFile", "BlobLocation"]

#: Bytes read ahead of small sequential reads.
DEFAULT_BLOB_BUFFER_SIZE = 512 * 2**10


@dataclass(frozen=True, slots=True)
class BlobLocation:
    """Where a blob's bytes are: a part of one object."""

    store: Store
    path: str
    position: int
    #: None where it is the whole object, whose size nobody asked yet.
    size: int | None

    @property
    def uri(self) -> str:
        """The object, as a user would name it."""
        return join_uri(self.store.uri, self.path)

    def sized(self) -> BlobLocation:
        """The same with its size, which the store may have to be asked for."""
        if self.size is not None:
            return self
        whole = self.store.size(self.path)
        if self.position > whole:
            raise Corrupt(f"the blob starts at {self.position:,}, its object has {whole:,} bytes", uri=self.uri)
        return replace(self, size=whole - self.position)


class BlobFile(io.BufferedIOBase):
    """A blob as a read-only file; nothing is read before it is asked for.

    Small sequential reads are served from a buffer of ``buffer_size`` bytes where the store has to fetch them.
    ``read_range`` and ``read_ranges`` neither use it nor move the cursor. It may be sent to another process, where it
    begins anew.

    >>> from lancelet.storage import open_store
    >>> store = open_store("memory://blob-file")
    >>> store.put("a", b"..hello..")
    >>> with BlobFile(BlobLocation(store, "a", 2, 5)) as file:
    ...     file.size(), file.read(2), file.tell(), file.read()
    (5, b'he', 2, b'llo')
    """

    def __init__(self, location: BlobLocation, buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE) -> None:
        super().__init__()
        if isinstance(buffer_size, bool) or not isinstance(buffer_size, int):
            raise TypeError(f"buffer_size must be an int, got {type(buffer_size).__name__}")
        if buffer_size < 0:
            raise InvalidInput(f"buffer_size is {buffer_size}, expected at least 0")
        self._location = location
        self._buffer_size = buffer_size
        self._ahead = 0 if isinstance(location.store, Mappable) else buffer_size
        self._cursor = 0
        self._buffer, self._buffer_start = memoryview(b""), 0

    def __reduce__(self) -> tuple[type[BlobFile], tuple[BlobLocation, int]]:
        return BlobFile, (self._location, self._buffer_size)

    def __repr__(self) -> str:
        return f"<BlobFile size={self.size()}>"

    @property
    def location(self) -> BlobLocation:
        """Where the bytes are, for those who fetch them by other means."""
        self._location = self._location.sized()
        return self._location

    def size(self) -> int:
        """Bytes of the blob."""
        return self.location.size or 0

    def readable(self) -> bool:
        """True: that is what it is for."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Where the next read starts."""
        self._open()
        return self._cursor

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the cursor, also beyond the end, where reads give nothing."""
        self._open()
        if whence not in (io.SEEK_SET, io.SEEK_CUR, io.SEEK_END):
            raise InvalidInput(f"whence is {whence}, expected 0, 1 or 2")
        origin = 0 if whence == io.SEEK_SET else self._cursor if whence == io.SEEK_CUR else self.size()
        if origin + offset < 0:
            raise InvalidInput(f"seek to {origin + offset}, expected at least 0")
        self._cursor = origin + offset
        return self._cursor

    def read(self, size: int | None = -1, /) -> bytes:
        """The next ``size`` bytes, fewer at the end; all that are left without a size."""
        return bytes(self._take(size))

    def read1(self, size: int | None = -1, /) -> bytes:
        """The next bytes; without a size as many as a buffer usually holds."""
        return bytes(self._take(io.DEFAULT_BUFFER_SIZE if size is None or size < 0 else size))

    def readall(self) -> bytes:
        """All bytes from the cursor on."""
        return self.read()

    def readinto(self, b: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer ``b``; how many bytes there were."""
        view = memoryview(b).cast("B")
        if view.readonly:
            raise TypeError(f"readinto() takes a writable buffer, not {type(b).__name__}")
        data = self._take(len(view))
        view[: len(data)] = data
        return len(data)

    def read_range(self, offset: int, length: int) -> bytes:
        """Some bytes of the blob; the cursor stays."""
        return self.read_ranges([(offset, length)])[0]

    def read_ranges(self, ranges: Sequence[Range]) -> list[bytes]:
        """Several ranges of the blob, in as few requests as the store can make of them; the cursor stays."""
        self._open()
        size = self.size()
        for offset, length in ranges:
            if offset < 0 or length < 0 or offset + length > size:
                raise InvalidInput(f"bytes {offset:,}..{offset + length:,} asked of a blob with {size:,}")
        start = self._location.position
        places = [(start + offset, length) for offset, length in ranges]
        return [bytes(piece) for piece in self._location.store.read(self._location.path, places)]

    def _open(self) -> None:
        if self.closed:
            raise InvalidInput("the blob file is closed")

    def _take(self, size: int | None) -> memoryview:
        """The bytes at the cursor, which moves behind them."""
        self._open()
        left = max(self.size() - self._cursor, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        if not wanted:
            return memoryview(b"")
        inside = self._cursor - self._buffer_start
        if not 0 <= inside <= len(self._buffer) - wanted:
            fetched = min(max(wanted, self._ahead), left)
            place = (self._location.position + self._cursor, fetched)
            data = self._location.store.read(self._location.path, [place])[0]
            inside = 0
            if fetched == wanted:
                self._cursor += wanted
                return data
            self._buffer, self._buffer_start = data, self._cursor
        self._cursor += wanted
        return self._buffer[inside : inside + wanted]
