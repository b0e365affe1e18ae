"""Memory maps of files: read-only views that hold no file descriptor, and a bounded cache of them."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import stat
from collections import OrderedDict

import numpy as np

from lancelet.storage.locks import fork_safe_lock

__all__ = ["MappingCache", "map_file", "read_file"]

_libc = ctypes.CDLL(None, use_errno=True)
_map = _libc.mmap
_map.restype = ctypes.c_void_p
_map.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_unmap = _libc.munmap
_unmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_FAILED = ctypes.c_void_p(-1).value
#: What a file system that cannot map files answers.
_CANNOT_MAP = frozenset({errno.ENODEV, errno.EACCES, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


class _Region:
    """Mapped addresses, unmapped when the last view of them is gone."""

    __slots__ = ("__array_interface__", "_address", "_size")

    def __init__(self, address: int, size: int) -> None:
        self._address, self._size = address, size
        # NumPy turns this into an array that keeps the region alive; True says read-only.
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": (address, True)}

    def __del__(self, unmap: object = _unmap) -> None:
        if callable(unmap):
            unmap(self._address, self._size)


def map_file(descriptor: int, size: int) -> memoryview:
    """The first ``size`` bytes of an open file as a read-only view; the descriptor may be closed afterwards.

    ``mmap.mmap`` keeps a duplicate descriptor for as long as a view lives, so that a zero-copy table over a thousand
    files would run into the usual limit of 1,024. Here a view costs addresses only. On a file system that cannot map
    files the bytes are read. A file that is cut short by somebody while views of it live takes the process down
    (SIGBUS); Lance files never change once written.
    """
    if size == 0:
        return memoryview(b"")
    address = _map(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if address == _FAILED:
        number = ctypes.get_errno()
        if number in _CANNOT_MAP:
            return read_file(descriptor, size)
        raise OSError(number, os.strerror(number))
    return np.asarray(_Region(address, size)).data


def read_file(descriptor: int, size: int) -> memoryview:
    """The first ``size`` bytes of an open file, copied; fewer if the file has fewer."""
    # np.empty asks for huge pages, which makes big copies several times as fast as into a bytes object.
    content = np.empty(size, np.uint8).data
    done = 0
    while done < size:
        step = os.preadv(descriptor, [content[done:]], done)
        if step == 0:
            break
        done += step
    return content[:done].toreadonly()


class MappingCache:
    """Maps of the files used last, at most ``limit`` of them.

    A map is good for as long as the name leads to the same file (device, inode), unchanged (time, size). Views that
    callers still hold outlive their place in the cache.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._maps: OrderedDict[str, tuple[tuple[int, ...], memoryview]] = OrderedDict()
        self._lock = fork_safe_lock()

    def __len__(self) -> int:
        return len(self._maps)

    def view(self, file: str) -> memoryview:
        """The whole file; OSError as from ``open``, also for what is no regular file."""
        try:
            identity = _identity(os.stat(file))
        except OSError:
            self.forget(file)
            raise
        with self._lock:
            found = self._maps.get(file)
            if found is not None and found[0] == identity:
                self._maps.move_to_end(file)
                return found[1]
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise FileNotFoundError(errno.ENOENT, "not a regular file", file)
            view = map_file(descriptor, status.st_size)
        finally:
            os.close(descriptor)
        self._keep(file, _identity(status), view)
        return view

    def forget(self, file: str) -> None:
        """Give up the map of a file, so that a deleted one does not hold disk space."""
        with self._lock:
            dropped = self._maps.pop(file, None)
        # The last reference may go here, outside the lock: unmapping can take milliseconds.
        del dropped

    def _keep(self, file: str, identity: tuple[int, ...], view: memoryview) -> None:
        dropped = []
        with self._lock:
            dropped.append(self._maps.pop(file, None))
            self._maps[file] = (identity, view)
            while len(self._maps) > self._limit:
                dropped.append(self._maps.popitem(last=False)[1])


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
