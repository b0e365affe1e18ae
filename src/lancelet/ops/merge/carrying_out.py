"""Carrying a merge out: what the blocks of its source match is written, and the rows that leave are marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lancelet.format.fragments import Fragment
from lancelet.format.operations import KeyFilter
from lancelet.ops.delete import DeletePlan, DeleteResult, run_delete
from lancelet.ops.join.spill import SpillFile, SpillFolder
from lancelet.ops.merge.blocks import matched_blocks
from lancelet.ops.merge.by_address import ByAddress
from lancelet.ops.merge.matching import Matches
from lancelet.ops.merge.plan import MergePlan
from lancelet.ops.merge.request import Matched, WriteMode
from lancelet.ops.merge.rewrite_columns import ColumnsOut, written_fields
from lancelet.ops.merge.rewrite_rows import RowsOut
from lancelet.ops.merge.source import MergeSource
from lancelet.rows.addresses import UInt32s, UInt64s, by_fragment
from lancelet.rows.deletions import DeletionVector
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["MergeResult", "MergeStats", "run_merge"]


@dataclass(slots=True)
class MergeStats:
    """What a merge did."""

    num_inserted_rows: int = 0
    num_updated_rows: int = 0
    num_deleted_rows: int = 0
    num_attempts: int = 0
    num_files_written: int = 0
    bytes_written: int = 0
    #: Rows of the source that were passed over since one before changed the same row of the table.
    num_skipped_duplicates: int = 0


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What was written for a merge, ready to be committed."""

    stats: MergeStats
    removed: DeleteResult = field(default_factory=DeleteResult)
    new_fragments: tuple[Fragment, ...] = ()
    inserted: KeyFilter | None = None
    #: In the mode that rewrites columns: the fragments with their new files, and the rows that have new values.
    patched: tuple[Fragment, ...] = ()
    patched_offsets: Mapping[int, bytes] = field(default_factory=dict, hash=False)


class _Leaving:
    """Rows that leave the table: by fragment, so that each takes four bytes."""

    def __init__(self) -> None:
        self._offsets: dict[int, list[UInt32s]] = {}

    def add(self, addresses: UInt64s) -> None:
        """Take addresses in."""
        for number, offsets, _ in by_fragment(addresses):
            self._offsets.setdefault(number, []).append(offsets)

    def plan(self, snapshot: Snapshot) -> DeletePlan:
        """The deletion of them all."""
        fragments, rows = [], []
        known = snapshot.manifest.fragments
        for number in sorted(self._offsets):
            place = known.place_of(number)
            if place is not None:
                fragments.append(known[place])
                rows.append(DeletionVector(np.concatenate(self._offsets.pop(number))))
        return DeletePlan(snapshot.version, tuple(fragments), tuple(rows))


def run_merge(plan: MergePlan, snapshot: Snapshot, source: MergeSource) -> MergeResult:
    """Work a merge out and write its files; nothing is left of them when that fails."""
    merging = _Merging(plan, snapshot, source)
    return merging.columns() if plan.mode is WriteMode.REWRITE_COLUMNS else merging.rows()


class _Merging:
    """One attempt at a merge."""

    def __init__(self, plan: MergePlan, snapshot: Snapshot, source: MergeSource) -> None:
        self.plan, self.snapshot, self.source = plan, snapshot, source
        self.places = Places.of(snapshot)
        self.stats = MergeStats()
        self.most = max(snapshot.options.memory_budget // 8, 2**12)

    def rows(self) -> MergeResult:
        """Rows taken out and written anew."""
        leaving, updates = _Leaving(), self.plan.request.matched is Matched.UPDATE
        # What the source lacks is best read in the order of the table.
        later = updates and bool(self.plan.missing) and self.source.rows is None
        with RowsOut(self.plan, self.snapshot, self.places) as out, SpillFolder() as folder:
            new = SpillFile(folder, "new", self.source.schema)
            changed = ByAddress(self.snapshot, self.source, folder, self.most) if later else None
            for block, found in self._blocks(folder):
                leaving.add(found.changed)
                for left in found.left:
                    leaving.add(left)
                    self.stats.num_deleted_rows += len(left)
                if not updates:
                    self.stats.num_deleted_rows += len(found.changed)
                elif len(found.changed):
                    rows = block.take(pa.array(found.by))
                    self.stats.num_updated_rows += len(found.changed)
                    (changed.add if changed is not None else out.update)(rows, found.changed)
                if self.plan.request.insert:
                    self._insert(block, found, out, new)
            for rows, addresses in changed.drain() if changed is not None else ():
                out.update(rows, addresses)
            for batch in new.read():
                out.insert(pa.Table.from_batches([batch]))
            fragments = out.finish()
            removed = run_delete(leaving.plan(self.snapshot), self.places)
        self._count(fragments)
        return MergeResult(self.stats, removed, fragments, out.inserted())

    def _insert(self, block: pa.Table, found: Matches, out: RowsOut, new: SpillFile) -> None:
        rows = block if not found.known.any() else block.filter(pa.array(~found.known))
        self.stats.num_inserted_rows += rows.num_rows
        if self.source.rows is None:
            # Rows of other blocks that take the place of old ones have to come first.
            new.write(rows)
        else:
            out.insert(rows)

    def columns(self) -> MergeResult:
        """New columns beside the fragments."""
        fields = written_fields(self.plan)
        with ColumnsOut(fields, self.plan.version, self.snapshot, self.places) as out, SpillFolder() as folder:
            changed = ByAddress(self.snapshot, self.source, folder, self.most)
            for block, found in self._blocks(folder):
                changed.add(block.take(pa.array(found.by)), found.changed)
                self.stats.num_updated_rows += len(found.changed)
            for rows, addresses in changed.drain():
                out.update(rows, addresses)
            patched, offsets = tuple(out.fragments), dict(out.offsets)
        self._count(patched)
        return MergeResult(self.stats, patched=patched, patched_offsets=offsets)

    def _blocks(self, folder: SpillFolder) -> Iterator[tuple[pa.Table, Matches]]:
        for block, found in matched_blocks(self.plan, self.snapshot, self.places, self.source, folder, self.most):
            self.stats.num_skipped_duplicates += found.skipped
            yield block, found

    def _count(self, fragments: tuple[Fragment, ...]) -> None:
        files = [item.files[-1] for item in fragments]
        self.stats.num_files_written = len(files)
        self.stats.bytes_written = sum(file.file_size or 0 for file in files)
