"""The source ``format("lance")``: what Spark's planner and its tasks call, each a few lines around plans of reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from lancelet.errors import InvalidInput
from lancelet.expr.tree import Call
from lancelet.query.facts import facts_of
from lancelet.query.plan import outputs_of
from lancelet.spark.address import Address, opened
from lancelet.spark.filters import take_filters
from lancelet.spark.options import ReadOptions, read_options, stream_options
from lancelet.spark.reading import Reading, plan_reading, plan_splits, read_split
from lancelet.spark.splits import Split
from lancelet.spark.stream_source import with_change_columns
from lancelet.spark.types import ADDRESS, kept_options

__all__ = ["LanceReader", "described", "make_reader"]

#: What Spark's catalog says besides the user's options when it makes a table, and at no other time.
_OF_CATALOG = "provider"


def described(options: Mapping[str, str]) -> tuple[Address, StructType]:
    """The pinned version that options mean, and its schema.

    A table that is being made in Spark's catalog keeps its address in the metadata of the first column, because
    Spark keeps no other trace of it; storage options, which may be credentials, never.
    """
    address, asked = read_options(options)
    pinned = address.pinned(address.open())
    schema = plan_reading(pinned, asked).schema
    if stream_options(options).mode == "changes":
        schema = with_change_columns(schema)
    if _OF_CATALOG in options and schema.fields:
        first = schema.fields[0]
        kept = {key: text for key, text in options.items() if key in _KEPT or key.replace("_", "") in _KEPT_PLAIN}
        first.metadata = {**first.metadata, ADDRESS: json.dumps({**kept, "path": address.uri}, sort_keys=True)}
    return pinned, schema


_KEPT = ("version", "tag", "branch", "timestamp", "filter", "time_type", "nanoseconds", "blobs", "columns")
_KEPT_PLAIN = tuple(name.replace("_", "") for name in _KEPT)


def make_reader(options: Mapping[str, str], pinned: Address | None, schema: StructType) -> LanceReader:
    """The reader of a schema, of the version that was pinned when the schema was told; else of the newest now."""
    given = dict(options)
    if "path" not in given:
        given = {**kept_options(schema), **given}
    address, asked = read_options(given)
    if stream_options(given).mode == "changes":
        hint = "use spark.readStream, or LanceTable.changes for the changes between two versions"
        raise InvalidInput("changes are told by streams, not by a read of one version", uri=address.uri, hint=hint)
    if pinned is None or pinned.uri != address.uri:
        pinned = address.pinned(address.open())
    # The schema names the columns already; those that are computed are told by the option.
    named = asked if isinstance(asked.columns, dict) else replace(asked, columns=None)
    return LanceReader(plan_reading(pinned, _visible(named), schema))


def _visible(asked: ReadOptions) -> ReadOptions:
    return replace(asked, with_row_id=False, with_row_address=False)


class _PushFilters:
    """What Spark calls to offer filters, if its session lets it.

    A reader whose class has this method is refused where ``spark.sql.python.filterPushdown.enabled`` is not set. An
    attribute that names the base class's function as its own passes there, and is called where filters are offered.
    """

    def __init__(self, take: Callable[[Iterable[object]], list[object]]) -> None:
        self._take = take
        self.__func__ = getattr(DataSourceReader, "pushFilters", None)

    def __call__(self, filters: Iterable[object]) -> list[object]:
        return self._take(filters)


class LanceReader(DataSourceReader):
    """Reads the splits of one version."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.pushFilters = _PushFilters(self.take)  # type: ignore[assignment]

    def __getstate__(self) -> Reading:
        return self.reading

    def __setstate__(self, reading: Reading) -> None:
        self.__init__(reading)  # type: ignore[misc]

    def take(self, filters: Iterable[object]) -> list[object]:
        """Take the filters that can be; those that Spark has to look at again."""
        request = self.reading.request
        snapshot, _ = opened(self.reading.address)
        outputs = dict(outputs_of(facts_of(snapshot.manifest), request)[0])
        condition, left = take_filters(filters, outputs)  # type: ignore[arg-type]
        if condition is not None and request.limit is None and not request.offset:
            whole = condition if request.filter is None else Call("and", (request.filter, condition), pa.bool_())
            self.reading = replace(self.reading, request=replace(request, filter=whole))
            return list(left)
        return list(filters)

    def partitions(self) -> list[InputPartition]:
        """A split for each task."""
        return [InputPartition(split) for split in plan_splits(self.reading)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a split; of none where there is none, as Spark asks an empty table."""
        split = partition.value
        return read_split(self.reading, split) if isinstance(split, Split) else iter(())
