"""Writing on Spark: the rows of some inputs put in the place of those that the inputs had, by one commit."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, concat, count, lit, monotonically_increasing_id
from pyspark.sql.types import StructType

from lancelet.errors import InvalidInput
from lancelet.ops.new_columns import add_null_columns
from lancelet.pipeline.declaration import Write
from lancelet.pipeline.rows import INPUT, as_names, quoted
from lancelet.pipeline.state import GONE, SAME, Inputs, TableState
from lancelet.spark.table import LanceTable
from lancelet.spark.types import from_spark
from lancelet.spark.writes import write
from lancelet.table.outcome import committed

__all__ = ["Written", "remove_gone", "write_inputs"]

#: Columns of merges: the input whose rows go, or a name that no input has; whether a row is to be deleted.
_GOES, _GONE = "__lancelet_goes", "__lancelet_gone"
_OWNER = "__lancelet_owner"


@dataclass(frozen=True, slots=True)
class Written:
    """What one or several commits changed."""

    version: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    num_bytes: int = 0
    commits: int = 0

    def __add__(self, other: Written) -> Written:
        return Written(
            max(self.version, other.version),
            self.inserted + other.inserted,
            self.updated + other.updated,
            self.deleted + other.deleted,
            self.num_bytes + other.num_bytes,
            self.commits + other.commits,
        )


def write_inputs(
    frame: DataFrame,
    chosen: DataFrame,
    inputs: Inputs,
    state: TableState,
    options: Write,
    *,
    goes: DataFrame | None,
    message: str,
) -> Written:
    """Put the rows of the chosen inputs into the table, and delete those that the inputs in ``goes`` had before."""
    _check_columns(frame, options)
    if state.exists:
        _add_columns(frame.schema, state)
        if options.mode == "merge":
            return _merged(frame, chosen, inputs, state, options, message)
        if goes is not None:
            return _replaced(frame, goes, state, message)
    elif options.mode == "merge":
        frame = frame.localCheckpoint()
        _check_keys(frame, as_names(options.key))
    figures = write(
        frame,
        state.uri,
        mode="append",
        data_storage_version=options.data_storage_version,
        enable_stable_row_ids=options.enable_stable_row_ids,
        commit_message=message,
        transaction_properties={"lancelet.pipeline": state.pipeline},
        storage_options=state.storage_options,
    )
    if figures is None:
        return Written()
    return Written(figures.version, figures.num_rows, 0, 0, figures.num_bytes, 1)


def remove_gone(inputs: Inputs, state: TableState, message: str) -> Written:
    """Delete the rows of inputs that there are no more."""
    goes = inputs.of_kind(GONE).select(concat(lit(state.prefix), col(INPUT)).alias(_GOES))
    table = _table(state).alias("target")
    made = (
        table.merge(goes.alias("source"), f"target.{INPUT} = source.{_GOES}")
        .whenMatchedDelete()
        .withMessage(message)
        .execute()
    )
    return Written(made.version, deleted=made.num_deleted_rows, commits=1)


def _replaced(frame: DataFrame, goes: DataFrame, state: TableState, message: str) -> Written:
    """Rows that the inputs had are deleted, and the new ones inserted, by one merge."""
    # New rows are of no input that the table has, and each of another, so that a join spreads them.
    nobody = concat(lit("|"), monotonically_increasing_id().cast("string"))
    given = frame.withColumn(_GOES, nobody).withColumn(_GONE, lit(False))
    gone = goes.select(concat(lit(state.prefix), col(INPUT)).alias(_GOES), lit(True).alias(_GONE))
    source = given.unionByName(gone, allowMissingColumns=True)
    made = (
        _table(state)
        .alias("target")
        .merge(source.alias("source"), f"target.{INPUT} = source.{_GOES}")
        .whenMatchedDelete()
        .whenNotMatchedInsertAll(f"not source.{_GONE}")
        .withMessage(message)
        .execute()
    )
    return Written(made.version, made.num_inserted_rows, 0, made.num_deleted_rows, made.num_bytes, 1)


def _merged(
    frame: DataFrame, chosen: DataFrame, inputs: Inputs, state: TableState, options: Write, message: str
) -> Written:
    """Rows are found by their key: updated where the table has them, else inserted; what inputs no longer give goes."""
    key = as_names(options.key)
    # Evaluated once: several questions are asked of the rows before they are written.
    frame = frame.localCheckpoint()
    _check_keys(frame, key)
    columns = [*key, *([INPUT] if INPUT not in key else [])]
    stored = _table(state).toDF(columns=columns).withColumnRenamed(INPUT, _OWNER)
    _check_owners(frame, stored, key, inputs, state)
    mine = chosen.select(concat(lit(state.prefix), col(INPUT)).alias(_OWNER))
    stale = stored.join(mine, _OWNER, "left_semi").join(frame.select(*map(_column, key)), list(key), "left_anti")
    gone = stale.select(*map(_column, key), lit(True).alias(_GONE))
    source = frame.withColumn(_GONE, lit(False)).unionByName(gone, allowMissingColumns=True)
    made = (
        _table(state)
        .alias("target")
        .merge(source.alias("source"), _same_key(key))
        .whenMatchedDelete(f"source.{_GONE}")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll(f"not source.{_GONE}")
        .withMessage(message)
        .execute()
    )
    return Written(
        made.version, made.num_inserted_rows, made.num_updated_rows, made.num_deleted_rows, made.num_bytes, 1
    )


def _same_key(key: tuple[str, ...]) -> str:
    return " and ".join(f"target.{quoted(name)} = source.{quoted(name)}" for name in key)


def _column(name: str) -> Column:
    return col(quoted(name))


def _check_columns(frame: DataFrame, options: Write) -> None:
    missing = [name for name in as_names(options.key) if name not in frame.columns]
    if missing:
        hint = f"the rows have: {', '.join(frame.columns)}"
        raise InvalidInput(f"the rows have no column {missing[0]!r}, which is to be their key", hint=hint)


def _check_keys(frame: DataFrame, key: tuple[str, ...]) -> None:
    """Each row has a key of its own."""
    if frame.where(" or ".join(f"{quoted(name)} is null" for name in key)).limit(1).count():
        raise InvalidInput(f"a row has no value in the key {', '.join(key)}", hint="leave such rows out by a transform")
    twice = frame.groupBy(*map(_column, key)).agg(count(lit(1)).alias("n")).where("n > 1").first()
    if twice is not None:
        said = ", ".join(f"{name}={twice[name]!r}" for name in key)
        hint = "name more columns as the key, or leave rows out by a transform"
        raise InvalidInput(f"{twice.n} rows have the key {said}", hint=hint)


def _check_owners(frame: DataFrame, stored: DataFrame, key: tuple[str, ...], inputs: Inputs, state: TableState) -> None:
    """No row takes the place of one that another input gave: next time it would be the other way round."""
    others = inputs.of_kind(SAME).select(concat(lit(state.prefix), col(INPUT)).alias(_OWNER))
    found = frame.join(stored, list(key)).join(others, _OWNER, "left_semi").where(col(_OWNER) != col(INPUT)).first()
    if found is not None:
        said = ", ".join(f"{name}={found[name]!r}" for name in key)
        names = [name.removeprefix(state.prefix) for name in (found[_OWNER], found[INPUT])]
        raise InvalidInput(f"the inputs {names[0]!r} and {names[1]!r} both give a row with the key {said}")


def _add_columns(schema: StructType, state: TableState) -> None:
    """Columns that the table lacks; its rows have nulls in them."""
    snapshot = state.address.open()
    known = {item.name for item in snapshot.schema.fields}
    missing = [field for field in schema.fields if field.name not in known]
    if missing:
        fields = [field.with_nullable(True) for field in from_spark(StructType(missing))]
        committed(add_null_columns(snapshot, pa.schema(fields)), snapshot.uri)


def _table(state: TableState) -> LanceTable:
    return LanceTable.forPath(state.spark, state.uri, storage_options=state.storage_options)
