"""Sources on Spark: the inputs that there are, each with what tells its states apart, and the rows of some of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol
from urllib.parse import unquote

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types
from pyspark.sql.functions import col, concat_ws, unix_micros
from pyspark.sql.functions import min as least

from lancelet.errors import InvalidInput, NotFound
from lancelet.format.flags import STABLE_ROW_IDS
from lancelet.pipeline.declaration import Pipeline
from lancelet.pipeline.declared_sources import FilesSource, FrameSource, LanceSource, PythonSource, SqlSource
from lancelet.pipeline.references import code_of, resolved
from lancelet.pipeline.rows import INPUT, MARK, SIZE, as_names, beside, content_mark, identity
from lancelet.spark.address import Address
from lancelet.spark.frames import parallelism, read
from lancelet.spark.spark_arrow import spark_arrow
from lancelet.spark.worker import prepare_worker

__all__ = ["OpenSource", "open_source"]

_UPDATED_AT = "_row_last_updated_at_version"
#: Rows of dictionaries that become one batch.
_ROWS = 1024


class OpenSource(Protocol):
    """A source in a Spark session."""

    @property
    def code(self) -> str:
        """What decides, besides the inputs themselves, which rows come of them."""

    def marks(self) -> DataFrame:
        """The inputs: names, texts of which a change tells that the input changed, and sizes if they are known."""

    def rows(self, chosen: DataFrame) -> DataFrame:
        """The rows of those inputs that ``chosen`` names beside their marks, each with its input's name."""


def open_source(spark: SparkSession, pipeline: Pipeline) -> OpenSource:
    """The source that a pipeline declares."""
    source, folder = pipeline.source, pipeline.folder
    if isinstance(source, FilesSource):
        patterns = tuple(beside(place, folder) for place in as_names(source.files))
        files = _Files(spark, replace(source, files=patterns))
        return _Keyed(files.all_rows, as_names(source.key), files.code) if source.key else files
    if isinstance(source, SqlSource):
        return _Keyed(partial(spark.sql, source.sql), as_names(source.key), source.sql)
    if isinstance(source, FrameSource):
        function = resolved(source.frame, folder)
        return _Keyed(partial(function, spark), as_names(source.key), code_of(source.frame, folder))
    if isinstance(source, PythonSource):
        names, rows = resolved(source.inputs, folder), resolved(source.rows, folder)
        return _Python(spark, names, rows, source.schema, f"{code_of(source.rows, folder)} {source.schema}")
    return _lance(spark, replace(source, lance=beside(source.lance, folder)))


@dataclass(frozen=True, slots=True)
class _Keyed:
    """Rows that a key identifies. They are read each time, and compared by their values."""

    open: Callable[[], DataFrame]
    key: Sequence[str]
    code: str

    def marks(self) -> DataFrame:
        """Each row is an input."""
        frame = self.open()
        return frame.select(identity(frame, self.key).alias(INPUT), content_mark(frame).alias(MARK))

    def rows(self, chosen: DataFrame) -> DataFrame:
        """The rows of those inputs."""
        frame = self.open()
        return frame.withColumn(INPUT, identity(frame, self.key)).join(chosen.select(INPUT), INPUT, "left_semi")


@dataclass(frozen=True, slots=True)
class _Files:
    """Files that Spark lists and reads; each is an input, by its URI."""

    spark: SparkSession
    source: FilesSource

    @property
    def code(self) -> str:
        """How files are read."""
        return repr((self.source.format, self.source.schema, sorted(self.source.options.items())))

    def marks(self) -> DataFrame:
        """Names, sizes and times; no file is opened."""
        found = self._found(lambda: self.spark.read.format("binaryFile").load(list(as_names(self.source.files))))
        size, time = col("_metadata.file_size"), unix_micros(col("_metadata.file_modification_time"))
        name = col("_metadata.file_path").alias(INPUT)
        return found.select(name, concat_ws(" ", size, time).alias(MARK), size.alias(SIZE))

    def rows(self, chosen: DataFrame) -> DataFrame:
        """The rows of those files, which alone are opened."""
        # Spark takes patterns, not names.
        names = [re.sub(r"([{}\[\]*?\\])", r"\\\1", unquote(row[0])) for row in chosen.select(INPUT).collect()]
        return self._read(names) if names else self._read(list(as_names(self.source.files))).where("false")

    def all_rows(self) -> DataFrame:
        """The rows of all files, without their names."""
        return self._read(list(as_names(self.source.files))).drop(INPUT)

    def _read(self, names: list[str]) -> DataFrame:
        reader = self.spark.read.format(self.source.format)
        if self.source.schema is not None:
            reader = reader.schema(self.source.schema)
        usual = {"wholetext": "true"} if self.source.format == "text" else {}
        reader = reader.options(**{**usual, **self.source.options})
        frame = self._found(lambda: reader.load(names))
        return frame.select("*", col("_metadata.file_path").alias(INPUT))

    def _found(self, load: Callable[[], DataFrame]) -> DataFrame:
        try:
            frame = load()
            frame.schema  # noqa: B018 - on Connect nothing is looked for before
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            patterns = ", ".join(as_names(self.source.files))
            raise NotFound("no file matches what the source names", uri=patterns) from None
        return frame


@dataclass(frozen=True, slots=True)
class _Python:
    """Functions that name inputs and make the rows of one."""

    spark: SparkSession
    names: Callable[[], Mapping[str, object]]
    make: Callable[[str], Any]
    schema: str
    code: str

    def marks(self) -> DataFrame:
        """What the function says."""
        given = self.names()
        if not isinstance(given, Mapping):
            found = f"the function that names inputs returned {type(given).__name__}"
            raise InvalidInput(found, hint="let it return a mapping of names to fingerprints")
        rows = [(str(name), str(mark)) for name, mark in given.items()]
        return self.spark.createDataFrame(rows, f"{INPUT} string, {MARK} string")

    def rows(self, chosen: DataFrame) -> DataFrame:
        """Rows made by tasks, a few for each of Spark's cores, so that long inputs and short ones even out."""
        names = sorted(row[0] for row in chosen.select(INPUT).collect())
        kind = self.spark.createDataFrame([], self.schema).schema
        schema = spark_types.StructType([*kind.fields, spark_types.StructField(INPUT, spark_types.StringType())])
        tasks = max(1, min(len(names), 4 * parallelism(self.spark)))
        run = partial(_made, self.make, tuple(names), tasks, spark_arrow(schema))
        return self.spark.range(0, tasks, 1, tasks).mapInArrow(run, schema)


def _made(
    make: Callable[[str], Any], names: Sequence[str], tasks: int, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    prepare_worker()
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for name in names[number::tasks]:
                yield from _batches(make(name), name, schema)


def _batches(rows: Any, name: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """What a function made of an input, as batches of a schema whose last column is the input's name."""
    wanted = pa.schema(list(schema)[:-1])
    for table in _tables(rows, wanted, name):
        missing = [item for item in wanted.names if item not in table.column_names]
        if missing:
            raise InvalidInput(f"the rows of input {name!r} have no column {missing[0]!r}")
        cast = table.select(wanted.names).cast(wanted)
        named = cast.append_column(schema.field(len(wanted)), pa.array([name]).take(pa.array([0] * len(cast))))
        yield from named.to_batches(max_chunksize=10_000)


def _tables(rows: Any, schema: pa.Schema, name: str) -> Iterator[pa.Table]:
    if isinstance(rows, pa.Table):
        yield rows
        return
    held: list[Mapping[str, object]] = []
    for row in rows:
        if isinstance(row, pa.RecordBatch):
            yield pa.Table.from_batches([row])
        elif isinstance(row, Mapping):
            held.append(row)
        else:
            found = f"the function that makes rows gave {type(row).__name__} for input {name!r}"
            raise InvalidInput(found, hint="let it give dictionaries or Arrow record batches, or return a table")
        if len(held) >= _ROWS:
            yield pa.Table.from_pylist(held, schema)
            held = []
    if held:
        yield pa.Table.from_pylist(held, schema)


def _lance(spark: SparkSession, source: LanceSource) -> OpenSource:
    """A table as of now: by its stable row ids, or by a key."""
    address = Address(uri=source.lance, storage_options=dict(source.storage_options)).absolute()
    snapshot = address.open()
    code = repr((source.columns, source.filter))
    if source.key:
        columns = source.columns and tuple(dict.fromkeys([*source.columns, *as_names(source.key)]))
        opened = partial(_read_lance, spark, source, snapshot.version, columns, source.filter)
        return _Keyed(opened, as_names(source.key), code)
    if not snapshot.manifest.reader_flags & STABLE_ROW_IDS.value:
        hint = "name the columns that identify a row as the source's key"
        raise InvalidInput("rows of the source have no stable ids", uri=source.lance, hint=hint)
    return _LanceByIds(spark, source, snapshot.version, code)


def _read_lance(
    spark: SparkSession, source: LanceSource, version: int, columns: Sequence[str] | None, filter: str | None
) -> DataFrame:
    options = dict(source.storage_options)
    return read(spark, source.lance, version=version, columns=columns, filter=filter, storage_options=options)


@dataclass(frozen=True, slots=True)
class _LanceByIds:
    """A version of a table whose rows keep their ids; a row's mark is the version that last wrote it."""

    spark: SparkSession
    source: LanceSource
    version: int
    code: str

    def marks(self) -> DataFrame:
        """Ids and versions, which manifests hold: of the columns only those that the filter asks for are read."""
        frame = _read_lance(self.spark, self.source, self.version, ("_rowid", _UPDATED_AT), self.source.filter)
        return frame.select(col("_rowid").cast("string").alias(INPUT), col(_UPDATED_AT).cast("string").alias(MARK))

    def rows(self, chosen: DataFrame) -> DataFrame:
        """The rows of those ids; fragments that no version since the oldest of them wrote are passed over."""
        oldest = chosen.agg(least(col(MARK).cast("long"))).collect()[0][0]
        since = f"{_UPDATED_AT} >= {oldest or 0}"
        asked = since if self.source.filter is None else f"({self.source.filter}) and {since}"
        columns = self.source.columns
        if columns is None:
            there = Address(uri=self.source.lance, storage_options=dict(self.source.storage_options)).absolute()
            columns = tuple(field.name for field in there.open().schema.fields)
        frame = _read_lance(self.spark, self.source, self.version, (*columns, "_rowid"), asked)
        named = frame.withColumn(INPUT, col("_rowid").cast("string")).drop("_rowid")
        return named.join(chosen.select(INPUT), INPUT, "left_semi")
