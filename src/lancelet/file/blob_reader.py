"""BlobReader: from descriptors to the bytes they stand for, lazily or many at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from lancelet.config import Options, default_options
from lancelet.encodings.values import Bytes
from lancelet.errors import LanceletError, OverBudget
from lancelet.file.blob_file import DEFAULT_BLOB_BUFFER_SIZE, BlobFile, BlobLocation
from lancelet.file.blob_plan import BlobPlan, Ints, ObjectName, plan_blobs
from lancelet.file.blobs import parse_descriptors
from lancelet.file.location import open_parent
from lancelet.kernels import packed_rows
from lancelet.storage.paths import join_uri
from lancelet.storage.ranges import past_end
from lancelet.storage.store import Mappable, Store

__all__ = ["BlobReader"]

# Bytes fetched together unless the memory budget is small.
_WINDOW = 64 * 2**20


class BlobReader:
    """Reads the blobs of one data file, wherever their bytes lie.

    ``bases`` are the URIs of the table's bases by id, which descriptors of external blobs may name;
    ``storage_options`` serve all URIs outside the file's own store.

    >>> from lancelet.storage import open_store
    >>> store = open_store("memory://blob-reader")
    >>> store.put("a.lance", b"..hello..")
    >>> places = pa.array([{"position": 2, "size": 5}, None, {"position": 0, "size": 0}])
    >>> list(BlobReader(store, "a.lance").read_blobs(places))
    [b'hello', None, b'']
    """

    def __init__(
        self,
        store: Store,
        path: str,
        *,
        bases: Mapping[int, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        options: Options | None = None,
    ) -> None:
        self._store, self._path = store, path
        self._bases = dict(bases or {})
        self._storage_options = storage_options
        self._options = options or default_options()
        self._parents: dict[str, Store] = {}

    def locations(self, descriptors: pa.Array | pa.ChunkedArray) -> list[BlobLocation | None]:
        """Where each blob lies, None for nulls; nothing is read."""
        plan = self._plan(descriptors)
        objects = [self._place(name) for name in plan.objects]
        places: list[BlobLocation | None] = []
        rows = zip(plan.number.tolist(), plan.position.tolist(), plan.size.tolist(), strict=True)
        for number, position, size in rows:
            store, path = objects[number]
            place = BlobLocation(store, path, position, None if size < 0 else size)
            places.append(place if number >= 0 else None)
        return places

    def open(
        self, descriptors: pa.Array | pa.ChunkedArray, *, buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE
    ) -> list[BlobFile | None]:
        """A lazy file for each blob, None for nulls."""
        places = self.locations(descriptors)
        return [None if place is None else BlobFile(place, buffer_size) for place in places]

    def read_blobs(
        self, descriptors: pa.Array | pa.ChunkedArray, *, window_bytes: int | None = None
    ) -> Iterator[bytes | None]:
        """The bytes of each blob in row order, None for nulls.

        Blobs are fetched in windows of about ``window_bytes``, those of one object together; a caller that lets go of
        what it got never holds more than that or the largest blob.
        """
        plan = self._sized(self._plan(descriptors))
        budget = self._options.memory_budget
        largest = int(plan.size.max(initial=0))
        if largest > budget:
            raise OverBudget(
                f"the blob of row {int(plan.size.argmax()):,} has {largest:,} bytes, more than the memory budget "
                f"of {budget:,}",
                uri=join_uri(self._store.uri, self._path),
                hint="open it as a file and read it in pieces, or raise LANCELET_MEMORY_BUDGET",
            )
        for rows in plan.windows(min(window_bytes or _WINDOW, budget)):
            found: list[memoryview | None] = [None] * (rows.stop - rows.start)
            for row in np.flatnonzero((plan.number[rows] >= 0) & (plan.size[rows] == 0)).tolist():
                found[row] = memoryview(b"")
            groups = list(plan.by_object(rows))
            for (_, mine), pieces in zip(groups, self._fetched(plan, groups), strict=True):
                for row, piece in zip((mine - rows.start).tolist(), pieces, strict=True):
                    found[row] = piece
            yield from (None if piece is None else bytes(piece) for piece in found)

    def read_array(self, descriptors: pa.Array | pa.ChunkedArray) -> pa.LargeBinaryArray:
        """All blobs as one array."""
        plan = self._sized(self._plan(descriptors))
        total, budget = float(plan.size.astype(np.float64).sum()), self._options.memory_budget
        if total > budget:
            raise OverBudget(
                f"blobs of {total:,.0f} bytes asked for at once, more than the memory budget of {budget:,}",
                uri=join_uri(self._store.uri, self._path),
                hint="read fewer rows at a time, or raise LANCELET_MEMORY_BUDGET",
            )
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(plan.size)])
        data = np.empty(int(offsets[-1]), np.uint8)
        # Windows bound what is held besides the array itself.
        for rows in plan.windows(_WINDOW):
            groups = list(plan.by_object(rows))
            views = self._views(plan, groups)
            if views is not None:
                for (_, mine), view in zip(groups, views, strict=True):
                    packed_rows.scatter_pieces(view, plan.position[mine], plan.size[mine], data, offsets[mine])
                continue
            for (_, mine), pieces in zip(groups, self._fetched(plan, groups), strict=True):
                for start, piece in zip(offsets[mine].tolist(), pieces, strict=True):
                    data[start : start + len(piece)] = piece
        missing = plan.number < 0
        bitmap = pa.array(~missing).buffers()[1] if missing.any() else None
        buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), len(plan), buffers, int(missing.sum()))

    def _plan(self, descriptors: pa.Array | pa.ChunkedArray) -> BlobPlan:
        try:
            return plan_blobs(parse_descriptors(descriptors), self._path, self._bases)
        except LanceletError as error:
            raise error.where(uri=join_uri(self._store.uri, self._path)) from None

    def _sized(self, plan: BlobPlan) -> BlobPlan:
        def size_of(number: int) -> int:
            store, path = self._place(plan.objects[number])
            return store.size(path)

        return plan.sized(size_of)

    def _fetched(self, plan: BlobPlan, groups: Sequence[tuple[int, Ints]]) -> list[list[memoryview]]:
        """The bytes of the rows of each object: one call of the store for each."""

        def fetch(group: tuple[int, Ints]) -> list[memoryview]:
            number, rows = group
            store, path = self._place(plan.objects[number])
            return store.read(path, list(zip(plan.position[rows].tolist(), plan.size[rows].tolist(), strict=True)))

        views = self._views(plan, groups)
        if views is not None:
            return [_cut(plan, rows, view) for (_, rows), view in zip(groups, views, strict=True)]
        if len(groups) < 2:
            return [fetch(group) for group in groups]
        # One object waits for another only if more are under way than the options allow.
        with ThreadPoolExecutor(min(len(groups), self._options.io_concurrency)) as threads:
            return list(threads.map(fetch, groups))

    def _views(self, plan: BlobPlan, groups: Sequence[tuple[int, Ints]]) -> list[Bytes] | None:
        """The objects whole, if all are mapped; each must hold what its rows want of it."""
        views = []
        for number, rows in groups:
            store, path = self._place(plan.objects[number])
            if not isinstance(store, Mappable):
                return None
            view = store.view(path)
            ends = plan.position[rows] + plan.size[rows]
            last = int(ends.argmax())
            if ends[last] > len(view):
                piece = int(plan.position[rows[last]]), int(plan.size[rows[last]])
                raise past_end(piece, len(view), uri=join_uri(store.uri, path))
            views.append(np.frombuffer(view, np.uint8))
        return views

    def _place(self, found: ObjectName) -> tuple[Store, str]:
        """The store and path of an object; external objects of one directory share a store."""
        if not found.external:
            return self._store, found.name
        uri = join_uri(self._bases[found.base].rstrip("/"), found.name) if found.base else found.name
        parent, _, name = uri.rpartition("/")
        if parent not in self._parents:
            self._parents[parent] = open_parent(uri, storage_options=self._storage_options)[0]
        return self._parents[parent], name


def _cut(plan: BlobPlan, rows: Ints, view: Bytes) -> list[memoryview]:
    starts, whole = plan.position[rows], view.data
    ends = starts + plan.size[rows]
    return [whole[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
