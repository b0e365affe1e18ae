"""Merging files that hold a set of rows for each key: keys brought together in order, their sets renamed and joined.

All keys are held; sets are read, and written, for some keys at a time. Small sets of many keys are taken apart and put
together at once, as numbers; a large one goes fragment by fragment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lancelet.errors import Corrupt, LanceletError
from lancelet.index.files import StoredTable
from lancelet.index.merging import Part
from lancelet.index.sorting import equal_runs, sort_places
from lancelet.kernels import row_sets
from lancelet.rows.addresses import UInt64s
from lancelet.rows.ordering import order_of
from lancelet.rows.row_sets import RowSet, parse_row_set, union_all, write_row_set
from lancelet.rows.runs import Int64s

__all__ = ["SetsByKey", "StoredForm", "merged_sets", "stored_sets"]

#: Keys whose sets are read at once, and rows that are taken apart at once.
_KEYS_AT_ONCE, _ROWS_AT_ONCE = 512, 2**21


@dataclass(frozen=True, slots=True)
class StoredForm:
    """How a type of index stores a set of rows."""

    parse: Callable[..., RowSet] = parse_row_set
    write: Callable[[RowSet], bytes] = write_row_set
    treemap: bool = False


@dataclass(frozen=True, slots=True)
class SetsByKey:
    """One of the files to be merged."""

    part: Part
    table: StoredTable
    key_column: str
    set_column: str

    def keys(self, kind: pa.DataType) -> pa.Array:
        """All keys, in the order of the file."""
        found = self.table.read([self.key_column])[0]
        if found.type != kind:
            raise Corrupt(f"the index has keys of type {found.type}, expected {kind}", uri=self.table.uri)
        return found

    def read(self, rows: Int64s) -> list[bytes]:
        """The stored sets at some rows of the file, ascending."""
        if not len(rows):
            return []
        whole = int(rows[-1]) - int(rows[0]) + 1 == len(rows)
        wanted = slice(int(rows[0]), int(rows[-1]) + 1) if whole else rows
        found = self.table.read([self.set_column], wanted)[0]
        if found.null_count:
            raise Corrupt("a set of rows of the index is null", uri=self.table.uri, column=self.set_column)
        sets: list[bytes] = found.to_pylist()
        return sets


#: One stored set: the number of its key, and of the file it is from.
_Entry: TypeAlias = tuple[int, int, bytes]


def merged_sets(
    sources: Sequence[SetsByKey], kind: pa.DataType, form: StoredForm
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Keys of a type in their order, each once, beside the stored sets of all rows that have them; none is empty."""
    listed = [source.keys(kind) for source in sources]
    keys = pa.concat_arrays([pa.array([], kind), *listed])
    owners = np.repeat(np.arange(len(sources)), [len(one) for one in listed])
    rows = np.concatenate([np.empty(0, np.int64), *(np.arange(len(one)) for one in listed)])
    order = sort_places(keys)
    keys, owners, rows = keys.take(pa.array(order)), owners[order], rows[order]
    bounds = np.append(equal_runs(keys), len(keys))
    for first in range(0, len(bounds) - 1, _KEYS_AT_ONCE):
        cuts = bounds[first : first + _KEYS_AT_ONCE + 1]
        inside = slice(int(cuts[0]), int(cuts[-1]))
        stored = _read(sources, owners[inside], rows[inside])
        numbers = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts)).tolist()
        entries = list(zip(numbers, owners[inside].tolist(), stored, strict=True))
        kept, sets = _joined(sources, entries, len(cuts) - 1, form)
        if len(kept):
            yield keys.take(pa.array(cuts[kept])), sets


def _read(sources: Sequence[SetsByKey], owners: Int64s, rows: Int64s) -> list[bytes]:
    """The stored sets of entries, in their order."""
    found: list[bytes] = [b""] * len(rows)
    for number, source in enumerate(sources):
        places = np.flatnonzero(owners == number)
        places = places[np.argsort(rows[places])]
        for place, stored in zip(places.tolist(), source.read(rows[places]), strict=True):
            found[place] = stored
    return found


def _joined(
    sources: Sequence[SetsByKey], entries: list[_Entry], count: int, form: StoredForm
) -> tuple[Int64s, pa.Array]:
    """The numbers of the keys that have any rows left, and the stored sets of these."""
    alone = np.bincount([key for key, _, _ in entries], minlength=count) == 1
    if all(alone[key] and sources[owner].part.remap is None for key, owner, _ in entries):
        return np.arange(count), pa.array([stored for _, _, stored in entries], pa.binary())
    parsed = [(key, owner, _parsed(sources[owner], stored, form)) for key, owner, stored in entries]
    if sum(len(rows) for _, _, rows in parsed) <= _ROWS_AT_ONCE:
        return _as_numbers(sources, parsed, count, form)
    gathered: list[list[RowSet]] = [[] for _ in range(count)]
    for key, owner, rows in parsed:
        gathered[key].append(sources[owner].part.row_set(rows))
    sets = [union_all(found) for found in gathered]
    kept = np.flatnonzero([bool(rows) for rows in sets])
    return kept, pa.array([form.write(sets[key]) for key in kept.tolist()], pa.binary())


def _parsed(source: SetsByKey, stored: bytes, form: StoredForm) -> RowSet:
    try:
        return form.parse(stored)
    except LanceletError as error:
        raise error.where(uri=source.table.uri, column=source.set_column) from None


def _as_numbers(
    sources: Sequence[SetsByKey], parsed: list[tuple[int, int, RowSet]], count: int, form: StoredForm
) -> tuple[Int64s, pa.Array]:
    """The same for sets that are small enough to be taken apart."""
    names, numbers = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    for owner, source in enumerate(sources):
        own = [(key, rows.to_values()) for key, other, rows in parsed if other == owner]
        if not own:
            continue
        ids = np.concatenate([rows for _, rows in own])
        keys = np.repeat(np.array([key for key, _ in own], np.uint64), [len(rows) for _, rows in own])
        if source.part.remap is not None:
            ids, still = source.part.remap(ids)
            ids, keys = ids[still], keys[still]
        names.append(ids)
        numbers.append(keys)
    ids, keys = _rising(np.concatenate(names), np.concatenate(numbers))
    bounds = np.searchsorted(keys, np.arange(count + 1, dtype=np.uint64))
    kept = np.flatnonzero(np.diff(bounds))
    return kept, stored_sets(ids, np.append(bounds[kept], len(ids)), treemap=form.treemap)


def stored_sets(ids: UInt64s, bounds: Int64s, *, treemap: bool = False) -> pa.Array:
    """The stored set of the rows between each two bounds, in any order there.

    >>> [len(found) for found in stored_sets(np.array([3, 1, 2**32], np.uint64), np.array([0, 2, 3])).to_pylist()]
    [32, 30]
    """
    ids = ids[bounds[0] : bounds[-1]]
    bounds = bounds - bounds[0]
    rising = ids[1:] > ids[:-1]
    rising[bounds[1:-1] - 1] = True
    if not bool(rising.all()):
        groups = np.repeat(np.arange(len(bounds) - 1, dtype=np.uint64), np.diff(bounds))
        ids, groups = _rising(ids, groups)
        bounds = np.searchsorted(groups, np.arange(len(bounds), dtype=np.uint64))
    ends = np.zeros(len(bounds), np.int64)
    row_sets.measure_row_sets(ids, bounds, treemap, ends[1:])
    data = np.empty(ends[-1], np.uint8)
    row_sets.write_row_sets(ids, bounds, treemap, ends[1:], data)
    offsets = pa.py_buffer(ends.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, offsets, pa.py_buffer(data)])


def _rising(ids: UInt64s, groups: UInt64s) -> tuple[UInt64s, UInt64s]:
    """Rows in the order of their groups, and in order in each, each once."""
    order = order_of(ids)
    order = order[order_of(groups[order])]
    ids, groups = ids[order], groups[order]
    kept = np.ones(len(ids), np.bool_)
    kept[1:] = (ids[1:] != ids[:-1]) | (groups[1:] != groups[:-1])
    return ids[kept], groups[kept]
