"""Rows to be indexed: the values of a column beside what the index calls each row, as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lancelet.expr import Column
from lancelet.index.answers import Domain
from lancelet.index.external_sort import IDS, VALUES
from lancelet.query.request import ROW_ADDRESS, ROW_ID, ScanRequest
from lancelet.query.scan import plan_scan, run_scan
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["rows_to_index"]

#: Rows handed over at a time.
_BATCH_ROWS = 2**17


def rows_to_index(
    snapshot: Snapshot, places: Places, column: Column, fragments: Sequence[int], domain: Domain
) -> Iterator[pa.RecordBatch]:
    """The live rows of some fragments in the order of the table, each a value and an address or id."""
    name = ROW_ADDRESS if domain is Domain.ADDRESSES else ROW_ID
    request = ScanRequest(
        columns=((VALUES, column), (IDS, Column((name,), pa.uint64()))),
        fragments=tuple(fragments),
        batch_size=_BATCH_ROWS,
        use_scalar_index=False,
    )
    yield from run_scan(plan_scan(snapshot, request), places)
