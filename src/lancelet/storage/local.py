"""The local store: files below a directory, read by memory map, written beside their place and moved there whole."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence

from lancelet.errors import AlreadyExists, NotFound, Unsupported
from lancelet.storage.listing import names, walk
from lancelet.storage.mapping import MappingCache, read_file
from lancelet.storage.paths import check_path, join_uri, local_path
from lancelet.storage.ranges import check_ranges, end_of, past_end
from lancelet.storage.staging import Staged, StagedWriter, os_error
from lancelet.storage.store import Data, Entry, Range, Writer, as_bytes

__all__ = ["LocalStore"]

#: Objects up to this size are read rather than mapped when they are asked for whole.
_READ_WHOLE = 64 * 2**10
#: What a file system without hard links answers to one.
_CANNOT_LINK = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP})

_mappings = MappingCache(256)


class LocalStore:
    """Files below the directory that a path or ``file:`` URI names; the directory is made by the first write.

    Reads are views of memory maps: nothing is copied, and no file descriptor stays open. Writes go to a file named
    ``.tmp-…`` in the target's directory, which is then renamed (``put``, ``writer``, ``copy``) or linked to a name
    that must be free (``put_if_absent``): whoever is killed at whatever moment leaves the old object, the new one, or
    besides a temporary file that is never listed and that :meth:`sweep` removes. With ``durable``, files and
    directories reach the disk before a write is acknowledged.

    Each write tells :mod:`lancelet.events` of ``storage.staged`` (bytes written, name not taken yet) and
    ``storage.published``.

    >>> import tempfile
    >>> store = LocalStore(tempfile.mkdtemp())
    >>> store.put("data/a", b"0123456789")
    >>> [bytes(view) for view in store.read("data/a", [(8, 2), (0, 3)])]
    [b'89', b'012']
    """

    def __init__(self, root: str | os.PathLike[str], *, durable: bool = False) -> None:
        self._root = local_path(root)
        self._durable = durable

    def __repr__(self) -> str:
        return f"LocalStore({self._root!r}, durable={self._durable})"

    @property
    def uri(self) -> str:
        """The absolute path of the directory."""
        return self._root

    def size(self, path: str) -> int:
        """Bytes in a file."""
        file = self._file(path)
        try:
            status = os.stat(file)
        except OSError as error:
            raise os_error(error, file) from error
        if not stat.S_ISREG(status.st_mode):
            raise NotFound("there is no such object: the name is not that of a file", uri=file)
        return status.st_size

    def view(self, path: str) -> memoryview:
        """The whole file as a memory map."""
        file = self._file(path)
        try:
            return _mappings.view(file)
        except OSError as error:
            raise os_error(error, file) from error

    def read(self, path: str, ranges: Sequence[Range]) -> list[memoryview]:
        """Views of a memory map."""
        check_ranges(ranges, uri=join_uri(self._root, path))
        if not any(length for _, length in ranges):
            return [memoryview(b"") for _ in ranges]
        view = self.view(path)
        size = len(view)
        for piece in ranges:
            if piece[1] and end_of(piece) > size:
                raise past_end(piece, size, uri=self._file(path))
        return [view[start : start + length] for start, length in ranges]

    def read_all(self, path: str) -> memoryview:
        """A small file's bytes, a bigger one's memory map."""
        file = self._file(path)
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            try:
                status = os.fstat(descriptor)
                if status.st_size > _READ_WHOLE or not stat.S_ISREG(status.st_mode):
                    return _mappings.view(file)
                found = read_file(descriptor, status.st_size)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise os_error(error, file) from error
        if len(found) < status.st_size:
            raise past_end((0, status.st_size), len(found), uri=file)
        return found

    def read_tail(self, path: str, length: int) -> tuple[memoryview, int]:
        """A view of the memory map's end."""
        check_ranges([(0, length)], uri=join_uri(self._root, path))
        view = self.view(path)
        return view[max(0, len(view) - length) :], len(view)

    def put(self, path: str, data: Data) -> None:
        """Write beside the target, then rename over it."""
        with self._stage(path) as staged:
            staged.write(as_bytes(data))
            staged.replace()

    def put_if_absent(self, path: str, data: Data) -> None:
        """Write beside the target, then link to its name, which the system refuses if it is taken.

        Unsupported on a file system without hard links: opening the target exclusively would let readers see half
        an object, and a writer killed meanwhile would leave that half for good.
        """
        content, file = as_bytes(data), self._file(path)
        if os.path.lexists(file):
            raise AlreadyExists("there is a file of this name", uri=file)
        with self._stage(path) as staged:
            staged.write(content)
            try:
                staged.link()
            except OSError as error:
                if error.errno in _CANNOT_LINK:
                    raise Unsupported(
                        "the file system has no hard links, so a new object cannot appear whole and only once",
                        uri=file,
                        hint="keep the table on a file system that has them (ext4, xfs, btrfs, APFS, NFS) or in an "
                        "object store, or commit through an external manifest store",
                    ) from error
                raise

    def writer(self, path: str) -> Writer:
        """Write beside the target; close renames."""
        return StagedWriter(self._stage(path))

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[Entry]:
        """Files in byte order of their paths, one directory at a time; symbolic links are followed."""
        return walk(self._root, prefix, start_after)

    def names(self, folder: str) -> list[str]:
        """What is in a directory, by one call to the system."""
        return names(self._file(folder))

    def copy(self, source: str, target: str) -> None:
        """Copy within the kernel, beside the target, then rename over it."""
        file = self._file(source)
        self._file(target)
        self.size(source)
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise os_error(error, file) from error
        try:
            with self._stage(target) as staged:
                staged.copy(descriptor)
                staged.replace()
        finally:
            os.close(descriptor)

    def delete(self, paths: Iterable[str]) -> None:
        """Remove files; directories stay, emptied or not."""
        for file in [self._file(path) for path in paths]:
            _mappings.forget(file)
            try:
                os.unlink(file)
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                continue
            except OSError as error:
                raise os_error(error, file) from error

    def temporaries(self) -> Iterator[Entry]:
        """Files of writes that are under way, or whose writer died."""
        return walk(self._root, "", "", temporary=True)

    def sweep(self, *, older_than: float) -> list[Entry]:
        """Remove temporary files that nobody wrote to for ``older_than`` seconds; returns those removed."""
        limit = time.time() - older_than
        stale = [entry for entry in self.temporaries() if entry.modified <= limit]
        for entry in stale:
            try:
                os.unlink(os.path.join(self._root, entry.path))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise os_error(error, join_uri(self._root, entry.path)) from error
        return stale

    def _file(self, path: str) -> str:
        return join_uri(self._root, check_path(self._root, path))

    def _stage(self, path: str) -> Staged:
        return Staged(self._file(path), durable=self._durable)
