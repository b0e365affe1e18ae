"""Blocks of a merge: pieces of the source that fit memory, each with those rows of the table that may have its keys.

A source in memory is one block, held against the table as it is scanned. One on disk was divided by its keys; the
keys of the table are divided in the same way, so that each partition meets one other. A partition that is still too
large is divided by further bits, and where one key makes it large, taken in several blocks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lancelet.ops.join.codes import Mask
from lancelet.ops.join.spill import Partitions, SpillFile, SpillFolder, bits_of
from lancelet.ops.merge.matching import Matches, ambiguous, match_block
from lancelet.ops.merge.plan import MergePlan
from lancelet.ops.merge.request import Duplicates
from lancelet.ops.merge.source import PARTITION_BITS, MergeSource, key_columns, words_of
from lancelet.ops.merge.target import TargetRows, scan_target, target_rows
from lancelet.rows.addresses import UInt64s
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["matched_blocks"]

#: Dividing by more bits than this is given up: what is together then has one key.
_MOST_BITS = 48


def matched_blocks(
    plan: MergePlan, snapshot: Snapshot, places: Places, source: MergeSource, folder: SpillFolder, most: int
) -> Iterator[tuple[pa.Table, Matches]]:
    """Each block of the source, of about ``most`` bytes, with what it matches."""
    scan = scan_target(plan, snapshot, places)
    if source.rows is not None:
        windows: Iterator[TargetRows] = (target_rows(plan, table) for table in scan)
        yield source.rows, match_block(plan, source.rows, windows)
        return
    blocks = _Blocks(plan, folder, most)
    targets = blocks.divided(scan)
    for number, part in enumerate(source.partitions):
        yield from blocks.partition(part, targets[number] if targets else None, PARTITION_BITS)


class _Blocks:
    """The partitions of one merge."""

    def __init__(self, plan: MergePlan, folder: SpillFolder, most: int) -> None:
        self._plan, self._folder, self._most = plan, folder, most
        self._names = 0

    def divided(self, scan: Iterator[pa.Table]) -> list[SpillFile]:
        """The rows of the table by the words of their keys; none where it has no rows."""
        found: Partitions | None = None
        for table in scan:
            if found is None:
                found = self._partitions(table.schema)
            for batch in table.to_batches():
                found.add(batch, bits_of(words_of(target_rows(self._plan, batch).keys), PARTITION_BITS))
        return [] if found is None else found.finish()

    def _partitions(self, schema: pa.Schema) -> Partitions:
        self._names += 1
        return Partitions(self._folder, f"part-{self._names}", schema, 1 << PARTITION_BITS)

    def partition(self, source: SpillFile, target: SpillFile | None, used: int) -> Iterator[tuple[pa.Table, Matches]]:
        """The blocks of one partition."""
        finer = self._finer(source, used) if source.nbytes > self._most and used < _MOST_BITS else None
        if finer is None:
            yield from self._in_blocks(source, target)
        else:
            targets = None if target is None else self._finer_target(target, used)
            for number, part in enumerate(finer):
                yield from self.partition(part, None if targets is None else targets[number], used + PARTITION_BITS)
                part.remove()
        if target is not None:
            target.remove()

    def _finer(self, source: SpillFile, used: int) -> list[SpillFile] | None:
        """A partition divided by the next bits; None where that does not help."""
        parts = self._partitions(source.schema)
        for batch in source.read():
            parts.add(batch, bits_of(words_of(key_columns(batch, self._plan.keys)), PARTITION_BITS, used))
        files = parts.finish()
        if max(file.num_rows for file in files) < source.num_rows:
            return files
        for file in files:
            file.remove()
        return None

    def _finer_target(self, target: SpillFile, used: int) -> list[SpillFile]:
        parts = self._partitions(target.schema)
        for batch in target.read():
            parts.add(batch, bits_of(words_of(target_rows(self._plan, batch).keys), PARTITION_BITS, used))
        return parts.finish()

    def _in_blocks(self, source: SpillFile, target: SpillFile | None) -> Iterator[tuple[pa.Table, Matches]]:
        counts = list(_counts(source, self._most))
        if not counts and target is not None:
            # No row of the source is here, but rows of the table may have to go for that.
            yield source.schema.empty_table(), self._match(source.schema.empty_table(), target, None, last=True)
        several = len(counts) > 1
        spared: Mask | None = np.zeros(target.num_rows if target is not None else 0, np.bool_) if several else None
        seen: list[UInt64s] = []
        for number, block in enumerate(_blocks(source, counts)):
            found = self._match(block, target, spared, last=number + 1 == len(counts))
            if several:
                self._check_once(block, found, seen)
            yield block, found

    def _match(self, block: pa.Table, target: SpillFile | None, spared: Mask | None, *, last: bool) -> Matches:
        windows = (target_rows(self._plan, batch) for batch in target.read()) if target is not None else iter(())
        return match_block(self._plan, block, windows, spared=spared, last=last)

    def _check_once(self, block: pa.Table, found: Matches, seen: list[UInt64s]) -> None:
        """Blocks before may have changed the same rows of the table."""
        for before in seen:
            again = np.isin(found.changed, before)
            if again.any():
                if self._plan.request.duplicates is Duplicates.FAIL:
                    raise ambiguous(self._plan, block, int(found.by[again][0]))
                found.skipped += int(again.sum())
                found.changed, found.by = found.changed[~again], found.by[~again]
        seen.append(found.changed)


def _counts(source: SpillFile, most: int) -> Iterator[int]:
    """How many batches of a file make each block."""
    count, size = 0, 0
    for batch in source.read():
        if count and size + batch.nbytes > most:
            yield count
            count, size = 0, 0
        count += 1
        size += batch.nbytes
    if count:
        yield count


def _blocks(source: SpillFile, counts: list[int]) -> Iterator[pa.Table]:
    batches = source.read()
    for count in counts:
        held = [batch for _, batch in zip(range(count), batches, strict=False)]
        yield pa.Table.from_batches(held, source.schema).combine_chunks()
