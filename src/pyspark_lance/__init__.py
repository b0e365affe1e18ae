"""The module by whose name Spark finds lancelet: it looks for a DefaultSource in every module named ``pyspark_*``.

Spark imports all of them. This one stays light, and never fails to import, because one that fails hides every other
Python data source: what does the work is imported when a table is read or written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from lancelet.spark.address import Address

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """Lance tables as ``spark.read.format("lance")`` and ``df.write.format("lance")``."""

    _pinned: Address | None = None

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "lance"

    def schema(self) -> StructType:
        """The columns of the table; from here on the version is pinned."""
        from lancelet.spark.source import described

        self._pinned, schema = described(self.options)
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """What reads the rows."""
        from lancelet.spark.source import make_reader

        return make_reader(self.options, self._pinned, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """What writes the rows of a query."""
        from lancelet.spark.sink import make_writer

        return make_writer(self.options, schema, overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """What tells a stream of rows, version by version."""
        from lancelet.spark.stream_source import make_stream_reader

        return make_stream_reader(self.options, self._pinned, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """What writes the batches of a streaming query."""
        from lancelet.spark.stream_sink import LanceStreamWriter

        return LanceStreamWriter(self.options, schema, overwrite)
