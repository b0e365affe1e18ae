"""Column buffers: the rows of one leaf column that wait until they are worth a page."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from lancelet.encodings.blob import PendingBlobs
from lancelet.encodings.leaf_page import EncodedPage
from lancelet.encodings.leaf_pages import LeafWriter
from lancelet.encodings.v2_0.node_writer import NodeWriter

__all__ = ["ColumnBuffer", "Flush"]


@dataclass(frozen=True, slots=True)
class Flush:
    """Rows taken out of a buffer, to be encoded on any thread."""

    column: int
    first_row: int
    rows: pa.Array
    writer: LeafWriter | NodeWriter

    def encode(self) -> list[EncodedPage | PendingBlobs]:
        """The pages that hold the rows."""
        return list(self.writer.pages(self.rows))


@dataclass(slots=True)
class ColumnBuffer:
    """Collects skeleton arrays until they make a page of about ``page_bytes``; none becomes larger than ``largest``."""

    column: int
    writer: LeafWriter | NodeWriter
    page_bytes: int
    largest: int
    _pieces: list[pa.Array] = field(default_factory=list)
    _bytes: int = 0
    _rows: int = 0
    _first_row: int = 0

    def add(self, skeleton: pa.Array) -> list[Flush]:
        """Take rows in; what has become enough comes out."""
        if not len(skeleton):
            return []
        self._pieces.append(skeleton)
        self._bytes += skeleton.nbytes
        self._rows += len(skeleton)
        return self.take() if self._bytes >= self.page_bytes else []

    def take(self) -> list[Flush]:
        """Everything that waits."""
        if not self._rows:
            return []
        rows = self._pieces[0] if len(self._pieces) == 1 else pa.concat_arrays(self._pieces)
        pages = max(1, -(-self._bytes // self.largest)) if self._bytes > self.largest else 1
        step = -(-self._rows // pages)
        flushes = [
            Flush(self.column, self._first_row + start, rows.slice(start, step), self.writer)
            for start in range(0, self._rows, step)
        ]
        self._first_row += self._rows
        self._pieces, self._bytes, self._rows = [], 0, 0
        return flushes
