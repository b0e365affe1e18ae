"""Searching an RTREE index: the boxes around pages tell which pages, the boxes in them which rows may be meant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.errors import Corrupt, LanceletError
from lancelet.index.answers import Answer, Domain, Statistics
from lancelet.index.files import IndexFiles, StoredTable
from lancelet.index.queries import Intersects, IsNull, Query
from lancelet.index.scalar.rtree.boxes import SIDES
from lancelet.index.scalar.rtree.build import BOX, ID, NULLS, NULLS_FILE, PAGE_ROWS, PAGES
from lancelet.rows.addresses import UInt64s
from lancelet.rows.masks import SelectionMask
from lancelet.rows.row_sets import NO_ROWS, RowSet, parse_row_set
from lancelet.storage.objects import process_objects

__all__ = ["RTreeIndex", "read_entries", "read_nulls"]

_Floats = npt.NDArray[np.float64]
_Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Tree:
    """The boxes around pages of rows, and how many rows there are."""

    boxes: _Floats
    items: int
    page_rows: int


@dataclass(frozen=True, slots=True)
class RTreeIndex:
    """An RTREE index, open."""

    files: IndexFiles
    domain: Domain
    kind: str = "RTREE"

    def answers(self, query: Query) -> bool:
        """Boxes that meet, and nulls."""
        return isinstance(query, Intersects | IsNull)

    def search(self, query: Query, *, nulls: bool = True) -> Answer:
        """Exact for nulls; else the rows whose boxes meet the one that is asked for."""
        if isinstance(query, IsNull):
            return Answer(SelectionMask(self._nulls()))
        tree, table = self._tree(), self.files.open(PAGES)
        pieces = []
        for page in np.flatnonzero(_meets(tree.boxes, query)).tolist():
            sides, ids = self._page(table, tree, page)
            pieces.append(ids[_meets(sides, query)])
        found = RowSet.of(np.concatenate(pieces)) if pieces else NO_ROWS
        return Answer(SelectionMask(found, self._nulls() if nulls else NO_ROWS), exact=False)

    def estimate(self, query: Query) -> int | None:
        """The rows of the pages that would be looked at."""
        if isinstance(query, IsNull):
            return len(self._nulls())
        tree = self._tree()
        return min(int(_meets(tree.boxes, query).sum()) * tree.page_rows, tree.items)

    def statistics(self) -> Statistics:
        """Rows, and rows of a page."""
        table = self.files.open(PAGES)
        return {name: table.number(name, 0) for name in ("num_items", "num_pages", "page_size")}

    def prewarm(self) -> None:
        """Load every page, as far as the cache has room."""
        tree, table = self._tree(), self.files.open(PAGES)
        self._nulls()
        for page in range(len(tree.boxes)):
            self._page(table, tree, page)

    def _tree(self) -> _Tree:
        table = self.files.open(PAGES)

        def make() -> tuple[_Tree, int]:
            size, items = table.number("page_size", PAGE_ROWS), table.number("num_items", table.num_rows)
            pages = -(-items // max(size, 1))
            # The lines of all pages of rows come right behind the rows; a single page has none.
            if size < 2 or items > table.num_rows or (pages > 1 and items + pages > table.num_rows):
                raise Corrupt(f"{items} rows in pages of {size} do not fit {table.num_rows} lines", uri=table.uri)
            if pages > 1:
                boxes = read_entries(table, items, items + pages)[0]
            else:
                boxes = np.array([[-np.inf, -np.inf, np.inf, np.inf]])[:pages]
            return _Tree(boxes, items, size), boxes.nbytes

        return process_objects().get((table.uri, "tree"), make)

    def _page(self, table: StoredTable, tree: _Tree, page: int) -> tuple[_Floats, UInt64s]:
        def make() -> tuple[tuple[_Floats, UInt64s], int]:
            start = page * tree.page_rows
            found = read_entries(table, start, min(start + tree.page_rows, tree.items))
            return found, found[0].nbytes + found[1].nbytes

        return process_objects().get((table.uri, page), make)

    def _nulls(self) -> RowSet:
        table = self.files.open(NULLS_FILE)

        def make() -> tuple[RowSet, int]:
            found = read_nulls(table)
            return found, 100 + 2 * len(found)

        return process_objects().get((table.uri, "nulls"), make)


def read_entries(table: StoredTable, start: int, stop: int) -> tuple[_Floats, UInt64s]:
    """Boxes and what stands beside them, line by line."""
    boxes, ids = table.read([BOX, ID], slice(start, stop))
    if not pa.types.is_struct(boxes.type) or ids.type != pa.uint64() or ids.null_count or boxes.null_count:
        raise Corrupt(f"the index has entries of {boxes.type} and {ids.type}", uri=table.uri, column=BOX)
    columns = [np.asarray(boxes.field(name)) for name in SIDES]
    return np.stack(columns, axis=1), ids.to_numpy()


def read_nulls(table: StoredTable) -> RowSet:
    """The rows without a geometry."""
    stored = table.read([NULLS])[0].to_pylist()
    if len(stored) != 1 or stored[0] is None:
        raise Corrupt(f"the index has {len(stored)} sets of nulls, expected one", uri=table.uri, column=NULLS)
    try:
        return parse_row_set(stored[0], what="null set")
    except LanceletError as error:
        raise error.where(uri=table.uri) from None


def _meets(sides: _Floats, query: Query) -> _Bools:
    if not isinstance(query, Intersects):
        raise TypeError(f"an RTREE index is not asked {query}")
    found: _Bools = (sides[:, 0] <= query.xmax) & (sides[:, 2] >= query.xmin)
    found &= (sides[:, 1] <= query.ymax) & (sides[:, 3] >= query.ymin)
    return found
