"""Types: which Spark type stands for each Lance type, and which Lance type a Spark column is stored as."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.types as pat
from pyspark.sql import types as spark

from lancelet.errors import InvalidInput, LanceletError, Unsupported
from lancelet.format.extensions import stored_field
from lancelet.format.fields import EXTENSION_METADATA, EXTENSION_NAME
from lancelet.format.types import BFLOAT16, fixed_size_list_of_struct
from lancelet.spark.casts import cast_for
from lancelet.spark.choices import Choices
from lancelet.spark.lance_types import TypeText, leaf_type, parse_type, type_text
from lancelet.spark.spark_arrow import arrow_field, optional_type

__all__ = ["ADDRESS", "FIXED_SIZE", "LANCE_TYPE", "from_spark", "kept_options", "to_spark"]

#: Keys of column metadata: the Lance type where the Spark type does not tell it; the size of a vector, as other
#: connectors write it; where the table is, on the first column of tables in Spark's catalog.
LANCE_TYPE, FIXED_SIZE, ADDRESS = "lance.type", "arrow.fixed-size-list.size", "lance.table"
#: What is not text in a column's metadata is kept under this prefix, as JSON.
_NOT_TEXT = "spark.metadata."
_SPARK_ONLY = (LANCE_TYPE, FIXED_SIZE, ADDRESS)


def to_spark(schema: pa.Schema, choices: Choices | None = None) -> spark.StructType:
    """The Spark schema of a Lance table's Arrow schema.

    Metadata of fields becomes metadata of columns, with the Lance type where the Spark type alone does not tell it,
    so that :func:`from_spark` finds the way back.

    >>> to_spark(pa.schema({"a": pa.uint8(), "v": pa.list_(pa.float32(), 4)})).simpleString()
    'struct<a:smallint,v:array<float>>'
    """
    return spark.StructType([_field_to_spark(field, choices or Choices()) for field in schema])


def _field_to_spark(field: pa.Field, choices: Choices) -> spark.StructField:
    field = stored_field(field)
    try:
        kind = _type_to_spark(field, choices)
    except LanceletError as error:
        raise error.where(column=field.name) from None
    made = spark.StructField(field.name, kind, field.nullable)
    metadata = _metadata_to_spark(field.metadata or {})
    said = type_text(field)
    if pat.is_fixed_size_list(field.type):
        metadata[FIXED_SIZE] = field.type.list_size
    made.metadata = metadata
    if _said_by_itself(made) != said:
        metadata[LANCE_TYPE] = str(said)
    return made


def _said_by_itself(field: spark.StructField) -> TypeText | None:
    try:
        return type_text(_field_from_spark(field))
    except LanceletError:
        return None


def _metadata_to_spark(metadata: dict[bytes, bytes]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in metadata.items():
        name, text = key.decode(), value.decode("utf-8", "replace")
        if name.startswith(_NOT_TEXT):
            found[name.removeprefix(_NOT_TEXT)] = json.loads(text)
        else:
            found[name] = text
    return found


_SAME: dict[pa.DataType, spark.DataType] = {
    pa.null(): spark.NullType(),
    pa.bool_(): spark.BooleanType(),
    pa.int8(): spark.ByteType(),
    pa.uint8(): spark.ShortType(),
    pa.int16(): spark.ShortType(),
    pa.uint16(): spark.IntegerType(),
    pa.int32(): spark.IntegerType(),
    pa.uint32(): spark.LongType(),
    pa.int64(): spark.LongType(),
    pa.uint64(): spark.DecimalType(20, 0),
    pa.float16(): spark.FloatType(),
    pa.float32(): spark.FloatType(),
    pa.float64(): spark.DoubleType(),
    pa.string(): spark.StringType(),
    pa.large_string(): spark.StringType(),
    pa.binary(): spark.BinaryType(),
    pa.large_binary(): spark.BinaryType(),
    pa.date32(): spark.DateType(),
    pa.date64(): spark.DateType(),
}


def _type_to_spark(field: pa.Field, choices: Choices) -> spark.DataType:
    kind = field.type
    extension = (field.metadata or {}).get(EXTENSION_NAME.encode(), b"").decode()
    if extension == BFLOAT16 and kind == pa.binary(2):
        return spark.FloatType()
    if extension in ("lance.json", "arrow.json"):
        return spark.StringType()
    if kind in _SAME:
        return _SAME[kind]
    if pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind):
        item = stored_field(kind.value_field)
        return spark.ArrayType(_type_to_spark(item, choices), item.nullable)
    if pat.is_map(kind):
        key, value = stored_field(kind.key_field), stored_field(kind.item_field)
        return spark.MapType(_type_to_spark(key, choices), _type_to_spark(value, choices), value.nullable)
    if pat.is_struct(kind):
        return _marked_struct(kind) or spark.StructType([_field_to_spark(child, choices) for child in kind])
    if pat.is_dictionary(kind):
        return _type_to_spark(pa.field(field.name, kind.value_type), choices)
    return _leaf_to_spark(kind, choices)


def _leaf_to_spark(kind: pa.DataType, choices: Choices) -> spark.DataType:
    if pat.is_fixed_size_binary(kind):
        return spark.BinaryType()
    if pat.is_decimal(kind):
        digits = max(kind.precision - min(kind.scale, 0), kind.scale)
        return spark.DecimalType(digits, max(kind.scale, 0)) if digits <= 38 else spark.StringType()
    if pat.is_time(kind):
        return _time_to_spark(choices)
    if choices.nanoseconds == "long" and (pat.is_timestamp(kind) or pat.is_duration(kind)) and kind.unit == "ns":
        return spark.LongType()
    if pat.is_timestamp(kind):
        return spark.TimestampNTZType() if kind.tz is None else spark.TimestampType()
    if pat.is_duration(kind):
        return spark.DayTimeIntervalType()
    raise Unsupported(f"Spark has nothing that stands for {kind}", hint="leave the column out by the option columns")


def _time_to_spark(choices: Choices) -> spark.DataType:
    if choices.time == "long":
        return spark.LongType()
    if choices.time == "string":
        return spark.StringType()
    made = optional_type("TimeType")
    if made is None:
        raise Unsupported("this Spark has no type TIME", hint="set the option time_type to long or string")
    return made


def _marked_struct(kind: pa.StructType) -> spark.DataType | None:
    """Spark types that Arrow has as a struct, one field of which is marked."""
    names = [field.name for field in kind]
    marks = {key.decode(): value.decode() for field in kind for key, value in (field.metadata or {}).items()}
    if sorted(names) == ["metadata", "value"] and marks.get("variant") == "true":
        return optional_type("VariantType")
    if sorted(names) == ["srid", "wkb"]:
        for mark, name in (("geometry", "GeometryType"), ("geography", "GeographyType")):
            if marks.get(mark) == "true":
                srid = marks.get("srid", "-1")
                return optional_type(name, "ANY" if srid == "-1" else int(srid))
    return None


def from_spark(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema of a Lance table for rows of a Spark schema.

    ``lance.type`` in a column's metadata says the Lance type where the one that Spark's own stands for is not meant:
    InvalidInput where Spark's values cannot be stored as that.

    >>> vector = spark.StructField("v", spark.ArrayType(spark.FloatType()), metadata={"arrow.fixed-size-list.size": 4})
    >>> from_spark(spark.StructType([vector])).field("v").type
    FixedSizeListType(fixed_size_list<item: float>[4])
    """
    return pa.schema([_field_from_spark(field) for field in schema.fields])


def _field_from_spark(field: spark.StructField) -> pa.Field:
    try:
        plain = arrow_field(field)
        made = _stored(field)
        cast_for(plain, made)
    except LanceletError as error:
        raise error.where(column=field.name) from None
    return made


def _stored(field: spark.StructField) -> pa.Field:
    metadata = {
        key if isinstance(value, str) else _NOT_TEXT + key: value if isinstance(value, str) else json.dumps(value)
        for key, value in (field.metadata or {}).items()
        if key not in _SPARK_ONLY
    }
    said = (field.metadata or {}).get(LANCE_TYPE)
    size = (field.metadata or {}).get(FIXED_SIZE)
    if size is not None and said is None:
        made = _sized(field, size)
    else:
        made = _built(field.name, field.dataType, field.nullable, None if said is None else parse_type(str(said)))
    if (made.metadata or {}).get(EXTENSION_NAME.encode()) == b"arrow.json":
        metadata |= {EXTENSION_NAME: "arrow.json"}
    elif said is None and metadata.get(EXTENSION_NAME) == "lance.json" and pat.is_string(made.type):
        metadata |= {EXTENSION_NAME: "arrow.json", EXTENSION_METADATA: ""}
    return pa.field(field.name, made.type, field.nullable, metadata=metadata or None)


def _sized(field: spark.StructField, size: object) -> pa.Field:
    """An array that is said to have a fixed number of items."""
    if not isinstance(field.dataType, spark.ArrayType):
        raise InvalidInput(f"{FIXED_SIZE} is set on a column of type {field.dataType.simpleString()}")
    text = str(size)
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 2**31):
        raise InvalidInput(f"{FIXED_SIZE} is {size!r}, expected a number of at least 1")
    item = _natural("item", field.dataType.elementType, field.dataType.containsNull)
    return pa.field(field.name, pa.list_(item, int(text)), field.nullable)


def _built(name: str, kind: spark.DataType, nullable: bool, node: TypeText | None) -> pa.Field:
    """The Arrow field of a Spark type: as a text says, or as is natural where there is none."""
    if node is None:
        return _natural(name, kind, nullable)
    size = fixed_size_list_of_struct(node.name)
    if node.parts or size is not None:
        return pa.field(name, _container(kind, node, size), nullable)
    if node.name == "struct":
        return _natural(name, kind, nullable)
    made, metadata = leaf_type(node.name)
    if (
        pat.is_fixed_size_list(made)
        and isinstance(kind, spark.ArrayType)
        and not pat.is_fixed_size_list(made.value_type)
    ):
        made = pa.list_(made.value_field.with_nullable(kind.containsNull), made.list_size)
    return pa.field(name, made, nullable, metadata=metadata or None)


def _container(kind: spark.DataType, node: TypeText, size: int | None) -> pa.DataType:
    if isinstance(kind, spark.MapType) and node.name == "map":
        key = _built("key", kind.keyType, False, node.parts[0])
        return pa.map_(key, _built("value", kind.valueType, kind.valueContainsNull, node.parts[1]))
    if isinstance(kind, spark.ArrayType) and node.name != "map":
        inner = TypeText("struct") if size is not None else node.parts[0]
        item = _built("item", kind.elementType, kind.containsNull, inner)
        if size is not None:
            return pa.list_(item, size)
        return pa.large_list(item) if node.name == "large_list" else pa.list_(item)
    raise InvalidInput(f"{LANCE_TYPE} is {str(node)!r} for a column of type {kind.simpleString()}")


def _natural(name: str, kind: spark.DataType, nullable: bool) -> pa.Field:
    if isinstance(kind, spark.ArrayType):
        return pa.field(name, pa.list_(_natural("item", kind.elementType, kind.containsNull)), nullable)
    if isinstance(kind, spark.MapType):
        key = _natural("key", kind.keyType, False)
        return pa.field(name, pa.map_(key, _natural("value", kind.valueType, kind.valueContainsNull)), nullable)
    if isinstance(kind, spark.StructType):
        return pa.field(name, pa.struct([_field_from_spark(child) for child in kind.fields]), nullable)
    if isinstance(kind, spark.UserDefinedType):
        return _natural(name, kind.sqlType(), nullable)
    plain = arrow_field(spark.StructField(name, kind, nullable))
    # Spark counts nanoseconds on the way to Python but knows no more than microseconds.
    return plain.with_type(pa.time64("us")) if pat.is_time(plain.type) else plain


def kept_options(schema: spark.StructType) -> dict[str, str]:
    """The options of a table in Spark's catalog, which keeps them with the first column only."""
    kept = schema.fields[0].metadata.get(ADDRESS) if schema.fields else None
    if kept is None:
        raise InvalidInput(
            "Spark's catalog does not say where the table is",
            hint="make it by CREATE TABLE name USING lance LOCATION '...' without columns, or give the option path",
        )
    return dict(json.loads(kept))
