"""Searches through the table object: the rows whose vectors are nearest to a query, of the whole table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from lancelet.dataset.nearest import NearestOptions
from lancelet.errors import InvalidInput
from lancelet.spark.searching import Search, search_frame
from lancelet.spark.table_core import TableCore

__all__ = ["TableSearch"]


class TableSearch(TableCore):
    """What finds rows by what they are like."""

    def search(
        self,
        nearest: Mapping[str, Any],
        filter: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        prefilter: bool = False,
        withRowId: bool = False,
        tasks: int | None = None,
    ) -> DataFrame:
        """The ``k`` rows nearest to a query, or to each of several, the nearest first, with their ``_distance``.

        ``nearest`` is said as to ``LanceDataset.scanner``: column and q, and maybe k, metric, distance_range. Tasks
        find the closest rows of groups of fragments, of which the closest of all are handed out; all vectors are
        looked at, so that the answer is exact. ``filter``, Lance's SQL, chooses among the rows found, with
        ``prefilter`` the rows to look at.

            table.search({"column": "vector", "q": query, "k": 5}, "label = 'cat'", ["id"], prefilter=True)
        """
        if not isinstance(nearest, Mapping):
            raise TypeError(f"nearest must be a mapping with 'column' and 'q', got {type(nearest).__name__}")
        for name in ("column", "q"):
            if name not in nearest:
                raise InvalidInput(f"nearest has no {name!r}", hint="say {'column': ..., 'q': ..., 'k': ...}")
        names = NearestOptions.__dataclass_fields__
        unknown = [name for name in nearest if name not in names]
        if unknown:
            raise InvalidInput(f"nearest knows nothing of {unknown[0]!r}", hint=f"it knows: {', '.join(names)}")
        asked = Search(NearestOptions(**nearest), filter, columns, prefilter, withRowId, tasks)
        return search_frame(self._handle, asked)
