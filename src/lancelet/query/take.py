"""Taking rows by number: by offset in the table, by row id, or by address; in any order, some more than once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import pairwise
from operator import index
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.expr import Column, Expr
from lancelet.file.workers import waiting
from lancelet.query.facts import TableFacts
from lancelet.query.flow import carried_out
from lancelet.query.gathering import gathered
from lancelet.query.layouts import Projection
from lancelet.query.opened import OpenTable, open_table
from lancelet.query.plan import outputs_of
from lancelet.query.reads import Reads, reads_at, reads_of
from lancelet.query.request import ROW_OFFSET, Columns, ScanRequest, column_named, request_for
from lancelet.query.row_ids import addresses_of
from lancelet.query.system import system_column
from lancelet.query.window import output_table
from lancelet.rows.addresses import LARGEST, NO_ADDRESS, UInt64s, as_uint64s
from lancelet.rows.ordering import order_of
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = [
    "NegativeRow",
    "Numbers",
    "RowsBy",
    "Taking",
    "columns_at",
    "take",
    "take_addresses",
    "take_live",
    "taking_of",
]

Ints: TypeAlias = npt.NDArray[np.int64]
#: Numbers of rows as users give them.
Numbers: TypeAlias = "Sequence[int] | npt.NDArray[np.integer] | pa.Array | pa.ChunkedArray"

_Columns: TypeAlias = "dict[str, pa.ChunkedArray | pa.Array]"
_AHEAD = 16


class RowsBy(Enum):
    """What a row is called by."""

    #: How many live rows come before it.
    OFFSET = "offset"
    #: Its stable id; its address in tables that have no stable ids.
    ID = "row id"
    ADDRESS = "row address"


class NegativeRow(InvalidInput, OverflowError):
    """A number below 0, or above 64 bits, where one of a row is expected."""


@dataclass(frozen=True, slots=True)
class Taking:
    """What is to be taken of rows: worked out once, used for any rows of one version."""

    schema: pa.Schema
    outputs: tuple[tuple[str, Expr], ...]
    projection: Projection
    stable_row_ids: bool

    @property
    def reads(self) -> Reads:
        """What is read for that."""
        return self.projection.reads


def take(
    snapshot: Snapshot,
    rows: Numbers,
    columns: Columns | None = None,
    *,
    by: RowsBy = RowsBy.OFFSET,
    places: Places | None = None,
) -> pa.Table:
    """Rows by number, in the order of the numbers.

    A path to a nested field gives its struct with that field alone. An offset or an address that no row can have is
    InvalidInput; rows that are deleted are passed over where they are called by id or address.

    >>> from lancelet.ops.write import create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> made = create(open_store("memory://taken"), pa.table({"x": [1, 2, 3], "y": ["a", "b", "c"]}))
    >>> take(open_snapshot(open_store("memory://taken")), [2, 0, 2], ["y"]).to_pydict()
    {'y': ['c', 'a', 'c']}
    """
    table = open_table(places or Places.of(snapshot))
    taking = table.kept(("taking", _key(columns)), lambda: taking_of(snapshot, columns, table.facts))
    numbers = numbers_of(rows)
    if by is RowsBy.OFFSET:
        return _taken(table, taking, _spots_of_offsets(table, numbers))
    if by is RowsBy.ID and taking.stable_row_ids:
        addresses = addresses_of(table, numbers)
        return _taken(table, taking, _spots(table, addresses[addresses != NO_ADDRESS]))
    return _taken(table, taking, _live(table, _spots(table, numbers)))


def take_addresses(table: OpenTable, taking: Taking, addresses: UInt64s) -> pa.Table:
    """The rows at some addresses, all of which there are."""
    return _taken(table, taking, _spots(table, addresses))


def take_live(table: OpenTable, taking: Taking, addresses: UInt64s) -> pa.Table:
    """The rows at some addresses, but for those that are deleted."""
    return _taken(table, taking, _live(table, _spots(table, addresses)))


def columns_at(table: OpenTable, projection: Projection, addresses: UInt64s) -> _Columns:
    """Some columns of the rows at some addresses, all of which there are; some addresses may come more than once."""
    if not projection.reads or not len(addresses):
        empty = projection.reads.arrow.empty_table()
        return {name: empty.column(name) for name in empty.column_names} | dict.fromkeys(
            projection.reads.system, pa.array([], pa.uint64())
        )
    return _columns_of(table, projection, _spots(table, addresses))


def _key(columns: Columns | None) -> object:
    if columns is None:
        return None
    return tuple(columns.items()) if isinstance(columns, Mapping) else tuple(columns)


def taking_of(snapshot: Snapshot, columns: Columns | None, facts: TableFacts) -> Taking:
    """What it means to take some columns."""
    if columns is None or isinstance(columns, Mapping):
        request = ScanRequest() if columns is None else request_for(snapshot, columns)
        outputs, schema = outputs_of(facts, request)
        reads = reads_of(facts.stored, [expr for _, expr in outputs])
        return Taking(schema, outputs, Projection(reads), facts.stable_row_ids)
    paths = [column_named(name, facts.bound).path for name in dict.fromkeys(columns)]
    reads = reads_at(facts.stored, set(paths))
    fields = [
        pa.field(name, pa.uint64()) if name in reads.system else reads.arrow.field(name)
        for name in dict.fromkeys(path[0] for path in paths)
    ]
    outputs = tuple((field.name, Column((field.name,), field.type)) for field in fields)
    return Taking(pa.schema(fields, reads.arrow.metadata), outputs, Projection(reads), facts.stable_row_ids)


def numbers_of(rows: Numbers) -> UInt64s:
    """Numbers of rows in one array; TypeError for what is no whole number, NegativeRow for what is out of range.

    >>> numbers_of([3, 1]).tolist()
    [3, 1]
    """
    if isinstance(rows, pa.Array | pa.ChunkedArray):
        if rows.null_count:
            raise InvalidInput(f"{rows.null_count} of the row numbers are null")
        rows = rows.to_numpy(zero_copy_only=False) if isinstance(rows, pa.Array) else rows.to_numpy()
    if isinstance(rows, np.ndarray):
        if rows.size and rows.dtype.kind not in "iub":
            raise TypeError(f"row numbers are of type {rows.dtype}, expected whole numbers")
        if rows.size and rows.dtype.kind == "i" and int(rows.min()) < 0:
            raise NegativeRow(f"row {int(rows.min())} asked for, expected none below 0")
        return as_uint64s(rows.ravel().astype(np.uint64, copy=False))
    numbers = [index(number) for number in rows]
    try:
        return np.array(numbers, np.uint64)
    except OverflowError:
        wrong = next(number for number in numbers if not 0 <= number < 1 << 64)
        raise NegativeRow(f"row {wrong} asked for, expected numbers from 0 on of 64 bits") from None


def _spots_of_offsets(table: OpenTable, offsets: UInt64s) -> UInt64s:
    """Where rows lie: the place of the fragment in the upper half, the physical offset in the lower."""
    counts = table.counts
    if len(offsets) == 1:
        asked = int(offsets[0])
        if asked >= counts.live_rows:
            raise _outside(asked, counts.live_rows)
        place = bisect_right(counts.live_end_list, asked)
        within = asked - counts.live_before(place)
        if counts.deleted[place]:
            within = int(table.fragment(place).deleted.to_physical([within])[0])
        return np.array([place << 32 | within], np.uint64)
    if not len(offsets):
        return offsets
    if int(offsets.max()) >= counts.live_rows:
        raise _outside(int(offsets.max()), counts.live_rows)
    asked_all = offsets.astype(np.int64)
    places = np.searchsorted(counts.live_ends, asked_all, "right")
    within_all = asked_all - np.concatenate(([0], counts.live_ends))[places]
    for place in np.unique(places[counts.deleted[places] > 0]).tolist():
        rows = np.flatnonzero(places == place)
        within_all[rows] = table.fragment(place).deleted.to_physical(within_all[rows])
    spots: UInt64s = (places << 32 | within_all).astype(np.uint64)
    return spots


def _outside(row: int, rows: int) -> InvalidInput:
    return InvalidInput(f"row {row:,} asked for, the table has {rows:,}", hint="rows are counted from 0")


def _spots(table: OpenTable, addresses: UInt64s) -> UInt64s:
    """The same of addresses; InvalidInput where there is no such fragment, or no such row in it."""
    counts = table.counts
    if len(addresses) == 1:
        return np.array([_spot(table, int(addresses[0]))], np.uint64)
    numbers, which = np.unique(addresses >> np.uint64(32), return_inverse=True)
    places = np.array([table.facts.place_of(number) for number in numbers.tolist()], np.int64)[which]
    offsets = (addresses & np.uint64(LARGEST)).astype(np.int64)
    outside = np.flatnonzero(offsets >= counts.physical[places])
    if len(outside):
        _spot(table, int(addresses[outside[0]]))
    spots: UInt64s = (places << 32 | offsets).astype(np.uint64)
    return spots


def _spot(table: OpenTable, address: int) -> int:
    """The same of one address."""
    number, offset = address >> 32, address & LARGEST
    place = table.facts.place_of(number)
    rows = int(table.counts.physical[place])
    if offset >= rows:
        raise InvalidInput(f"row {offset:,} of fragment {number} asked for, it has {rows:,}")
    return place << 32 | offset


def _live(table: OpenTable, spots: UInt64s) -> UInt64s:
    """Those of the rows that are not deleted."""
    if len(spots) == 1 and not table.counts.deleted[int(spots[0]) >> 32]:
        return spots
    places = (spots >> np.uint64(32)).astype(np.int64)
    dead = np.zeros(len(spots), np.bool_)
    for place in np.unique(places[table.counts.deleted[places] > 0]).tolist():
        rows = np.flatnonzero(places == place)
        dead[rows] = table.fragment(place).deleted.contains(spots[rows] & np.uint64(LARGEST))
    return spots[~dead] if dead.any() else spots


def _taken(table: OpenTable, taking: Taking, spots: UInt64s) -> pa.Table:
    """The rows at some spots, in their order."""
    if not len(spots):
        return taking.schema.empty_table()
    return output_table(taking.schema, taking.outputs, _columns_of(table, taking.projection, spots), len(spots))


def _columns_of(table: OpenTable, projection: Projection, spots: UInt64s) -> _Columns:
    """The columns of the rows at some spots, of which there is one at least."""
    if len(spots) == 1:
        spot = int(spots[0])
        return _read_one(table, projection, spot >> 32, np.array([spot & LARGEST]))
    order: Ints | None = None
    if bool(np.any(spots[1:] < spots[:-1])):
        order = order_of(spots)
        spots = spots[order]
    parts = list(_read(table, projection, spots))
    names = [*projection.reads.arrow.names, *projection.reads.system]
    return {name: gathered([part[name] for part in parts], order) for name in names}


def _read(table: OpenTable, projection: Projection, spots: UInt64s) -> Iterable[_Columns]:
    """The columns of rows that ascend, fragment by fragment."""
    places = (spots >> np.uint64(32)).astype(np.int64)
    rows = (spots & np.uint64(LARGEST)).astype(np.int64)
    bounds = [0, *(np.flatnonzero(places[1:] != places[:-1]) + 1).tolist(), len(spots)]
    tasks = (
        partial(_read_one, table, projection, place, rows[begin:end])
        for place, (begin, end) in zip(places[bounds[:-1]].tolist(), pairwise(bounds), strict=True)
    )
    if table.near:
        return (task() for task in tasks)
    return carried_out(tasks, waiting(), ahead=_AHEAD)


def _read_one(table: OpenTable, projection: Projection, place: int, rows: Ints) -> _Columns:
    stored = table.fragment(place)
    columns: _Columns = dict(stored.read(projection, rows))
    stable = table.facts.stable_row_ids
    for name in projection.reads.system:
        before = table.counts.live_before(place) if name == ROW_OFFSET else 0
        columns[name] = system_column(stored, name, rows, projection, stable=stable, live_before=before)
    return columns
