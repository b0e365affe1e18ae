"""Changes of a dataset's columns: new ones with values from many places, other names and types, fewer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict, cast

import pyarrow as pa

from lancelet.dataset.core import DatasetCore
from lancelet.dataset.udf import BatchSource, BatchUDF, Transforms, as_batch, normalize_transform
from lancelet.dataset.udf_checkpoint import FileCheckpoint
from lancelet.errors import InvalidInput
from lancelet.ops.alter import Alteration, alter_columns
from lancelet.ops.backfill.backfill import backfill
from lancelet.ops.backfill.joined import Joined, join_rows
from lancelet.ops.backfill.values import Expressions, Transform, Values
from lancelet.ops.columns import drop_columns
from lancelet.ops.committing import CommitOptions
from lancelet.ops.new_columns import add_columns, add_null_columns
from lancelet.types import ReaderLike, reader_of

__all__ = ["AlterColumn", "DatasetColumns", "values_of"]

_BATCH = 1024
#: The share of the memory budget that rows to join with may take before they go to disk.
_SHARE = 4
_KEYS = ("path", "name", "nullable", "data_type")
_EXPECTED = ", ".join(_KEYS)


class AlterColumn(TypedDict):
    """What becomes of the column at a dotted path; what is not said stays."""

    path: str
    name: str | None
    nullable: bool | None
    data_type: pa.DataType | None


class DatasetColumns(DatasetCore):
    """What changes columns. Each change is a commit, at whose version the dataset is then."""

    def add_columns(
        self,
        transforms: Transforms | pa.Field | list[pa.Field] | pa.Schema,
        read_columns: list[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Put columns in: by SQL expressions, by a function of batches, from rows in the table's order, or of nulls.

        A function gets ``read_columns``, all if there are none, ``_rowid`` and ``_rowaddr`` if they are among them,
        ``batch_size`` rows at a time. Expressions and functions work fragment by fragment, and what they made stays
        good where others append or delete meanwhile. Fields or a schema alone change nothing but the manifest.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://added")
        >>> dataset.add_columns({"double": "x * 2"})
        >>> dataset.add_columns(lambda batch: pa.record_batch({"text": batch["x"].cast("string")}))
        >>> dataset.add_columns(pa.field("later", pa.float32()))
        >>> dataset.to_table().to_pylist()[0]
        {'x': 1, 'double': 2, 'text': '1', 'later': None}
        """
        options = CommitOptions(commit_lock=self._commit_lock())
        schema = _schema_alone(transforms)
        if schema is not None:
            self._follow(add_null_columns(self._snapshot, schema, options=options))
            return
        source = cast("BatchSource", self)
        made = normalize_transform(transforms, source, read_columns, reader_schema)
        if isinstance(made, pa.RecordBatchReader):
            self._follow(add_columns(self._snapshot, made, options=options))
            return
        cache = made.cache if isinstance(made, BatchUDF) else None
        checkpoint = None if cache is None else FileCheckpoint(cache)
        values = values_of(made, read_columns, batch_size)
        self._follow(backfill(self._snapshot, values, checkpoint=checkpoint, options=options))

    def merge(
        self, data_obj: ReaderLike, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None
    ) -> None:
        """Put the columns of other rows in, for each row those of the row with the same key; null where none has it.

        The key is column ``left_on`` of the dataset, also ``_rowid`` or ``_rowaddr``, and ``right_on`` of the other
        rows, of which the keys have to fit into memory. A null is like no key; of several rows with one key the last
        counts.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://joined")
        >>> dataset.merge(pa.table({"x": [3, 1], "y": ["c", "a"]}), "x")
        >>> dataset.to_table()["y"].to_pylist()
        ['a', None, 'c']
        """
        key = left_on if right_on is None else right_on
        rows = join_rows(reader_of(data_obj, schema), key, most=self._snapshot.options.memory_budget // _SHARE)
        options = CommitOptions(commit_lock=self._commit_lock())
        self._follow(backfill(self._snapshot, Joined(rows, left_on), options=options))

    def alter_columns(self, *alterations: AlterColumn | Mapping[str, object]) -> None:
        """Give columns other names and types, and say whether they may be null, all in one commit.

        Each alteration has the ``path`` of a column and at least one of ``name``, ``nullable`` and ``data_type``. For
        another type the column is stored anew; values that do not fit are an error. A column may be made non-nullable
        where it has no nulls.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://alter-columns")
        >>> dataset.alter_columns({"path": "x", "name": "y", "data_type": pa.int8()})
        >>> dataset.schema
        y: int8
        """
        made = [_alteration(item) for item in alterations]
        options = CommitOptions(commit_lock=self._commit_lock())
        self._follow(alter_columns(self._snapshot, made, options=options))

    def drop_columns(self, columns: list[str]) -> None:
        """Leave columns out, given by their names or dotted paths. Files go on holding them until they are compacted.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1], "y": [2]}), "memory://drop-columns")
        >>> dataset.drop_columns(["x"])
        >>> dataset.schema.names
        ['y']
        """
        if isinstance(columns, str) or not isinstance(columns, Iterable):
            raise TypeError(f"columns must be a list of names, got {columns!r}")
        options = CommitOptions(commit_lock=self._commit_lock())
        self._follow(drop_columns(self._snapshot, dict.fromkeys(columns), options=options))


def _schema_alone(given: object) -> pa.Schema | None:
    """The schema that columns of nulls are to have; None where values are given."""
    if isinstance(given, pa.Field):
        return pa.schema([given])
    if isinstance(given, list) and given and isinstance(given[0], pa.Field):
        return pa.schema(given)
    return given if isinstance(given, pa.Schema) else None


def values_of(given: dict[str, str] | BatchUDF, read_columns: Iterable[str] | None, batch_size: int | None) -> Values:
    """Expressions or a function as backfills take them."""
    if not isinstance(given, BatchUDF):
        return Expressions(tuple(given.items()))
    columns = None if read_columns is None else tuple(read_columns)
    name = getattr(given.func, "__qualname__", type(given.func).__qualname__)
    return Transform(
        lambda batch: as_batch(given(batch)), _of(given), columns, _BATCH if batch_size is None else batch_size, name
    )


def _of(udf: BatchUDF) -> pa.Schema:
    if udf.output_schema is None:
        raise InvalidInput("the function does not tell the columns that it makes", hint="give output_schema")
    return udf.output_schema


def _alteration(given: object) -> Alteration:
    if not isinstance(given, Mapping):
        raise TypeError(f"an alteration is a dict with the path of a column, got {type(given).__name__}")
    if not given.get("path"):
        raise InvalidInput("path is required: it says which column is altered")
    odd = next((key for key in given if key not in _KEYS), None)
    if odd is not None:
        raise InvalidInput(f"an alteration has no key {odd!r}", column=str(given["path"]), hint=f"give {_EXPECTED}")
    kind = given.get("data_type")
    if kind is not None and not isinstance(kind, pa.DataType):
        raise TypeError(f"data_type must be a pyarrow.DataType, got {kind!r}")
    return Alteration(*(given.get(key) for key in _KEYS))  # type: ignore[arg-type]
