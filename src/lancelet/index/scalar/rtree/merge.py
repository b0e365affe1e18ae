"""Merging RTREE indexes: the boxes of segments, renamed, are put in order together with those of new rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import pyarrow as pa

from lancelet.index.building import Built, Target
from lancelet.index.external_sort import sorted_rows
from lancelet.index.merging import Part, first_number
from lancelet.index.parameters import whole
from lancelet.index.scalar.rtree.boxes import packed
from lancelet.index.scalar.rtree.build import NULLS_FILE, PAGE_ROWS, PAGES, Gathered, write_rtree
from lancelet.index.scalar.rtree.search import read_entries, read_nulls
from lancelet.rows.row_sets import union_all

__all__ = ["like_rtree", "merge_rtrees"]

#: Rows read at a time.
_WINDOW_ROWS = 2**17


def merge_rtrees(
    parts: Sequence[Part], rows: Iterable[pa.RecordBatch], target: Target, parameters: Mapping[str, object]
) -> Built:
    """Write the index of what segments hold and of new rows."""
    size = whole(parameters, "page_size", first_number(parts, PAGES, "page_size", PAGE_ROWS), least=2, most=2**20)
    gathered = Gathered(rows)
    nulls = [part.row_set(read_nulls(part.files.open(NULLS_FILE))) for part in parts]
    entries = sorted_rows(chain(*map(_entries, parts), gathered), memory=target.memory)
    return write_rtree(entries, lambda: union_all([*nulls, gathered.nulls]), target, size)


def like_rtree(part: Part) -> dict[str, object]:
    """The parameters that a segment was built with."""
    return {"page_size": first_number([part], PAGES, "page_size", PAGE_ROWS)}


def _entries(part: Part) -> Iterator[pa.RecordBatch]:
    table = part.files.open(PAGES)
    items = min(table.number("num_items", table.num_rows), table.num_rows)
    for start in range(0, items, _WINDOW_ROWS):
        sides, ids = read_entries(table, start, min(start + _WINDOW_ROWS, items))
        yield part.rows(packed(sides), ids)
