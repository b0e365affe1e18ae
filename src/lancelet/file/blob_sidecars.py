"""Sidecars: the files beside a data file that hold its larger blobs, one after another and without any framing."""

from __future__ import annotations

from types import TracebackType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.file.blob_descriptors import BlobDescriptor, packed_array, prepared_field
from lancelet.file.blobs import BlobKind, sidecar_path
from lancelet.storage.paths import join_uri, split_uri
from lancelet.storage.store import Data, Store, Writer, as_bytes

__all__ = ["DedicatedBlobWriter", "PackedBlobWriter", "Sidecars", "binary_parts", "runs"]

Sizes = npt.NDArray[np.int64]


class _SidecarWriter:
    """One sidecar being written; it appears whole when it is finished."""

    def __init__(self, store: Store, data_path: str, blob_id: int) -> None:
        self._path = sidecar_path(data_path, blob_id)
        self._blob_id = blob_id
        self._uri = join_uri(store.uri, self._path)
        self._output: Writer = store.writer(self._path)
        self._finished = False

    @property
    def blob_id(self) -> int:
        """The id under which descriptors name the sidecar."""
        return self._blob_id

    @property
    def path(self) -> str:
        """The sidecar's path in its file system or bucket."""
        scheme, rest = split_uri(self._uri)
        return (rest if scheme in ("", "file", "memory") else rest.partition("/")[2]).lstrip("/")

    def abort(self) -> None:
        """Give up: no sidecar appears."""
        if not self._finished:
            self._finished = True
            self._output.abort()

    def _open(self) -> Writer:
        if self._finished:
            raise InvalidInput(f"the {type(self).__name__} is already finished", uri=self._uri)
        return self._output

    def _publish(self) -> None:
        output = self._open()
        try:
            output.close()
        except BaseException:
            self.abort()
            raise
        self._finished = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()


class PackedBlobWriter(_SidecarWriter):
    """Writes many blobs into one sidecar. As a context manager it discards the sidecar unless it was finished.

    >>> from lancelet.storage import open_store
    >>> with PackedBlobWriter(open_store("memory://blobs"), "a.lance", 1) as writer:
    ...     writer.write_blob(b"hello")
    ...     writer.write_blob(b"you")
    ...     writer.finish()
    [Packed { blob_id: 1, offset: 0, size: 5 }, Packed { blob_id: 1, offset: 5, size: 3 }]
    """

    def __init__(self, store: Store, data_path: str, blob_id: int) -> None:
        super().__init__(store, data_path, blob_id)
        self._sizes: list[Sizes] = []
        self._valid: list[npt.NDArray[np.bool_]] = []
        self._field: pa.Field | None = None

    def __enter__(self) -> PackedBlobWriter:
        return self

    @property
    def field(self) -> pa.Field:
        """The field of the array that :meth:`finish_array` made."""
        if self._field is None:
            raise InvalidInput("PackedBlobWriter.field is available after finish_array", uri=self._uri)
        return self._field

    def write_blob(self, data: Data) -> None:
        """Append one blob."""
        view = as_bytes(data)
        self._open().write(view)
        self._sizes.append(np.array([view.nbytes]))
        self._valid.append(np.ones(1, np.bool_))

    def write_blobs(self, payloads: pa.Array | pa.ChunkedArray) -> None:
        """Append every value of a binary array; nulls stay nulls."""
        if not isinstance(payloads, pa.Array | pa.ChunkedArray):
            raise InvalidInput(f"payloads must be a binary array, got {type(payloads).__name__}", uri=self._uri)
        for array in payloads.chunks if isinstance(payloads, pa.ChunkedArray) else (payloads,):
            data, starts, sizes = binary_parts(array)
            output = self._open()
            for start, size in runs(starts, sizes):
                output.write(data[start : start + size].data)
            self._sizes.append(sizes)
            self._valid.append(np.asarray(array.is_valid()))

    def finish(self) -> list[BlobDescriptor]:
        """Publish the sidecar; the descriptors of its blobs, in the order of writing."""
        offsets, sizes, valid = self._finish()
        return [
            BlobDescriptor(BlobKind.PACKED, blob_id=self._blob_id, offset=offset, size=size)
            if there
            else BlobDescriptor()
            for offset, size, there in zip(offsets.tolist(), sizes.tolist(), valid.tolist(), strict=True)
        ]

    def finish_array(self, field_name: str) -> pa.StructArray:
        """Publish the sidecar; its blobs as a column for the data file's writer."""
        offsets, sizes, valid = self._finish()
        self._field = prepared_field(field_name)
        return packed_array(self._blob_id, offsets, sizes, valid)

    def _finish(self) -> tuple[Sizes, Sizes, npt.NDArray[np.bool_]]:
        self._publish()
        sizes = np.concatenate([np.zeros(0, np.int64), *self._sizes])
        return np.cumsum(sizes) - sizes, sizes, np.concatenate([np.zeros(0, np.bool_), *self._valid])


class DedicatedBlobWriter(_SidecarWriter):
    """Writes one blob, piece by piece, into a sidecar of its own. As a context manager it discards it unless finished.

    >>> from lancelet.storage import open_store
    >>> with DedicatedBlobWriter(open_store("memory://blobs"), "a.lance", 2) as writer:
    ...     writer.write(b"first, ")
    ...     writer.write(b"second")
    ...     writer.finish()
    Dedicated { blob_id: 2, size: 13 }
    """

    def __enter__(self) -> DedicatedBlobWriter:
        return self

    def write(self, data: Data) -> None:
        """Append bytes to the blob."""
        self._open().write(as_bytes(data))

    def finish(self) -> BlobDescriptor:
        """Publish the sidecar; the blob's descriptor."""
        size = self._open().position
        self._publish()
        return BlobDescriptor(BlobKind.DEDICATED, blob_id=self._blob_id, size=size)


class Sidecars:
    """All sidecars of one data file that is being written: hands out ids, and takes everything back on abort."""

    def __init__(self, store: Store, data_path: str) -> None:
        self._store, self._data_path = store, data_path
        self._next_id = 1
        self._open: dict[int, Writer] = {}
        self._published: list[str] = []

    def start(self) -> tuple[int, Writer]:
        """A new sidecar: its id and what writes it. It is published by :meth:`finish` of its id, or of all."""
        blob_id = self._next_id
        writer = self._store.writer(sidecar_path(self._data_path, blob_id))
        self._next_id += 1
        self._open[blob_id] = writer
        return blob_id, writer

    def finish(self, blob_id: int) -> None:
        """Publish one sidecar."""
        self._open[blob_id].close()
        del self._open[blob_id]
        self._published.append(sidecar_path(self._data_path, blob_id))

    def finish_all(self) -> None:
        """Publish what is still open: to be called before the data file is published, which refers to them."""
        for blob_id in list(self._open):
            self.finish(blob_id)

    def abort(self) -> None:
        """Discard all sidecars, published or not."""
        while self._open:
            self._open.popitem()[1].abort()
        published, self._published = self._published, []
        if published:
            self._store.delete(published)


def binary_parts(array: pa.Array) -> tuple[npt.NDArray[np.uint8], Sizes, Sizes]:
    """The bytes of a binary array, and where in them each value starts and how long it is; nulls have no length."""
    kind = array.type
    if pat.is_fixed_size_binary(kind):
        sizes = np.where(np.asarray(array.is_valid()), kind.byte_width, 0)
        data = array.buffers()[1]
        starts = (np.arange(len(array), dtype=np.int64) + array.offset) * kind.byte_width
        return _bytes_of(data), starts, sizes
    if pat.is_binary_view(kind):
        array, kind = array.cast(pa.large_binary()), pa.large_binary()
    if not (pat.is_binary(kind) or pat.is_large_binary(kind)):
        raise InvalidInput(f"blobs come in a binary array, got one of type {kind}")
    dtype = np.dtype(np.int64 if pat.is_large_binary(kind) else np.int32)
    _, offsets, data = array.buffers()
    if not len(array) or offsets is None:
        return np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64)
    bounds = np.frombuffer(offsets, dtype, len(array) + 1, array.offset * dtype.itemsize).astype(np.int64)
    sizes = np.diff(bounds)
    if array.null_count:
        sizes = np.where(np.asarray(array.is_valid()), sizes, 0)
    return _bytes_of(data), bounds[:-1], sizes


def _bytes_of(buffer: pa.Buffer | None) -> npt.NDArray[np.uint8]:
    return np.zeros(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)


def runs(starts: Sizes, sizes: Sizes) -> list[tuple[int, int]]:
    """Values that lie side by side, joined."""
    there = np.flatnonzero(sizes)
    if not len(there):
        return []
    starts, ends = starts[there], (starts + sizes)[there]
    breaks = np.flatnonzero(starts[1:] != ends[:-1]) + 1
    firsts = starts[np.concatenate([[0], breaks])]
    lasts = ends[np.concatenate([breaks - 1, [len(ends) - 1]]).astype(np.int64)]
    return list(zip(firsts.tolist(), (lasts - firsts).tolist(), strict=True))
