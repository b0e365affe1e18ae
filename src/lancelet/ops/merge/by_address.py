"""Changed rows by the addresses of the rows that they change: collected in any order, handed out in the table's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lancelet.ops.join.spill import Partitions, SpillFolder
from lancelet.ops.merge.source import MergeSource
from lancelet.rows.addresses import UInt64s
from lancelet.table.snapshot import Snapshot

__all__ = ["ByAddress"]

_ADDRESS = "_rowaddr"
_MOST_BUCKETS = 2**12


class ByAddress:
    """Rows and addresses. Those of a source that lies on disk are put aside there, too, by stretches of fragments."""

    def __init__(self, snapshot: Snapshot, source: MergeSource, folder: SpillFolder, most: int) -> None:
        self._held: list[tuple[pa.Table, UInt64s]] = []
        self._buckets: Partitions | None = None
        if source.rows is None:
            size = sum(file.nbytes for file in source.partitions)
            self._bounds = _bounds(snapshot, 1 + 2 * size // most)
            schema = source.schema.append(pa.field(_ADDRESS, pa.uint64()))
            self._buckets = Partitions(folder, "changed", schema, len(self._bounds) + 1)

    def add(self, rows: pa.Table, addresses: UInt64s) -> None:
        """Take rows in, each with its address."""
        if self._buckets is None:
            self._held.append((rows, addresses))
            return
        numbers = np.searchsorted(self._bounds, addresses, "right").astype(np.uint16)
        start = 0
        for batch in rows.append_column(_ADDRESS, pa.array(addresses)).to_batches():
            self._buckets.add(batch, numbers[start : start + batch.num_rows])
            start += batch.num_rows

    def drain(self) -> Iterator[tuple[pa.Table, UInt64s]]:
        """All rows by ascending address; those of a fragment come together."""
        for rows, addresses in self._held:
            order = np.argsort(addresses, kind="stable")
            yield rows.take(pa.array(order)), addresses[order]
        for file in self._buckets.finish() if self._buckets is not None else ():
            rows = file.read_table().sort_by(_ADDRESS)
            file.remove()
            if rows.num_rows:
                yield rows.drop_columns([_ADDRESS]), rows.column(_ADDRESS).to_numpy()


def _bounds(snapshot: Snapshot, wanted: int) -> UInt64s:
    """The first addresses of stretches of whole fragments of about as many rows each, but for the first stretch."""
    fragments = snapshot.manifest.fragments
    ids = fragments.ids().astype(np.uint64)
    count = min(len(ids), wanted, _MOST_BUCKETS)
    if count < 2:
        return np.empty(0, np.uint64)
    ends = np.cumsum(fragments.physical_rows())
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, count) // count, "right")
    found: UInt64s = np.unique(ids[np.minimum(cuts, len(ids) - 1)]) << np.uint64(32)
    return found
