"""LanceTable: a Lance table on Spark, in the manner of Delta's table object; put together from its parts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal, Self

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lancelet.errors import AlreadyExists
from lancelet.spark.address import Address
from lancelet.spark.choices import Choices
from lancelet.spark.handle import Handle
from lancelet.spark.table_changes import TableChanges
from lancelet.spark.table_columns import TableColumns
from lancelet.spark.table_compaction import TableCompaction
from lancelet.spark.table_feed import TableFeed
from lancelet.spark.table_indexes import TableIndexes
from lancelet.spark.table_search import TableSearch
from lancelet.spark.table_upkeep import TableUpkeep
from lancelet.spark.table_versions import TableVersions
from lancelet.spark.writes import write
from lancelet.table.snapshot import find_latest

__all__ = ["LanceTable"]


class LanceTable(
    TableChanges, TableColumns, TableFeed, TableIndexes, TableSearch, TableVersions, TableUpkeep, TableCompaction
):
    """A table, or one of its versions, whose large jobs are carried out by Spark; on classic Spark and Connect.

    The process that calls plans and commits; tasks of Spark read and write files. Each method that changes the table
    makes one commit, and returns figures of what it did.

        table = LanceTable.forPath(spark, "s3://bucket/t")
        table.update("price < 0", {"price": "0"})
    """

    @classmethod
    def forPath(
        cls,
        sparkSession: SparkSession,
        path: str | os.PathLike[str],
        *,
        version: int | None = None,
        tag: str | None = None,
        branch: str | None = None,
        timestamp: str | None = None,
        time_type: Literal["long", "string", "time"] = "long",
        nanoseconds: Literal["exact", "truncate", "long"] = "exact",
        blobs: Literal["reference", "bytes"] = "reference",
        storage_options: Mapping[str, str] | None = None,
        progress: bool | None = None,
    ) -> Self:
        """The table at a path or URI. NotFound where there is none.

        Without ``version``, ``tag`` and ``timestamp`` each method sees the newest version of that moment.
        """
        address = Address(
            uri=os.fspath(path),
            storage_options=dict(storage_options or {}),
            version=version,
            tag=tag,
            branch=branch,
            timestamp=timestamp,
        ).absolute()
        address.open()
        choices = Choices(time=time_type, nanoseconds=nanoseconds, blobs=blobs)
        return cls(Handle(sparkSession, address, choices=choices, progress=progress))

    @classmethod
    def create(
        cls,
        sparkSession: SparkSession,
        path: str | os.PathLike[str],
        schema: StructType | str,
        *,
        ifNotExists: bool = False,
        data_storage_version: str | None = None,
        enable_stable_row_ids: bool = False,
        storage_options: Mapping[str, str] | None = None,
    ) -> Self:
        """Make a table without rows. AlreadyExists where there is one, unless ``ifNotExists``: then that one."""
        try:
            write(
                sparkSession.createDataFrame([], schema),
                path,
                mode="error",
                data_storage_version=data_storage_version,
                enable_stable_row_ids=enable_stable_row_ids,
                storage_options=storage_options,
            )
        except AlreadyExists:
            if not ifNotExists:
                raise
        return cls.forPath(sparkSession, path, storage_options=storage_options)

    @staticmethod
    def isLanceTable(
        sparkSession: SparkSession,  # noqa: ARG004 - as Delta has it
        path: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
    ) -> bool:
        """Whether there is a table at a path or URI."""
        address = Address(uri=os.fspath(path), storage_options=dict(storage_options or {})).absolute()
        return find_latest(address.main_store()) is not None
