"""Taking rows of a dataset by their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.dataset.core import DatasetCore
from lancelet.dataset.scan_options import Columns
from lancelet.dataset.shown import shown_table
from lancelet.errors import InvalidInput
from lancelet.format.fragments import Fragment
from lancelet.query.moved import moves_for
from lancelet.query.opened import open_table
from lancelet.query.take import Numbers, RowsBy, numbers_of, take
from lancelet.rows.addresses import as_uint64s

__all__ = ["DatasetTakes", "checked_numbers", "take_of_fragment"]


class DatasetTakes(DatasetCore):
    """What reads single rows."""

    def take(self, indices: Numbers, columns: Columns | None = None, **kwargs: object) -> pa.Table:
        """The rows with some numbers, counted from 0 among those that are not deleted, in the order asked.

        A path to a field of a struct gives the struct with that field alone.

        >>> import lancelet
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://takes")
        >>> dataset.take([2, 0, 2])["x"].to_pylist()
        [3, 1, 3]
        """
        return shown_table(take(self._snapshot, checked_numbers(indices), _columns(columns), places=self._places))

    def remap_row_addrs(self, addrs: pa.Array) -> pa.Array | None:
        """Where rows are now that had some addresses before compactions which left indexes as they were.

        Null for rows that were deleted by then. Of compactions that all indexes caught up with nothing is known any
        more: addresses from before them come back as they are. None where nothing is known at all.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": range(4)}), "memory://remapped", max_rows_per_file=2)
        >>> dataset.create_scalar_index("x", "BTREE")
        >>> dataset.optimize.compact_files(defer_index_remap=True).fragments_added
        1
        >>> dataset.remap_row_addrs(pa.array([2**32 + 1], pa.uint64())).to_pylist() == [(2 << 32) + 3]
        True
        """
        if not isinstance(addrs, pa.Array) or addrs.type != pa.uint64():
            found = addrs.type if isinstance(addrs, pa.Array) else type(addrs).__name__
            raise TypeError(f"addrs are {found}, expected a pyarrow array of uint64")
        moves = moves_for(self._snapshot.indexes(), self._places)
        if moves is None:
            return None
        names, kept = moves.remap(as_uint64s(addrs.fill_null(0).to_numpy(zero_copy_only=False)))
        return pa.array(names, mask=~kept | np.asarray(addrs.is_null().to_numpy(zero_copy_only=False)))

    def take_rows(self, row_ids: Numbers, columns: Columns | None = None) -> pa.Table:
        """The rows with some row ids, in the order asked; those that are deleted are passed over."""
        return shown_table(
            take(self._snapshot, checked_numbers(row_ids), _columns(columns), by=RowsBy.ID, places=self._places)
        )

    def take_addresses(self, row_addresses: Numbers, columns: Columns | None = None) -> pa.Table:
        """The rows at some row addresses, in the order asked; those that are deleted are passed over."""
        found = checked_numbers(row_addresses)
        return shown_table(take(self._snapshot, found, _columns(columns), by=RowsBy.ADDRESS, places=self._places))

    def _take_rows(self, row_ids: Numbers, columns: Columns | None = None, **kwargs: object) -> pa.Table:
        """The name by which other libraries call :meth:`take_rows`."""
        return self.take_rows(row_ids, columns)


def take_of_fragment(
    dataset: DatasetCore, fragment: Fragment, indices: Iterable[int], columns: Columns | None
) -> pa.Table:
    """Rows of one fragment, by their numbers among those of it that are not deleted."""
    table = open_table(dataset.places)
    place = table.facts.place_of(fragment.id)
    before = table.counts.live_before(place)
    rows = table.counts.live_end_list[place] - before
    numbers = numbers_of(checked_numbers(indices))
    if len(numbers) and int(numbers.max()) >= rows:
        found = f"row {int(numbers.max())} asked for, the fragment has {rows}"
        raise InvalidInput(found, uri=dataset.uri, fragment=fragment.id, hint="rows are counted from 0")
    shifted: npt.NDArray[np.uint64] = numbers + np.uint64(before)
    return shown_table(take(dataset.snapshot, shifted, _columns(columns), places=dataset.places))


def checked_numbers(rows: object) -> Numbers:
    """Row numbers as the rooms below take them; TypeError for what holds none."""
    if isinstance(rows, Sequence | np.ndarray | pa.Array | pa.ChunkedArray) and not isinstance(rows, str | bytes):
        return cast("Numbers", rows)
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes):
        return list(rows)
    raise TypeError(f"row numbers must be a list or an array, got {type(rows).__name__}")


def _columns(columns: Columns | None) -> Columns | None:
    if columns is None or isinstance(columns, Mapping | list):
        return columns
    raise TypeError(f"columns must be a list or dict[name, expression], got {type(columns)}")
