"""What is known of rows besides their values: ids, addresses, offsets, and the versions that made or changed them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.encodings.page import Rows
from lancelet.query.layouts import Projection
from lancelet.query.request import CREATED_AT, ROW_ADDRESS, ROW_ID, ROW_OFFSET
from lancelet.query.stored import StoredFragment, count_of
from lancelet.rows.addresses import UInt64s, join
from lancelet.rows.versions import VersionSequence

__all__ = ["system_column"]

#: Rows of tables that do not keep versions are as old as the table.
_FIRST_VERSION = 1


def system_column(
    stored: StoredFragment, name: str, rows: Rows, projection: Projection, *, stable: bool, live_before: int
) -> pa.Array:
    """A column of what is known of some physical rows of a fragment.

    ``stable`` says whether rows have ids of their own, ``live_before`` how many live rows the fragments before have.
    Deleted rows have neither id nor address.
    """
    if name == ROW_OFFSET:
        return pa.array(stored.deleted.to_logical(_numbers(rows)).astype(np.uint64) + np.uint64(live_before))
    if name in (ROW_ID, ROW_ADDRESS):
        values = _ids(stored, rows, projection) if stable and name == ROW_ID else _addresses(stored, rows)
        return pa.array(values, mask=_deleted(stored, rows))
    spilled = stored.read_spilled(name, rows, projection)
    if spilled is not None:
        return _one(spilled)
    return pa.array(_versions(stored.created_at if name == CREATED_AT else stored.last_updated_at, rows))


def _numbers(rows: Rows) -> npt.NDArray[np.int64]:
    return np.arange(rows.start, rows.stop, dtype=np.int64) if isinstance(rows, slice) else rows


def _addresses(stored: StoredFragment, rows: Rows) -> UInt64s:
    if not isinstance(rows, slice):
        return join(stored.fragment.id, rows)
    # A range needs no look at each number, and no second array.
    addresses: UInt64s = np.arange(rows.start, rows.stop, dtype=np.uint64)
    addresses |= join(stored.fragment.id, 0)
    return addresses


def _ids(stored: StoredFragment, rows: Rows, projection: Projection) -> UInt64s:
    if stored.row_ids is not None:
        if isinstance(rows, slice):
            return stored.row_ids.slice(rows.start, rows.stop).to_ids()
        return stored.row_ids.take(rows)
    spilled = stored.read_spilled(ROW_ID, rows, projection)
    if spilled is None:
        raise stored.without_row_ids()
    return np.asarray(_one(spilled))


def _versions(sequence: VersionSequence | None, rows: Rows) -> UInt64s:
    if sequence is None:
        return np.full(count_of(rows), _FIRST_VERSION, np.uint64)
    if isinstance(rows, slice):
        return sequence.slice(rows.start, rows.stop).to_versions()
    return sequence.take(rows)


def _deleted(stored: StoredFragment, rows: Rows) -> npt.NDArray[np.bool_] | None:
    """Which of the rows are deleted; None where none is."""
    if not len(stored.deleted):
        return None
    if isinstance(rows, slice):
        live = stored.deleted.live_mask(rows.start, rows.stop)
        return None if live is None else ~live
    deleted = stored.deleted.contains(rows)
    return deleted if deleted.any() else None


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
