"""A remote object being written: parts go up while the next are collected; close publishes, abort leaves nothing."""

from __future__ import annotations

import os
import queue
import threading
import weakref
from collections.abc import Callable, Iterator
from types import TracebackType

from lancelet.errors import InvalidInput, Storage
from lancelet.storage.store import Data, Writer, as_bytes

__all__ = ["PARTS_IN_FLIGHT", "PART_BYTES", "RemoteWriter"]

#: S3 takes 10,000 parts of equal size: with 12 MiB an object may have 120 GB, more than any data file.
PART_BYTES = 12 * 2**20
#: Parts being sent at once. With one waiting and one being collected, a writer holds at most six parts.
PARTS_IN_FLIGHT = 4

Put = Callable[[bytearray], None]
PutParts = Callable[[Iterator[bytearray]], None]


class _Aborted(RuntimeError):
    """Thrown into the engine's upload, which then discards the parts it has sent."""


class _Upload:
    """A multipart upload on a thread of its own, fed through a queue. Knows nothing of the writer that feeds it."""

    def __init__(self, put_parts: PutParts) -> None:
        self._parts: queue.Queue[bytearray | _Aborted | None] = queue.Queue(maxsize=1)
        self._put_parts = put_parts
        self._error: BaseException | None = None
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="lancelet-upload", daemon=True)
        self._thread.start()

    def send(self, part: bytearray | _Aborted | None) -> None:
        """Hand over a part, None for the end, or the reason to stop; waits while earlier parts are on their way."""
        while self._thread.is_alive():
            try:
                self._parts.put(part, timeout=0.2)
            except queue.Full:
                continue
            return
        if self._error is not None and not isinstance(part, _Aborted):
            raise self._error

    def finish(self) -> None:
        """Publish what was sent."""
        self.send(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def discard(self) -> None:
        """Stop and remove what was sent; a forked child leaves its parent's upload alone."""
        if os.getpid() == self._process and self._thread.is_alive():
            self.send(_Aborted())
            self._thread.join()

    def _iterate(self) -> Iterator[bytearray]:
        while (part := self._parts.get()) is not None:
            if isinstance(part, _Aborted):
                raise part
            yield part

    def _run(self) -> None:
        try:
            self._put_parts(self._iterate())
        except _Aborted:
            pass
        except BaseException as error:  # noqa: BLE001 - kept for the writer's thread, which raises it
            self._error = error


class RemoteWriter:
    """Collects bytes into parts. An object of one part is a single put; a bigger one is a multipart upload.

    Belongs to the process that made it: a forked child may neither write to it nor close it.
    """

    def __init__(self, uri: str, put: Put, put_parts: PutParts) -> None:
        self._uri = uri
        self._put = put
        self._put_parts = put_parts
        self._buffer = bytearray()
        self._position = 0
        self._state = "open"
        self._upload: _Upload | None = None
        self._process = os.getpid()

    @property
    def position(self) -> int:
        """Bytes written so far."""
        return self._position

    def write(self, data: Data) -> None:
        """Append a copy of ``data``; waits while too many parts are on their way."""
        self._expect_open()
        view = as_bytes(data)
        self._position += len(view)
        at = 0
        while at < len(view):
            taken = min(PART_BYTES - len(self._buffer), len(view) - at)
            self._buffer += view[at : at + taken]
            at += taken
            if len(self._buffer) == PART_BYTES:
                self._send()

    def close(self) -> int:
        """Publish the object and return its size."""
        if self._state == "closed":
            return self._position
        self._expect_open()
        # A failed close leaves nothing to close again: whether the object was published is then unknown.
        self._state = "failed"
        if self._upload is None:
            self._put(self._buffer)
        else:
            if self._buffer:
                self._upload.send(self._buffer)
            self._upload.finish()
        self._buffer = bytearray()
        self._state = "closed"
        return self._position

    def abort(self) -> None:
        """Discard what was written."""
        if self._state != "closed":
            self._state = "aborted"
            self._buffer = bytearray()
            if self._upload is not None:
                self._upload.discard()

    def _send(self) -> None:
        if self._upload is None:
            self._upload = _Upload(self._put_parts)
            # A writer that is dropped without close or abort must not leave its thread and parts behind.
            weakref.finalize(self, self._upload.discard)
        part, self._buffer = self._buffer, bytearray()
        self._upload.send(part)

    def _expect_open(self) -> None:
        if self._state != "open":
            raise InvalidInput(f"the writer is {self._state}", uri=self._uri)
        if os.getpid() != self._process:
            raise Storage("the writer belongs to the process that this one was forked from", uri=self._uri)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            try:
                self.close()
            except BaseException:
                self.abort()
                raise
        else:
            self.abort()
