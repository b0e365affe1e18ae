"""One task of a compaction: the rows of some fragments that are not deleted, in new fragments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lancelet.errors import Corrupt, Unsupported
from lancelet.events import emit, span
from lancelet.expr import Column
from lancelet.file.file_writer import PAGE_BYTES
from lancelet.format.arrow import schema_to_arrow
from lancelet.format.fragments import Fragment
from lancelet.format.versions import FileVersion
from lancelet.ops.blob_carrier import BlobCarrier, has_blobs
from lancelet.ops.cancellation import check_cancelled
from lancelet.ops.compaction.bins import rows_of_files
from lancelet.ops.compaction.copying import copy_fragments, files_to_copy
from lancelet.ops.compaction.lineage import with_lineage
from lancelet.ops.compaction.options import CompactionOptions
from lancelet.ops.data_files import Destination, FragmentWriter, Limits, discard
from lancelet.ops.destinations import base_uris
from lancelet.ops.fitting import conformed
from lancelet.ops.job import Cost
from lancelet.ops.working import AtVersion
from lancelet.query.facts import facts_of
from lancelet.query.request import ROW_ADDRESS, ScanRequest, bound_schema
from lancelet.query.scan import plan_scan, tables_of
from lancelet.query.stored import open_fragment
from lancelet.rows.addresses import LARGEST, as_uint64s
from lancelet.rows.moves import Move, Source
from lancelet.storage.store import Store
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["CompactFragments", "Compacted"]

_BATCH_ROWS = 2**17
_LARGEST_FILE = 90 * 2**30
#: Of all that a task holds, what columns hold back before they write a page, and what is read ahead.
_HELD, _READ = 4, 2


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a task made: fragments that nothing refers to yet, and which rows of which others are in them."""

    read_version: int
    original: tuple[Fragment, ...]
    #: Without ids, in the order of their rows.
    new: tuple[Fragment, ...]
    #: The originals with their rows, and those of them that were deleted.
    sources: tuple[Source, ...]

    def move(self, ids: tuple[int, ...]) -> Move:
        """Where the rows went, when the new fragments have got their ids."""
        return Move(self.sources, tuple((n, item.physical_rows or 0) for n, item in zip(ids, self.new, strict=True)))


@dataclass(frozen=True, slots=True)
class CompactFragments:
    """Write the rows of some fragments anew that are not deleted, in their order."""

    id: str
    cost: Cost
    at: AtVersion
    fragments: tuple[Fragment, ...]
    options: CompactionOptions
    version: FileVersion

    def run(self, store: Store) -> Compacted:
        """Write the new files; nothing is left of them when that fails."""
        snapshot = self.at.open(store)
        places = Places.of(snapshot)
        sources = tuple(_source(places, item) for item in self.fragments)
        rows = sum(item.survivors for item in sources)
        made = self._copied(snapshot, places)
        if made is None:
            made = self._written(snapshot, places, rows)
        written = sum(item.physical_rows or 0 for item in made)
        if written != rows:
            discard([Destination(snapshot.store)], [file for item in made for file in item.files])
            raise Corrupt(f"{written} rows were read, expected {rows}", uri=store.uri, version=self.at.version)
        if facts_of(snapshot.manifest).stable_row_ids:
            made = with_lineage(places, self.fragments, sources, made)
        return Compacted(snapshot.version, self.fragments, tuple(made), sources)

    def _copied(self, snapshot: Snapshot, places: Places) -> list[Fragment] | None:
        """The new fragments, of whole pages; None where that is not asked for, or rows have to be decoded."""
        if self.options.mode == "reencode":
            return None
        files = files_to_copy(places, snapshot.schema, self.version, self.fragments)
        if not isinstance(files, str):
            return copy_fragments(snapshot.store, snapshot.schema, self.version, files, self.options)
        if self.options.mode == "force_binary_copy":
            hint = "use try_binary_copy to decode what cannot be copied"
            raise Unsupported(f"pages cannot be copied: {files}", uri=snapshot.uri, hint=hint)
        emit("compaction.reencoded", task=self.id, uri=snapshot.uri, reason=files)
        return None

    def _written(self, snapshot: Snapshot, places: Places, rows: int) -> list[Fragment]:
        facts = {"task": self.id, "uri": snapshot.uri}
        with span("compaction.task", total=rows, **facts) as work, self._writer(snapshot) as writer:
            planned = _Planned(writer, rows_of_files(rows, self.options.target_rows_per_fragment))
            for batch in self._rows(snapshot, places):
                check_cancelled()
                planned.write(batch)
                work.advance(batch.num_rows, **facts)
            return writer.finish()

    def _writer(self, snapshot: Snapshot) -> FragmentWriter:
        limits = Limits(
            rows_per_file=LARGEST + 1,
            bytes_per_file=self.options.max_bytes_per_file or _LARGEST_FILE,
            rows_per_batch=self.options.batch_size or _BATCH_ROWS,
            cache_bytes=self._held(snapshot),
        )
        bases = base_uris(snapshot.manifest.base_paths)
        return FragmentWriter(snapshot.store, snapshot.schema, self.version, limits, bases=bases)

    def _held(self, snapshot: Snapshot) -> int | None:
        """What all columns together may hold back; None for as much as they would."""
        usual = PAGE_BYTES * max(len(snapshot.schema.fields), 1)
        share = self.cost.memory // _HELD
        return share if 0 < share < usual else None

    def _rows(self, snapshot: Snapshot, places: Places) -> Iterator[pa.RecordBatch]:
        """The rows as a writer takes them, with their blobs."""
        most = self.options.batch_size or _BATCH_ROWS
        for batch in conformed(self._batches(snapshot, places), schema_to_arrow(snapshot.schema)):
            for start in range(0, batch.num_rows, most):
                yield batch.slice(start, most)

    def _batches(self, snapshot: Snapshot, places: Places) -> Iterator[pa.RecordBatch]:
        bound, names = bound_schema(snapshot.schema), schema_to_arrow(snapshot.schema).names
        blobs = has_blobs(snapshot.schema)
        columns = tuple((name, Column((name,), bound.field(name).type)) for name in names)
        if blobs:
            columns = (*columns, (ROW_ADDRESS, Column((ROW_ADDRESS,), pa.uint64())))
        ids = tuple(item.id for item in self.fragments)
        plan = plan_scan(snapshot, ScanRequest(columns=columns, fragments=ids, batch_size=_BATCH_ROWS))
        if self.cost.memory:
            plan = replace(plan, memory_budget=max(self.cost.memory // _READ, 1))
        carrier = BlobCarrier(snapshot, places)
        for table in tables_of(plan, places):
            if blobs:
                addresses = as_uint64s(table.column(ROW_ADDRESS).to_numpy())
                yield from carrier.batches(table.select(names), addresses)
            else:
                yield from table.to_batches()


class _Planned:
    """Writes files of a number of rows each; where one is full of bytes before that, into more of them."""

    def __init__(self, writer: FragmentWriter, sizes: Sequence[int]) -> None:
        self._writer = writer
        self._sizes = iter(sizes)
        self._left = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows in."""
        start = 0
        while start < batch.num_rows:
            self._left = self._left or next(self._sizes, LARGEST)
            piece = batch.slice(start, self._left)
            self._writer.write(piece)
            start += piece.num_rows
            self._left -= piece.num_rows
            if not self._left:
                self._writer.cut()


def _source(places: Places, fragment: Fragment) -> Source:
    stored = open_fragment(places, fragment)
    return Source(fragment.id, stored.physical_rows, stored.deleted)
