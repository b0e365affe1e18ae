"""Matching: which rows of a fragment the other version does not have, and which it has otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lancelet.format import operations as op
from lancelet.format.fields import Schema
from lancelet.format.fragments import Fragment
from lancelet.ops.changes.history import steps_between
from lancelet.ops.changes.plan import ChangesPlan, Side
from lancelet.ops.changes.request import Pair
from lancelet.query.layouts import Projection
from lancelet.query.opened import OpenTable, open_table
from lancelet.query.reads import reads_at
from lancelet.query.request import LAST_UPDATED_AT, ROW_ID
from lancelet.query.stored import StoredFragment
from lancelet.query.system import system_column
from lancelet.query.take import columns_at
from lancelet.rows.addresses import NO_ADDRESS
from lancelet.rows.bitmaps import parse_bitmap, to_values
from lancelet.rows.row_id_index import RowIdIndex, build_row_id_index

__all__ = ["Matched", "Matching"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
#: Rows that are looked at together.
_CHUNK = 1 << 18
_LINEAGE = ("inline_row_ids", "inline_created_at_versions", "inline_last_updated_at_versions")
_UPDATED = Projection(reads_at(Schema(()), {(LAST_UPDATED_AT,)}))


@dataclass(frozen=True, slots=True)
class Matched:
    """Changed rows of a fragment, ascending, and which of them the other version has, too."""

    offsets: Ints
    shared: Bools


class Matching:
    """One version's rows held against the other's."""

    def __init__(self, plan: ChangesPlan, pair: Pair, side: Side) -> None:
        places = (pair.before_places, pair.after_places)
        own, other = places if side is Side.BEFORE else places[::-1]
        assert own is not None
        self.plan, self.pair = plan, pair
        self.own = open_table(own)
        self.other = None if other is None else open_table(other)
        self._others = plan.changed[Side.AFTER if side is Side.BEFORE else Side.BEFORE]
        self._written: Mapping[int, Ints | None] | None = None

    def changes(self, stored: StoredFragment) -> Iterator[Matched]:
        """The changed rows of a fragment, a bounded number at a time."""
        for start in range(0, stored.physical_rows, _CHUNK):
            stop = min(start + _CHUNK, stored.physical_rows)
            offsets = stored.deleted.live_offsets(start, stop).astype(np.int64)
            found = self._by_id(stored, offsets) if self.plan.stable_row_ids else self._by_address(stored, offsets)
            if len(found.offsets):
                yield found

    def _twin(self, stored: StoredFragment) -> StoredFragment | None:
        """The fragment of the same id in the other version."""
        if self.other is None:
            return None
        place = self.other.counts.places.get(stored.fragment.id)
        return None if place is None else self.other.fragment(place)

    def _by_id(self, stored: StoredFragment, offsets: Ints) -> Matched:
        twin = self._twin(stored)
        if twin is not None and _same_lineage(stored.fragment, twin.fragment):
            # What lives on in both is the same row, and was not changed.
            offsets = offsets[twin.deleted.contains(offsets)]
        if self.other is None or not self._others or not len(offsets):
            return Matched(offsets, np.zeros(len(offsets), np.bool_))
        addresses = _index(self.other, self._others).lookup(_known(stored, ROW_ID, offsets))
        shared = addresses != NO_ADDRESS
        here = _known(stored, LAST_UPDATED_AT, offsets[shared])
        there = np.asarray(columns_at(self.other, _UPDATED, addresses[shared])[LAST_UPDATED_AT])
        changed = ~shared
        changed[shared] = here != there
        return Matched(offsets[changed], shared[changed])

    def _by_address(self, stored: StoredFragment, offsets: Ints) -> Matched:
        twin = self._twin(stored)
        if twin is None:
            return Matched(offsets, np.zeros(len(offsets), np.bool_))
        shared = ~twin.deleted.contains(offsets)
        changed = ~shared
        if self._values_differ(stored.fragment, twin.fragment):
            if self._written is None:
                self._written = _written_rows(self.pair)
            written = self._written.get(stored.fragment.id)
            changed |= True if written is None else np.isin(offsets, written)
        return Matched(offsets[changed], shared[changed])

    def _values_differ(self, one: Fragment, other: Fragment) -> bool:
        """Whether some column of the later version lies in another file than before."""
        fields = {item.id for item in self.pair.after.schema.walk()}
        return _where(one, fields) != _where(other, fields)


def _known(stored: StoredFragment, name: str, offsets: Ints) -> npt.NDArray[np.uint64]:
    found: npt.NDArray[np.uint64] = np.asarray(
        system_column(stored, name, offsets, _UPDATED, stable=True, live_before=0)
    )
    return found


def _same_lineage(one: Fragment, other: Fragment) -> bool:
    """Whether the manifests say the same of every row."""
    return one.inline_row_ids is not None and all(getattr(one, name) == getattr(other, name) for name in _LINEAGE)


def _index(table: OpenTable, fragments: tuple[int, ...]) -> RowIdIndex:
    """Where rows of some fragments lie, kept for as long as the table is open."""

    def make() -> RowIdIndex:
        opened = (table.fragment(table.facts.place_of(number)) for number in fragments)
        return build_row_id_index((stored.fragment.id, stored.all_row_ids, stored.deleted) for stored in opened)

    return table.kept(("changes", fragments), make)


def _where(fragment: Fragment, fields: set[int]) -> dict[int, tuple[int | None, str]]:
    """The file of each field."""
    return {number: (file.base_id, file.path) for file in fragment.files for number in file.fields if number in fields}


def _written_rows(pair: Pair) -> dict[int, Ints | None]:
    """Rows that got new values where they lie, by fragment, as far as their writers told; None for all rows."""
    found: dict[int, Ints | None] = {}
    for step in steps_between(pair.begin, pair.after):
        match step.operation:
            case op.Update() as update:
                for item in update.updated_fragments:
                    told = _offsets_of(update, item.id)
                    before = found.get(item.id, np.empty(0, np.int64))
                    found[item.id] = None if told is None or before is None else np.union1d(before, told)
            case op.Merge() | op.DataReplacement() | op.Restore() | None:
                return {}
    return found


def _offsets_of(update: op.Update, fragment: int) -> Ints | None:
    bitmap = update.updated_offset_bitmaps.get(fragment)
    if bitmap is not None:
        return to_values(parse_bitmap(bitmap, f"updated rows of fragment {fragment}")).astype(np.int64)
    told = update.updated_offsets.get(fragment)
    return None if told is None else np.asarray(told, np.int64)
