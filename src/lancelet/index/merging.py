"""Segments to be merged: their files, and what the merged index is to call the rows that they name.

Rows of a segment move, or go, while the index stays: fragments are compacted, rows are updated or deleted, fragments
are no longer covered. Whoever merges says so with a function over arrays of names; nothing else knows why.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.format.indexes import IndexDetails
from lancelet.index.answers import Domain
from lancelet.index.building import Built, Target
from lancelet.index.external_sort import rows_of
from lancelet.index.files import IndexFiles
from lancelet.rows.addresses import LARGEST, UInt64s
from lancelet.rows.row_sets import RowSet, union_all
from lancelet.storage import open_store

__all__ = ["Part", "Remap", "first_number", "keep_fragments", "new_rows_as_part"]

Bools: TypeAlias = npt.NDArray[np.bool_]
#: Given what a segment calls some rows: what the merged one calls them, in the same order, and which of them are kept.
#: The name of a row that is not kept means nothing.
Remap: TypeAlias = Callable[[UInt64s], tuple[UInt64s, Bools]]


def keep_fragments(fragments: Collection[int]) -> Remap:
    """The remap that keeps the rows of some fragments, by address, and changes no name.

    >>> names, kept = keep_fragments([1])(np.array([5, 2**32 + 7], np.uint64))
    >>> names.tolist(), kept.tolist()
    ([5, 4294967303], [False, True])
    """
    wanted = np.unique(np.array([number for number in fragments if 0 <= number <= LARGEST], np.uint64))

    def remap(names: UInt64s) -> tuple[UInt64s, Bools]:
        return names, np.isin(names >> np.uint64(32), wanted)

    return remap


@dataclass(frozen=True, slots=True)
class Part:
    """A segment to be merged."""

    files: IndexFiles
    details: IndexDetails
    #: What the segment calls its rows. The merged one has the domain that its type builds by.
    domain: Domain = Domain.ADDRESSES
    #: None where all rows are kept under their names.
    remap: Remap | None = None

    def rows(self, values: pa.Array, ids: UInt64s) -> pa.RecordBatch:
        """Entries of the segment as the merged one has them."""
        if self.remap is None:
            return rows_of(values, pa.array(ids))
        names, kept = self.remap(ids)
        if bool(kept.all()):
            return rows_of(values, pa.array(names))
        return rows_of(values.filter(pa.array(kept)), pa.array(names[kept]))

    def row_set(self, rows: RowSet) -> RowSet:
        """A set of rows as the merged segment has it."""
        if self.remap is None:
            return rows
        parts = []
        for fragment in rows.fragments:
            names, kept = self.remap(np.uint64(fragment << 32) | rows.offsets(fragment).astype(np.uint64))
            parts.append(RowSet.of(names[kept]))
        return union_all(parts)


def first_number(parts: Iterable[Part], file: str, key: str, default: int) -> int:
    """A number that the metadata of the first segment's file give: how the merged one is to be made, too."""
    return next((part.files.open(file).number(key, default) for part in parts), default)


@contextmanager
def new_rows_as_part(
    rows: Iterable[pa.RecordBatch], target: Target, build: Callable[[Iterable[pa.RecordBatch], Target], Built]
) -> Iterator[list[Part]]:
    """New rows as a segment to be merged with others, built in a folder that goes when the block ends; none of none."""
    waiting = iter(rows)
    first = next((batch for batch in waiting if batch.num_rows), None)
    if first is None:
        yield []
        return
    with tempfile.TemporaryDirectory(prefix="lancelet-merge-") as folder:
        inner = Target(open_store(folder), "new", target.version, target.memory, target.stable_row_ids)
        built = build(_behind(first, waiting), inner)
        yield [Part(IndexFiles(inner.store, inner.folder, lasting=False), built.details)]


def _behind(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from others
