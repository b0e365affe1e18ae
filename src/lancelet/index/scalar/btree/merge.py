"""Merging BTREE indexes: entries are read in the order of their values, renamed, and joined with those of new rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.types as pat

from lancelet.errors import Corrupt
from lancelet.index.building import Built, Target
from lancelet.index.external_sort import IDS, VALUES, merged_rows, sorted_rows
from lancelet.index.merging import Part, first_number
from lancelet.index.order import are_ascending
from lancelet.index.parameters import whole
from lancelet.index.scalar.btree.build import write_btree
from lancelet.index.scalar.btree.lookup import LOOKUP, PAGE_ROWS, PAGES, load_lookup
from lancelet.index.sorting import sort_together

__all__ = ["like_btree", "merge_btrees"]

#: Rows read at a time, at most.
_WINDOW_ROWS = 2**17


def merge_btrees(
    parts: Sequence[Part],
    rows: Iterable[pa.RecordBatch],
    kind: pa.DataType,
    target: Target,
    parameters: Mapping[str, object],
) -> Built:
    """Write the index of what segments hold and of new rows; pages have as many rows as those of the first segment."""
    page_rows = whole(parameters, "zone_size", first_number(parts, LOOKUP, "batch_size", PAGE_ROWS), most=2**20)
    # New rows are sorted in one half, and then only their blocks are held besides those of the segments.
    half = target.memory // 2
    runs = [_entries(part, kind, half) for part in parts]
    merged = merged_rows([*runs, sorted_rows(rows, memory=half)], memory=half)
    return write_btree(merged, kind, target, page_rows=page_rows)


def like_btree(part: Part) -> dict[str, object]:
    """The parameters that a segment was built with."""
    return {"zone_size": first_number([part], LOOKUP, "batch_size", PAGE_ROWS)}


def _entries(part: Part, kind: pa.DataType, memory: int) -> Iterator[pa.RecordBatch]:
    """The entries of a segment in the order of their values, as the merged one has them."""
    lookup, _ = load_lookup(part.files.open(LOOKUP), kind)
    found = _stored(part, kind, check=lookup.in_order)
    return found if lookup.in_order else sorted_rows(found, memory=memory)


def _stored(part: Part, kind: pa.DataType, *, check: bool) -> Iterator[pa.RecordBatch]:
    table = part.files.open(PAGES)
    for start in range(0, table.num_rows, _WINDOW_ROWS):
        stop = min(start + _WINDOW_ROWS, table.num_rows)
        values, ids = table.read([VALUES, IDS], slice(start, stop))
        if values.type != kind or ids.type != pa.uint64() or ids.null_count:
            raise Corrupt(f"the index has entries of {values.type} and {ids.type}", uri=table.uri, column=VALUES)
        names = ids.to_numpy()
        if check and not are_ascending(values):
            found = f"the values of rows {start} to {stop} of the index are not in order"
            raise Corrupt(found, uri=table.uri, column=VALUES)
        if pat.is_floating(kind):
            # Others may take zeros and NaNs of both signs for equal, so that these come in any order.
            values, names = sort_together([values], [names])
        yield part.rows(values, names)
