"""Upserts of streams: what ``foreachBatch`` calls to merge each batch of a query into a table, once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql.functions import col, expr, row_number
from pyspark.sql.types import StructType

from lancelet.errors import InvalidInput
from lancelet.ops.changes import CHANGE_TYPE, DELETE, PREIMAGE
from lancelet.ops.numbered import Batch, commit_once
from lancelet.spark.address import Address
from lancelet.spark.progress import on_connect
from lancelet.spark.stream_reading import CHANGE_COLUMNS, VERSION
from lancelet.spark.stream_sink import QUERY_ID
from lancelet.spark.table import LanceTable

__all__ = ["Upserts", "upsert_batches"]

_ORDER, _GONE = "__lancelet_order", "__lancelet_gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upserts:
    """How batches come into a table. It pickles, so that Connect's servers can call it."""

    uri: str
    on: tuple[str, ...]
    query: str | None = None
    latest_by: str | None = None
    delete_where: str | None = None
    enable_stable_row_ids: bool = False
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Merge a batch, unless it is in already."""
        batch = Batch(self.query or _query_of(frame.sparkSession), number)
        address = Address(uri=self.uri, storage_options=self.storage_options).absolute()
        commit_once(address.store(), batch, lambda: self._merge(frame, batch))

    def _merge(self, frame: DataFrame, batch: Batch) -> None:
        changes = CHANGE_TYPE in frame.columns and VERSION in frame.columns
        kept = [item for item in frame.schema.fields if not (changes and item.name in CHANGE_COLUMNS)]
        options = dict(self.storage_options) or None
        table = LanceTable.create(
            frame.sparkSession,
            self.uri,
            StructType(kept),
            ifNotExists=True,
            enable_stable_row_ids=self.enable_stable_row_ids,
            storage_options=options,
        )
        rows, gone = self._rows(frame, changes)
        condition = " and ".join(f"target.{_quoted(name)} = source.{_quoted(name)}" for name in self.on)
        merge = table.merge(rows, condition).withProperties(batch.properties)
        if gone:
            merge = merge.whenMatchedDelete(col(_GONE))
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll(~col(_GONE) if gone else None).execute()

    def _rows(self, frame: DataFrame, changes: bool) -> tuple[DataFrame, bool]:
        """The last row of each key, with a column that says whether the key is gone, where some may be."""
        rows, order, gone = frame, [], None
        if changes:
            rows = rows.where(col(CHANGE_TYPE) != PREIMAGE)
            gone = col(CHANGE_TYPE) == DELETE
            # A version that replaces a row by another of the same key tells of both.
            order = [col(VERSION).desc(), gone.asc()]
        if self.delete_where is not None:
            gone = expr(f"coalesce({self.delete_where}, false)")
        if self.latest_by is not None:
            order = [expr(self.latest_by).desc_nulls_last()]
        if gone is not None:
            rows = rows.withColumn(_GONE, gone)
        if order:
            keys: list[Column] = [col(_quoted(name)) for name in self.on]
            numbered = rows.withColumn(_ORDER, row_number().over(Window.partitionBy(*keys).orderBy(*order)))
            rows = numbered.where(col(_ORDER) == 1).drop(_ORDER)
        return rows, gone is not None


def upsert_batches(
    uri: str | os.PathLike[str],
    on: str | Sequence[str],
    *,
    query: str | None = None,
    latest_by: str | None = None,
    delete_where: str | None = None,
    enable_stable_row_ids: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> Upserts:
    """What ``foreachBatch`` is given to merge each batch into a table: rows whose keys are there replace those.

    ``on`` names the columns of the key. Of several rows of a key in a batch, the one with the largest ``latest_by``
    counts, a Spark expression; without it a key may come once. Rows for which ``delete_where`` is true remove theirs.
    The rows of a stream of changes (``.option("stream", "changes")``) are known for what they are, without either. A
    table that is missing is made, with stable row ids if that is asked.

    A batch comes into the table once, also where Spark runs it again: the transaction says in its properties which
    query and batch it is. On Connect ``query`` has to name the query, for as long as its checkpoint is used.

        frame.writeStream.foreachBatch(lancelet.spark.upsert_batches("s3://bucket/t", on="id", latest_by="time"))
    """
    keys = (on,) if isinstance(on, str) else tuple(on)
    if not keys:
        raise InvalidInput("no column is named that tells rows apart", hint="name at least one by on")
    return Upserts(
        uri=os.fspath(uri),
        on=keys,
        query=query,
        latest_by=latest_by,
        delete_where=delete_where,
        enable_stable_row_ids=enable_stable_row_ids,
        storage_options=dict(storage_options or {}),
    )


def _query_of(spark: SparkSession) -> str:
    """The id of the query whose batch is being processed."""
    found = None if on_connect(spark) else spark.sparkContext.getLocalProperty(QUERY_ID)
    if not found:
        hint = "give a name by query=, one for each checkpoint"
        raise InvalidInput("Spark does not say which query a batch is of, on Connect and outside of one", hint=hint)
    return found


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
