"""Table functions of SQL: a table searched, its versions, its files and their pages, in any query of Spark's.

    SELECT * FROM lance_search('s3://bucket/t', filter => 'id > 7', columns => 'id, name')
    SELECT * FROM lance_search('s3://bucket/t', column => 'vector', nearest => array(0.1, 0.2), k => 5)
    SELECT * FROM lance_versions('s3://bucket/t')
    SELECT * FROM lance_files('s3://bucket/t', version => 3)
    SELECT * FROM lance_pages('s3://bucket/t') WHERE column = 'vector'

Each is one task of Spark, for answers of moderate size; a whole table is read by ``lancelet.spark.read``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as spark
from pyspark.sql.functions import udtf
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from lancelet.dataset.lance_dataset import LanceDataset
from lancelet.dataset.scanner import LanceScanner
from lancelet.errors import InvalidInput
from lancelet.file.page_map import page_map
from lancelet.file.reader import LanceFileReader
from lancelet.query.nearest import vector_kind
from lancelet.query.request import bound_schema, column_named
from lancelet.spark.address import Address, opened
from lancelet.spark.casts import cast_batch, cast_for
from lancelet.spark.choices import Choices
from lancelet.spark.reading import natural_schema
from lancelet.spark.spark_arrow import spark_arrow
from lancelet.spark.table_versions import HISTORY, history_rows, tags_of
from lancelet.storage.paths import join_uri

__all__ = ["LanceFiles", "LancePages", "LanceSearch", "LanceVersions", "register_functions"]

_WHERE = ("version", "tag", "branch", "timestamp", "storage_options")
#: What decides which columns come out, so that it must be known before the query runs.
_SHAPING = ("columns", "column", "with_row_id", "with_row_address", *_WHERE)
_CHOOSING = (
    "filter",
    "nearest",
    "k",
    "metric",
    "prefilter",
    "text",
    "limit",
    "offset",
    "use_index",
    "nprobes",
    "refine_factor",
)


def register_functions(spark: SparkSession) -> None:
    """Make ``lance_search``, ``lance_versions``, ``lance_files`` and ``lance_pages`` known to a session's SQL.

    On classic Spark and Connect.

        lancelet.spark.register_functions(spark)
        spark.sql("SELECT version, operation FROM lance_versions('s3://bucket/t')").show()
    """
    for name, function, kind in (
        ("lance_search", LanceSearch, None),
        ("lance_versions", LanceVersions, HISTORY),
        ("lance_files", LanceFiles, _FILES),
        ("lance_pages", LancePages, _PAGES),
    ):
        made: Any = udtf(function, returnType=kind)
        spark.udtf.register(name, made)


@dataclass
class Searched(AnalyzeResult):
    """What a search was found to be: its columns, and the version that they are of."""

    address: Address = field(default_factory=lambda: Address(uri=""))


class LanceSearch:
    """Rows of a table: those that a filter lets pass, or the nearest to a vector, or to words."""

    def __init__(self, analyzed: Searched) -> None:
        self._address, self._schema = analyzed.address, analyzed.schema

    @staticmethod
    def analyze(uri: AnalyzeArgument, **options: AnalyzeArgument) -> Searched:
        """The columns of the answer. What shapes them has to be constant; a query may also come from another table."""
        known = (*_SHAPING, *_CHOOSING)
        for name, item in options.items():
            if name not in known:
                raise InvalidInput(f"lance_search has no argument {name}", hint=f"there are: {', '.join(known)}")
            if name in _SHAPING and not item.isConstantExpression:
                raise InvalidInput(f"the argument {name} of lance_search is not constant")
        address = _pinned(_constant("uri", uri), {name: item.value for name, item in options.items() if name in _WHERE})
        given = {name: item.value for name, item in options.items() if name not in _WHERE}
        if "nearest" in options:
            # Only what it is like is looked at here.
            given["nearest"] = np.zeros(_dimension(address, given.get("column")), np.float32).tolist()
        schema = _scanner(
            address, {name: given[name] for name in given if name not in ("filter", "limit", "offset", "k")}
        )
        return Searched(natural_schema(_texts(schema.projected_schema), Choices(time="long")), address=address)

    def eval(self, uri: str, **options: Any) -> Iterator[tuple[object, ...]]:  # noqa: ARG002 - it is in the address
        """The rows of the answer, in its order."""
        scanner = _scanner(self._address, {name: value for name, value in options.items() if name not in _WHERE})
        yield from _rows(scanner.to_batches(), scanner.projected_schema, self._schema)


def _constant(name: str, item: AnalyzeArgument) -> Any:
    if not item.isConstantExpression or item.value is None:
        raise InvalidInput(f"the argument {name} is not constant, or null", hint="write it as a literal")
    return item.value


def _pinned(uri: str, where: Mapping[str, Any]) -> Address:
    """One version of a table, so that all tasks and steps of a query see the same."""
    given = {name: value for name, value in where.items() if value is not None}
    storage = {str(key): str(value) for key, value in (given.pop("storage_options", None) or {}).items()}
    address = Address(uri=uri, storage_options=storage, **given).absolute()
    return address.pinned(address.open())


def _dataset(address: Address) -> LanceDataset:
    made = LanceDataset(address.uri, storage_options=dict(address.storage_options) or None)
    return made.checkout_version((address.branch, address.version))


def _dimension(address: Address, column: str | None) -> int:
    if column is None:
        raise InvalidInput("nearest needs the argument column", hint="say column => 'vector', nearest => array(...)")
    found = column_named(column, bound_schema(opened(address)[0].schema))
    return vector_kind(found.type, column).size


def _scanner(address: Address, options: Mapping[str, Any]) -> LanceScanner:
    given = {name: value for name, value in options.items() if value is not None}
    nearest = None
    if "nearest" in given:
        names = ("column", "k", "metric", "use_index", "nprobes", "refine_factor")
        nearest = {"q": np.asarray([float(item) for item in given.pop("nearest")], np.float32)}
        nearest |= {name: given.pop(name) for name in names if name in given}
    columns = given.pop("columns", None)
    if isinstance(columns, str):
        columns = [name.strip() for name in columns.split(",") if name.strip()]
    text = given.pop("text", None)
    if "column" in given or "k" in given:
        raise InvalidInput("column and k are said of the vectors to search", hint="say nearest => array(...), too")
    return _dataset(address).scanner(columns=columns, nearest=nearest, full_text_query=text, **given)


def _texts(schema: pa.Schema) -> pa.Schema:
    """The schema with JSON documents as the texts that they are."""
    return pa.schema(
        [
            field.with_type(field.type.storage_type)
            if isinstance(field.type, pa.BaseExtensionType) and field.type.extension_name == "arrow.json"
            else field
            for field in schema
        ],
        schema.metadata,
    )


def _rows(
    batches: Iterable[pa.RecordBatch], source: pa.Schema, schema: spark.StructType
) -> Iterator[tuple[object, ...]]:
    """Rows as Spark takes them from Python functions."""
    target = spark_arrow(schema)
    source = _texts(source)
    casts = [cast_for(source.field(item.name), item, narrow=True) for item in target]
    for batch in batches:
        made = cast_batch(batch.cast(source).select(target.names), casts, target)
        yield from zip(*(column.to_pylist(maps_as_pydicts="strict") for column in made.columns), strict=True)


class LanceVersions:
    """The versions of a table, newest first, as ``LanceTable.history`` tells them."""

    def eval(
        self,
        uri: str,
        limit: int | None = None,
        branch: str | None = None,
        storage_options: dict[str, str] | None = None,
    ) -> Iterator[tuple[object, ...]]:
        """A row for each version."""
        address = _pinned(uri, {"branch": branch, "storage_options": storage_options})
        yield from islice(history_rows(opened(address)[0], tags_of(address)), limit)


_FILES = (
    "fragment long, path string, uri string, rows long, deleted_rows long, size_bytes long, "
    "data_storage_version string, columns array<string>, deletion_file string"
)


class LanceFiles:
    """The data files of a version: what is in them, and which rows of their fragments are gone."""

    def eval(
        self,
        uri: str,
        version: int | None = None,
        tag: str | None = None,
        branch: str | None = None,
        storage_options: dict[str, str] | None = None,
    ) -> Iterator[tuple[object, ...]]:
        """A row for each data file."""
        where = {"version": version, "tag": tag, "branch": branch, "storage_options": storage_options}
        snapshot, places = opened(_pinned(uri, where))
        names = {item.id: name for name, item in _paths(snapshot.schema.fields)}
        for fragment in snapshot.manifest.fragments:
            gone = fragment.deletion_file
            deletion = None if gone is None else places.deletion_file(fragment.id, gone)
            for file in fragment.files:
                store, path = places.data_file(file)
                columns = [names[number] for number in file.fields if number in names]
                yield (
                    fragment.id,
                    path,
                    join_uri(store.uri, path),
                    fragment.physical_rows,
                    0 if gone is None else gone.num_deleted_rows,
                    file.file_size,
                    file.version.label,
                    columns,
                    None if deletion is None else join_uri(deletion[0].uri, deletion[1]),
                )


def _paths(fields: Sequence[Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for item in fields:
        yield f"{prefix}{item.name}", item
        yield from _paths(item.children, f"{prefix}{item.name}.")


_PAGES = (
    "fragment long, path string, column string, page int, first_row long, rows long, layout string, encoding string, "
    "num_bytes long, bytes_per_value double, dictionary_items long"
)


class LancePages:
    """The pages of a version's data files: where they lie and how they are encoded."""

    def eval(
        self,
        uri: str,
        version: int | None = None,
        fragment: int | None = None,
        tag: str | None = None,
        branch: str | None = None,
        storage_options: dict[str, str] | None = None,
    ) -> Iterator[tuple[object, ...]]:
        """A row for each page. Nothing but the metadata of files is read."""
        where = {"version": version, "tag": tag, "branch": branch, "storage_options": storage_options}
        address = _pinned(uri, where)
        snapshot, places = opened(address)
        for item in snapshot.manifest.fragments:
            if fragment is not None and item.id != fragment:
                continue
            for file in item.files:
                store, path = places.data_file(file)
                reader = LanceFileReader(
                    join_uri(store.uri, path), dict(address.storage_options) or None, size=file.file_size
                )
                for page in page_map(reader).pages:
                    yield (
                        item.id,
                        path,
                        page.path,
                        page.page,
                        page.first_row,
                        page.rows,
                        page.layout,
                        page.encoding,
                        page.num_bytes,
                        page.bytes_per_value,
                        page.dictionary_items,
                    )
