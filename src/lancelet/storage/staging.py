"""Staged writes: a temporary file beside its target, then one step that makes it the target, whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
from types import TracebackType

from lancelet.errors import AlreadyExists, InvalidInput, LanceletError, NotFound, Storage
from lancelet.events import emit, listening
from lancelet.storage.closing import ClosesOrAborts
from lancelet.storage.paths import TEMPORARY_PREFIX
from lancelet.storage.store import Data, as_bytes

__all__ = ["Staged", "StagedWriter", "os_error"]

#: Errors that may pass by themselves.
_PASSING = frozenset({errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EMFILE})
_HINTS = {
    errno.EACCES: "check the permissions of the directory",
    errno.EPERM: "check the permissions of the directory",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "free some space; what was written is removed",
    errno.EDQUOT: "free some space; what was written is removed",
    errno.EMFILE: "too many open files: raise the limit (ulimit -n)",
}
_NO_KERNEL_COPY = frozenset({errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF, errno.EPERM})
#: Small pieces are collected up to this size; bigger ones go straight to the system.
_BUFFER = 256 * 2**10


def os_error(error: OSError, uri: str) -> LanceletError:
    """The system's error as one of ours."""
    if isinstance(error, LanceletError):
        return error
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotFound("there is no such object", uri=uri)
    if error.errno == errno.EEXIST:
        return AlreadyExists("there is a file of this name", uri=uri)
    text = error.strerror or str(error)
    return Storage(text, uri=uri, retryable=error.errno in _PASSING, hint=_HINTS.get(error.errno or 0))


class Staged:
    """A temporary file and the name it is meant for. Leaving the ``with`` block removes what was not published.

    Missing directories are made. OSError from its steps leaves the block as one of our errors.
    """

    def __init__(self, target: str, *, durable: bool) -> None:
        self.target = target
        self._durable = durable
        self._folder = os.path.dirname(target)
        # Drawn from the system, not from a generator that a forked child would share.
        self.file = os.path.join(self._folder, TEMPORARY_PREFIX + os.urandom(12).hex())
        self._process = os.getpid()
        try:
            descriptor = self._create()
        except FileNotFoundError:
            self._make_folder()
            descriptor = self._try_create()
        except OSError as error:
            raise _cannot_write(error, target) from error
        self._settled = False
        # Unbuffered, with a buffer of our own: a forked child that drops an io.BufferedWriter would flush its copy
        # of the parent's pending bytes into the parent's file.
        self._stream = io.FileIO(descriptor, "wb")
        self._pending = bytearray()

    def write(self, data: memoryview) -> None:
        """Append bytes."""
        if len(self._pending) + len(data) < _BUFFER:
            self._pending += data
            return
        self._flush()
        self._write_through(data)

    def _flush(self) -> None:
        pending, self._pending = self._pending, bytearray()
        self._write_through(memoryview(pending))

    def _write_through(self, data: memoryview) -> None:
        if self._process != os.getpid():
            raise InvalidInput("the writer belongs to the process that this one was forked from", uri=self.target)
        while data:
            data = data[self._stream.write(data) or 0 :]

    def copy(self, source: int) -> None:
        """Append all of an open file, within the kernel where it can."""
        self._flush()
        try:
            while os.copy_file_range(source, self._stream.fileno(), 2**30):
                pass
        except (OSError, AttributeError) as error:
            if isinstance(error, OSError) and error.errno not in _NO_KERNEL_COPY:
                raise
            os.lseek(source, 0, os.SEEK_SET)
            self._stream.seek(0)
            with open(source, "rb", closefd=False) as stream:
                shutil.copyfileobj(stream, self._stream, 2**20)

    def replace(self) -> None:
        """Take the target's name from whatever has it."""
        self._finish()
        os.replace(self.file, self.target)
        self._settled = True
        self._published()

    def link(self) -> None:
        """Take the target's name if it is free; FileExistsError if not."""
        self._finish()
        try:
            os.link(self.file, self.target)
        except FileExistsError:
            # Over NFS an answer can get lost: the repeated request then finds the link that the first one made.
            if not os.path.samefile(self.file, self.target):
                raise
        os.unlink(self.file)
        self._settled = True
        self._published()

    def discard(self) -> None:
        """Remove the temporary file, unless it was published or belongs to the process we were forked from."""
        self._pending.clear()
        self._stream.close()
        if not self._settled and self._process == os.getpid():
            self._settled = True
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.file)

    def __enter__(self) -> Staged:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()
        if isinstance(error, OSError) and not isinstance(error, LanceletError):
            raise _cannot_write(error, self.target, exclusive=isinstance(error, FileExistsError)) from error

    def _finish(self) -> None:
        """All bytes with the system, and on the disk where that is asked for."""
        self._flush()
        if self._durable:
            os.fsync(self._stream.fileno())
        self._stream.close()
        if listening():
            emit("storage.staged", uri=self.target, temporary=self.file)

    def _published(self) -> None:
        if self._durable:
            _sync_folder(self._folder)
        if listening():
            emit("storage.published", uri=self.target)

    def _create(self) -> int:
        return os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)

    def _try_create(self) -> int:
        try:
            return self._create()
        except OSError as error:
            raise _cannot_write(error, self.target) from error

    def _make_folder(self) -> None:
        missing: list[str] = []
        folder = self._folder
        while not os.path.isdir(folder) and folder != os.path.dirname(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        try:
            os.makedirs(self._folder, exist_ok=True)
            if self._durable:
                for made in reversed(missing):
                    _sync_folder(os.path.dirname(made))
        except OSError as error:
            raise _cannot_write(error, self.target) from error


class StagedWriter(ClosesOrAborts):
    """A Writer over a staged file."""

    def __init__(self, staged: Staged) -> None:
        self._staged = staged
        self._position = 0
        self._state = "open"

    @property
    def position(self) -> int:
        """Bytes written so far."""
        return self._position

    def write(self, data: Data) -> None:
        """Append ``data``."""
        self._expect_open()
        view = as_bytes(data)
        try:
            self._staged.write(view)
        except OSError as error:
            raise _cannot_write(error, self._staged.target) from error
        self._position += len(view)

    def close(self) -> int:
        """Rename the temporary file over the target."""
        if self._state != "closed":
            self._expect_open()
            with self._staged:
                self._staged.replace()
            self._state = "closed"
        return self._position

    def abort(self) -> None:
        """Remove the temporary file."""
        if self._state == "open":
            self._state = "aborted"
            self._staged.discard()

    def _expect_open(self) -> None:
        if self._state != "open":
            raise InvalidInput(f"the writer is {self._state}", uri=self._staged.target)


def _cannot_write(error: OSError, target: str, *, exclusive: bool = False) -> LanceletError:
    """Our error for a failed write: NotFound and AlreadyExists would say something else than what happened."""
    if exclusive or error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EEXIST):
        return os_error(error, target)
    return Storage(
        f"cannot make the file: {error.strerror}", uri=target, hint="a folder of its path is a file, or gone"
    )


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
