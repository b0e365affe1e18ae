"""BlobReader: from descriptors to the bytes they stand for, lazily or many at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from lancelet.config import Options, default_options
from lancelet.errors import Corrupt, LanceletError, OverBudget
from lancelet.file.blob_file import DEFAULT_BLOB_BUFFER_SIZE, BlobFile, BlobLocation
from lancelet.file.blobs import BlobKind, Descriptors, parse_descriptors, sidecar_path
from lancelet.file.location import open_parent
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Mappable, Range, Store

__all__ = ["BlobReader"]

# Bytes fetched together unless the memory budget is small.
_WINDOW = 64 * 2**20
_FARTHEST = 2**63 - 1


class BlobReader:
    """Reads the blobs of one data file, wherever their bytes lie.

    ``bases`` are the URIs of the table's bases by id, which descriptors of external blobs may name;
    ``storage_options`` serve all URIs outside the file's own store.

    >>> from lancelet.storage import open_store
    >>> store = open_store("memory://blob-reader")
    >>> store.put("a.lance", b"..hello..")
    >>> places = pa.array([{"position": 2, "size": 5}, None, {"position": 0, "size": 0}])
    >>> list( BlobReader(store, "a.lance").read_blobs(places))
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
        self._parents: dict[str, tuple[Store, str]] = {}

    def locations(self, descriptors: pa.Array | pa.ChunkedArray) -> list[BlobLocation | None]:
        """Where each blob lies, None for nulls; nothing is read."""
        try:
            return self._locate(parse_descriptors(descriptors))
        except LanceletError as error:
            raise error.where(uri=join_uri(self._store.uri, self._path)) from None

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
        what it got never holds more than that and the largest blob.
        """
        places = self.locations(descriptors)
        window = window_bytes or min(_WINDOW, self._options.memory_budget)
        start = held = 0
        for row, place in enumerate(places):
            if place is None:
                continue
            if place.size is None:
                places[row] = place = place.sized()
            size = place.size or 0
            if size > self._options.memory_budget:
                budget = self._options.memory_budget
                raise OverBudget(
                    f"the blob of row {row:,} has {size:,} bytes, more than the memory budget of {budget:,}",
                    uri=place.uri,
                    hint="open it as a file and read it in pieces, or raise LANCELET_MEMORY_BUDGET",
                )
            if held and held + size > window:
                yield from map(_copied, self._fetch(places[start:row]))
                start, held = row, 0
            held += size
        yield from map(_copied, self._fetch(places[start:]))

    def read_array(self, descriptors: pa.Array | pa.ChunkedArray) -> pa.LargeBinaryArray:
        """All blobs as one array."""
        places = [None if place is None else place.sized() for place in self.locations(descriptors)]
        sizes = np.array([0 if place is None else place.size or 0 for place in places], np.int64)
        total = float(sizes.astype(np.float64).sum())
        if total > self._options.memory_budget:
            raise OverBudget(
                f"blobs of {total:,.0f} bytes asked for at once, more than the memory budget of "
                f"{self._options.memory_budget:,}",
                hint="read fewer rows at a time, or raise LANCELET_MEMORY_BUDGET",
            )
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        data = b"".join(blob for blob in self._fetch(places) if blob is not None)
        missing = np.array([place is None for place in places], np.bool_)
        bitmap = pa.array(~missing).buffers()[1] if missing.any() else None
        buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), len(places), buffers, int(missing.sum()))

    def _fetch(self, places: Sequence[BlobLocation | None]) -> Iterator[memoryview | None]:
        """Some blobs at once: one call of the store for each object."""
        rows: dict[tuple[int, str], list[int]] = {}
        for row, place in enumerate(places):
            if place is not None and place.size:
                rows.setdefault((id(place.store), place.path), []).append(row)

        def fetch(group: list[int]) -> list[memoryview]:
            chosen = [place for row in group if (place := places[row]) is not None]
            ranges: list[Range] = [(place.position, place.size or 0) for place in chosen]
            return chosen[0].store.read(chosen[0].path, ranges)

        groups = list(rows.values())
        found: list[memoryview | None] = [None if place is None else memoryview(b"") for place in places]
        if len(groups) > 1 and not isinstance(self._store, Mappable):
            # One request waits for another only if more are under way than the options allow.
            with ThreadPoolExecutor(min(len(groups), self._options.io_concurrency)) as threads:
                answers = list(threads.map(fetch, groups))
        else:
            answers = [fetch(group) for group in groups]
        for group, answer in zip(groups, answers, strict=True):
            for row, data in zip(group, answer, strict=True):
                found[row] = data
        yield from found

    def _locate(self, found: Descriptors) -> list[BlobLocation | None]:
        far = found.position.astype(np.float64) + found.size.astype(np.float64) >= _FARTHEST
        if far.any():
            row = int(np.argmax(far))
            text = f"the blob of row {row:,} has {found.size[row]:,} bytes at {found.position[row]:,}"
            raise Corrupt(f"{text}, beyond the end of any file")
        sidecars = np.unique(found.blob_id[(found.kind == BlobKind.PACKED) | (found.kind == BlobKind.DEDICATED)])
        paths = {number: sidecar_path(self._path, number) for number in sidecars.tolist()}
        columns = (found.valid, found.kind, found.position, found.size, found.blob_id)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        places: list[BlobLocation | None] = []
        for row, (valid, kind, position, size, number) in enumerate(rows):
            if not valid:
                places.append(None)
            elif kind == BlobKind.EXTERNAL:
                store, path = self._external(number, found.uri[row].as_py())
                places.append(BlobLocation(store, path, position, size or None))
            else:
                path = self._path if kind == BlobKind.INLINE else paths[number]
                places.append(BlobLocation(self._store, path, position, size))
        return places

    def _external(self, base: int, uri: str) -> tuple[Store, str]:
        """The store and path of an external object; objects of one directory share a store."""
        if base:
            if base not in self._bases:
                raise Corrupt(f"an external blob names base {base}, the table has {sorted(self._bases) or 'none'}")
            uri = join_uri(self._bases[base].rstrip("/"), uri)
        parent, _, name = uri.rpartition("/")
        if parent not in self._parents:
            self._parents[parent] = open_parent(uri, storage_options=self._storage_options)
        return self._parents[parent][0], name


def _copied(data: memoryview | None) -> bytes | None:
    return None if data is None else bytes(data)
