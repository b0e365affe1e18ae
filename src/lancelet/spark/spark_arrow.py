"""Spark's own Arrow types: what its Python workers give to Spark and get from it, to the letter."""

from __future__ import annotations

import json

import pyarrow as pa
from pyspark.sql import types as spark

from lancelet.errors import Unsupported

__all__ = ["arrow_field", "optional_type", "spark_arrow"]

_METADATA = "SPARK::metadata::json"

_LEAVES: dict[type[spark.DataType], pa.DataType] = {
    spark.NullType: pa.null(),
    spark.BooleanType: pa.bool_(),
    spark.ByteType: pa.int8(),
    spark.ShortType: pa.int16(),
    spark.IntegerType: pa.int32(),
    spark.LongType: pa.int64(),
    spark.FloatType: pa.float32(),
    spark.DoubleType: pa.float64(),
    spark.StringType: pa.string(),
    spark.CharType: pa.string(),
    spark.VarcharType: pa.string(),
    spark.BinaryType: pa.binary(),
    spark.DateType: pa.date32(),
    spark.TimestampType: pa.timestamp("us", "UTC"),
    spark.TimestampNTZType: pa.timestamp("us"),
    spark.DayTimeIntervalType: pa.duration("us"),
}


def optional_type(name: str, *arguments: object) -> spark.DataType | None:
    """A Spark type that not every version has; None where this one does not."""
    made = getattr(spark, name, None)
    return None if made is None else made(*arguments)


def spark_arrow(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema of batches that stand for rows of a Spark schema. Time zones are UTC.

    >>> spark_arrow(spark.StructType([spark.StructField("a", spark.LongType(), False)])).field("a").nullable
    False
    """
    return pa.schema([arrow_field(field) for field in schema.fields])


def arrow_field(field: spark.StructField) -> pa.Field:
    """The Arrow field of a Spark column. Unsupported where Spark hands its values to no Python worker."""
    metadata = {_METADATA: json.dumps(field.metadata)} if field.metadata else None
    return pa.field(field.name, _arrow_type(field.dataType), field.nullable, metadata=metadata)


def _arrow_type(kind: spark.DataType) -> pa.DataType:
    leaf = _LEAVES.get(type(kind))
    if leaf is not None:
        return leaf
    if isinstance(kind, spark.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, spark.ArrayType):
        return pa.list_(pa.field("element", _arrow_type(kind.elementType), kind.containsNull))
    if isinstance(kind, spark.MapType):
        key = pa.field("key", _arrow_type(kind.keyType), False)
        return pa.map_(key, pa.field("value", _arrow_type(kind.valueType), kind.valueContainsNull))
    if isinstance(kind, spark.StructType):
        return pa.struct([arrow_field(child) for child in kind.fields])
    if isinstance(kind, spark.UserDefinedType):
        return _arrow_type(kind.sqlType())
    return _newer_type(kind)


def _newer_type(kind: spark.DataType) -> pa.DataType:
    """Types by name, because older versions of Spark do not have them."""
    name = type(kind).__name__
    if name == "TimeType":
        return pa.time64("ns")
    if name == "VariantType":
        mark = pa.field("metadata", pa.binary(), False, metadata={"variant": "true"})
        return pa.struct([pa.field("value", pa.binary(), False), mark])
    if name in ("GeometryType", "GeographyType"):
        marks = {name.removesuffix("Type").lower(): "true", "srid": str(getattr(kind, "srid", -1))}
        wkb = pa.field("wkb", pa.binary(), False, metadata=marks)
        return pa.struct([pa.field("srid", pa.int32(), False), wkb])
    raise Unsupported(
        f"Spark does not hand values of type {kind.simpleString()} to Python", hint="cast the column in the query"
    )
