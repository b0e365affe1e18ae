"""Searching a BLOOMFILTER index: the zones whose filters may hold one of the values; their rows must be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import Corrupt
from lancelet.index.answers import Answer, Domain, Statistics
from lancelet.index.files import IndexFiles, StoredTable
from lancelet.index.queries import Equals, IsIn, IsNull, Query
from lancelet.index.scalar.bloom_filter.filters import hash_values, hashable, may_hold
from lancelet.index.types import fits
from lancelet.index.zones import ZonePlaces, read_null_rows
from lancelet.rows.addresses import UInt64s
from lancelet.rows.masks import SelectionMask
from lancelet.rows.row_sets import NO_ROWS, RowSet
from lancelet.storage.objects import process_objects

__all__ = ["DATA", "FILE", "HAS_NULL", "ITEMS", "PROBABILITY", "BloomFilterIndex"]

FILE = "bloomfilter.lance"
HAS_NULL, DATA = "has_null", "bloom_filter_data"
ITEMS, PROBABILITY = 8192, 0.00057
#: Filters read at a time: 8 MiB of those that are usual.
_AT_ONCE = 256
#: More values than this are not asked for: few zones would be left out.
_MOST_VALUES = 1000
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Zones:
    places: ZonePlaces
    has_null: Bools
    nulls: RowSet | None


@dataclass(frozen=True, slots=True)
class BloomFilterIndex:
    """A BLOOMFILTER index, open. Its rows are always addresses."""

    files: IndexFiles
    value_type: pa.DataType
    kind: str = "BLOOMFILTER"
    domain: Domain = Domain.ADDRESSES

    def answers(self, query: Query) -> bool:
        """Equality and membership but for NaN, of which there are too many, and nulls."""
        match query:
            case IsNull():
                return True
            case Equals(value):
                asked = pa.repeat(value, 1)
            case IsIn(values) if len(values) <= _MOST_VALUES:
                asked = values
            case _:
                return False
        if not fits(query, self.value_type) or not hashable(self.value_type):
            return False
        return not (pat.is_floating(asked.type) and bool(pc.any(pc.is_nan(asked)).as_py()))

    def search(self, query: Query, *, nulls: bool = True) -> Answer:
        """Exact for nulls, if the index lists them; else the zones that may hold a row that is meant."""
        zones = self._zones()
        if isinstance(query, IsNull):
            if zones.nulls is not None:
                return Answer(SelectionMask(zones.nulls))
            return Answer(SelectionMask(zones.places.rows(zones.has_null)), exact=False)
        null_rows = zones.nulls if nulls and zones.nulls is not None else NO_ROWS
        return Answer(SelectionMask(zones.places.rows(self._kept(query)), null_rows), exact=False)

    def estimate(self, query: Query) -> int | None:
        """The rows of the zones that would have to be looked at."""
        zones = self._zones()
        kept = zones.has_null if isinstance(query, IsNull) else self._kept(query)
        return int(zones.places.lengths[kept].sum())

    def statistics(self) -> Statistics:
        """Zones, rows in each, and how often one is looked at in vain."""
        table = self.files.open(FILE)
        return {
            "type": "BloomFilter",
            "num_blocks": table.num_rows,
            "number_of_items": table.number("bloomfilter_item", ITEMS),
            "probability": float(table.metadata.get("bloomfilter_probability", PROBABILITY)),
        }

    def prewarm(self) -> None:
        """Load the zones, and their filters as far as they fit."""
        self._zones()
        for _ in self._filters(self.files.open(FILE)):
            pass

    def _zones(self) -> _Zones:
        def make() -> tuple[_Zones, int]:
            table = self.files.open(FILE)
            places = ZonePlaces.read(table)
            has_null = np.asarray(table.read([HAS_NULL])[0].cast(pa.uint8())).astype(np.bool_)
            return _Zones(places, has_null, read_null_rows(table)), places.nbytes + len(places)

        return process_objects().get((self.files.uri(FILE), "zones"), make)

    def _kept(self, query: Query) -> Bools:
        match query:
            case Equals(value):
                hashes = _hashes(pa.repeat(value, 1))
            case IsIn(values):
                hashes = _hashes(values)
            case _:
                raise TypeError(f"a BLOOMFILTER index is not asked {query}")
        found = [may_hold(filters, hashes) for filters in self._filters(self.files.open(FILE))]
        return np.concatenate([np.empty(0, np.bool_), *found])

    def _filters(self, table: StoredTable) -> Iterator[npt.NDArray[np.uint32]]:
        """Filters in the order of the zones, as many at a time as are of one size."""
        for start in range(0, table.num_rows, _AT_ONCE):
            stop = min(start + _AT_ONCE, table.num_rows)

            def make(start: int = start, stop: int = stop) -> tuple[pa.Array, int]:
                data = table.read([DATA], slice(start, stop))[0]
                return data, int(data.nbytes)

            yield from _same_size(process_objects().get((table.uri, DATA, start), make), table)


def _same_size(data: pa.Array, table: StoredTable) -> Iterator[npt.NDArray[np.uint32]]:
    """Filters as rows of words; Corrupt where one has no whole blocks."""
    sizes = np.asarray(pc.binary_length(data).fill_null(0))
    if len(sizes) and (sizes.min() < 32 or bool((sizes % 32).any())):
        raise Corrupt("a filter of the index is not made of blocks of 32 bytes", uri=table.uri, column=DATA)
    cuts = [0, *(np.flatnonzero(sizes[1:] != sizes[:-1]) + 1).tolist(), len(sizes)]
    for start, stop in pairwise(cuts):
        if start < stop:
            joined = b"".join(data[start:stop].to_pylist())
            yield np.frombuffer(joined, np.uint32).reshape(stop - start, -1)


def _hashes(values: pa.Array) -> UInt64s:
    """The hashes of values; zero is asked for with both signs."""
    if pat.is_floating(values.type):
        zero = pc.equal(values, pa.scalar(0, values.type))
        if bool(pc.any(zero).as_py()):
            values = pa.concat_arrays([values, pa.array([0.0, -0.0], values.type)])
    return hash_values(values)
