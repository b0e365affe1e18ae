"""What all parts of the table object share: where the table is, what expressions call it, and its rows as a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from lancelet.dataset.lance_dataset import LanceDataset
from lancelet.errors import InvalidInput
from lancelet.spark.frames import read_frame
from lancelet.spark.handle import Handle
from lancelet.spark.options import ReadOptions
from lancelet.table.snapshot import Snapshot

__all__ = ["TableCore"]


class TableCore:
    """A table in a Spark session."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __repr__(self) -> str:
        address = self._handle.address
        parts = [repr(address.uri)]
        parts += [
            f"{name}={value!r}"
            for name in ("branch", "version", "tag", "timestamp")
            if (value := getattr(address, name)) is not None
        ]
        return f"{type(self).__name__}({', '.join(parts)})"

    @property
    def uri(self) -> str:
        """Where the table is."""
        return self._handle.address.uri

    @property
    def sparkSession(self) -> SparkSession:
        """The session that carries the table's jobs out."""
        return self._handle.spark

    @property
    def version(self) -> int:
        """The version that is meant: the newest now, unless the object was made for another."""
        return self._snapshot().version

    def alias(self, aliasName: str) -> Self:
        """The table under a name by which conditions and expressions call it."""
        return type(self)(replace(self._handle, alias=aliasName))

    def toDF(
        self,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        filter: str | None = None,
        *,
        withRowId: bool = False,
        withRowAddress: bool = False,
    ) -> DataFrame:
        """The rows as a DataFrame: of ``columns`` only, and those for which ``filter``, Lance's SQL, is true."""
        asked = ReadOptions(
            columns=dict(columns) if isinstance(columns, Mapping) else None if columns is None else tuple(columns),
            filter=filter,
            with_row_id=withRowId,
            with_row_address=withRowAddress,
            choices=self._handle.choices,
        )
        frame = read_frame(self._handle.spark, self._handle.address, asked)
        return frame if self._handle.alias is None else frame.alias(self._handle.alias)

    def dataset(self) -> LanceDataset:
        """The version that is meant for use in this process, without Spark."""
        address, snapshot = self._handle.address, self._snapshot()
        opened = LanceDataset(address.uri, storage_options=dict(address.storage_options) or None)
        return opened.checkout_version((snapshot.branch, snapshot.version))

    def _snapshot(self) -> Snapshot:
        return self._handle.address.open()

    def _writable(self) -> Handle:
        address = self._handle.address
        if address.version is not None or address.tag is not None or address.timestamp is not None:
            hint = "make the object without version, tag and timestamp"
            raise InvalidInput("only the newest version can be changed", uri=address.uri, hint=hint)
        return self._handle
