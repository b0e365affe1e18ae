"""Tables of keys in memory: which rows of one side have the keys of which rows of another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.kernels import joining
from lancelet.ops.join.codes import alike, codes_of, is_exact, plain, present

__all__ = ["KeyTable", "Rows"]

Rows = npt.NDArray[np.int64]


class KeyTable:
    """The keys of some rows, to be looked up many times.

    >>> table = KeyTable([pa.array(["b", "a", None, "b"])])
    >>> [rows.tolist() for rows in table.match([pa.array(["a", "b", None])])]
    [[0, 1, 1], [1, 0, 3]]
    """

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        columns = self._columns = [plain(column) for column in columns]
        self._exact = is_exact([column.type for column in columns])
        there = present(columns)
        codes = codes_of(columns)
        #: The rows that have a key without nulls; None for all.
        self._rows = None if there is None else np.flatnonzero(there)
        self._codes = codes if self._rows is None else codes[self._rows]
        self._table = joining.build(self._codes)

    @property
    def nbytes(self) -> int:
        """About the memory held besides the keys themselves."""
        return self._codes.nbytes + sum(part.nbytes for part in self._table)

    def match(self, columns: Sequence[pa.Array]) -> tuple[Rows, Rows]:
        """All pairs of rows with one key: rows of ``columns``, ascending, and for each its rows of this table."""
        columns = [plain(column) for column in columns]
        asked, found = joining.probe(self._codes, self._table, codes_of(columns))
        there = present(columns)
        if there is not None:
            kept = there[asked]
            asked, found = asked[kept], found[kept]
        if self._rows is not None:
            found = self._rows[found]
        if not self._exact and len(asked):
            same = alike(_taken(columns, asked), _taken(self._columns, found))
            if not same.all():
                asked, found = asked[same], found[same]
        return asked, found


def _taken(columns: Sequence[pa.Array], rows: Rows) -> list[pa.Array]:
    wanted = pa.array(rows)
    return [column.take(wanted) for column in columns]
