"""Which Spark type stands for which Lance type, the way back, and that values make both ways unchanged."""

from __future__ import annotations

import math
import re
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from lancelet.errors import InvalidInput, LanceletError, Unsupported
from lancelet.format.arrow import schema_from_arrow, schema_to_arrow
from lancelet.spark.casts import cast_batch, cast_for
from lancelet.spark.choices import Choices
from lancelet.spark.lance_types import leaf_type, parse_type, type_text
from lancelet.spark.spark_arrow import spark_arrow
from lancelet.spark.types import FIXED_SIZE, LANCE_TYPE, from_spark, to_spark
from lancelet.testing.arrays import late_types, leaf_types, make_array, nested_types

BFLOAT16 = {"ARROW:extension:name": "lance.bfloat16", "ARROW:extension:metadata": ""}
VARIANT = pa.struct(
    [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False, metadata={"variant": "true"})]
)
MORE_TYPES = [
    pa.field("c", pa.binary(2), metadata=BFLOAT16),
    pa.field("c", pa.list_(pa.field("item", pa.binary(2), metadata=BFLOAT16), 4)),
    pa.field("c", pa.json_()),
    pa.field("c", pa.uuid()),
    pa.field("c", pa.bool8()),
    pa.field("c", pa.decimal128(5, -2)),
    pa.field("c", pa.decimal128(38, -3)),
    pa.field("c", pa.decimal256(20, 3)),
    pa.field("c", pa.list_(pa.float16(), 3)),
    pa.field("c", pa.large_list(pa.list_(pa.uint64(), 2))),
    pa.field("c", pa.map_(pa.string(), pa.large_list(pa.uint8()))),
    pa.field("c", pa.list_(pa.struct([("h", pa.float16()), ("t", pa.list_(pa.time32("s")))]))),
    pa.field("c", VARIANT),
    pa.field("c", pa.large_binary(), metadata={"lance-encoding:blob": "true", "note": "x"}),
    pa.field("c", pa.int32(), nullable=False),
]
FIELDS = [pa.field("c", kind) for kind in (*leaf_types(), *nested_types(), *late_types())] + MORE_TYPES


def stored(schema: pa.Schema) -> pa.Schema:
    """A schema as a table reports it."""
    return schema_to_arrow(schema_from_arrow(schema))


def cast(schema: pa.Schema, target: pa.Schema, rows: pa.RecordBatch, *, truncate: bool = False) -> pa.RecordBatch:
    casts = [cast_for(one, other, truncate=truncate) for one, other in zip(schema, target, strict=True)]
    return cast_batch(rows, casts, target)


def column(field: pa.Field, seed: int, rows: int = 200, nulls: str = "few") -> pa.Array:
    """Values that Spark can hold for a field: whole microseconds, no garbage under the null slots of JSON."""
    kind = field.type
    if isinstance(kind, pa.JsonType):
        return pa.ExtensionArray.from_storage(kind, pa.array(['{"a":1}', None, '[1,"b"]'] * 10))
    if kind == VARIANT:
        return pa.array([{"value": b"\x0c\x01", "metadata": b"\x01\0\0"}] * 5, VARIANT)
    if isinstance(kind, pa.BaseExtensionType):
        storage = make_array(np.random.default_rng(seed), kind.storage_type, rows, nulls=nulls)
        return pa.ExtensionArray.from_storage(kind, storage)
    if not field.nullable:
        nulls = "none"
    # Dates of 64 bits and units of nanoseconds are made whole by rounding what the generator draws.
    return rounded(make_array(np.random.default_rng(seed), kind, rows, nulls=nulls, shape="small"), kind)


def rounded(array: pa.Array, kind: pa.DataType) -> pa.Array:
    unit = getattr(kind, "unit", None)
    if unit == "ns":
        counts = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
        whole = np.nan_to_num(counts).astype(np.int64) // 1000 * 1000
        return pa.array(whole, pa.int64(), mask=np.asarray(array.is_null())).cast(kind)
    return array


def same_values(one: pa.Array, other: pa.Array) -> bool:
    """Equal row for row, NaN like NaN."""
    left, right = one.to_pylist(), other.to_pylist()
    return left == right or repr(left) == repr(right)


@pytest.mark.parametrize("field", FIELDS, ids=str)
def test_a_type_finds_its_way_back_from_spark(field: pa.Field) -> None:
    schema = stored(pa.schema([field]))
    there = to_spark(schema)
    back = stored(from_spark(there))
    assert back.equals(schema, check_metadata=True) or schema_from_arrow(back) == schema_from_arrow(schema)
    again = spark.StructType.fromJson(there.jsonValue())
    assert from_spark(again).equals(from_spark(there), check_metadata=True)


@pytest.mark.parametrize(
    "choices", [Choices(), Choices(time="string"), Choices(time="time", nanoseconds="long")], ids=str
)
@pytest.mark.parametrize("field", FIELDS, ids=str)
def test_values_are_the_same_after_both_ways(field: pa.Field, choices: Choices) -> None:
    schema = pa.schema([field])
    rows = pa.record_batch([column(field, seed=zlib.crc32(str(field.type).encode()))], schema=schema)
    there = to_spark(stored(schema), choices)
    plain = spark_arrow(there)
    for piece in (rows, rows.slice(3, 17), rows.slice(0, 0), rows.slice(5, 1)):
        seen = cast(schema, plain, piece)
        assert seen.schema.equals(plain)
        seen.validate(full=True)
        try:
            back = cast(plain, schema, seen)
        except Unsupported:
            assert choices.time == "string"
            assert pa.types.is_time(field.type) or "time32" in str(field.type)
            continue
        back.validate(full=True)
        assert same_values(back.column(0), piece.column(0))


@pytest.mark.parametrize("field", FIELDS, ids=str)
def test_batches_are_of_the_type_that_spark_asks_for(field: pa.Field) -> None:
    there = to_spark(stored(pa.schema([field])), Choices(time="time"))
    assert spark_arrow(there).equals(to_arrow_schema(there, timezone="UTC"))


def test_a_fixed_size_list_without_nulls_is_not_copied() -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(12, dtype=np.float32)), 4)
    made = cast_for(pa.field("v", vectors.type), pa.field("v", pa.list_(pa.float32())))(vectors)
    assert made.values.buffers()[1].address == vectors.values.buffers()[1].address


@pytest.mark.parametrize(
    ("values", "source", "target", "said"),
    [
        ([300], pa.int64(), pa.uint8(), "not in range"),
        ([-1], pa.int32(), pa.uint32(), "not in range"),
        ([1e6], pa.float32(), pa.float16(), "1000000.0 is beyond what halffloat can hold"),
        ([3.4e38], pa.float32(), "bfloat16", "is beyond what bfloat16 can hold"),
        ([b"abc"], pa.binary(), pa.binary(2), "widths must match"),
        ([[1, 2], None, [1]], pa.list_(pa.int32()), pa.list_(pa.int32(), 2), "a list has 1 items, the column holds"),
        ([1001], pa.timestamp("ns"), pa.timestamp("us"), "would lose data"),
        ([86_400], pa.int64(), pa.time32("s"), "86400 s are no time of day"),
        ([-1], pa.int64(), pa.time64("ns"), "-1 ns are no time of day"),
        (["x"], pa.string(), pa.decimal256(50, 2), "not a valid decimal"),
        ([{"a": None}], pa.struct([("a", pa.int8())]), pa.struct([pa.field("a", pa.int8(), False)]), "values are null"),
        ([[None]], pa.list_(pa.int8()), pa.list_(pa.field("item", pa.int8(), False)), "values are null"),
        (["{"], pa.string(), "json", "JSON"),
        ([2**53 + 1], pa.int64(), pa.decimal128(15, 0), "does not fit"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_the_name_of_its_column(
    values: list[object], source: pa.DataType, target: pa.DataType | str, said: str
) -> None:
    wanted = (
        pa.field("c", target)
        if not isinstance(target, str)
        else {
            "bfloat16": pa.field("c", pa.binary(2), metadata=BFLOAT16),
            "json": pa.field("c", pa.large_binary(), metadata={"ARROW:extension:name": "lance.json"}),
        }[target]
    )
    made = cast_for(pa.field("c", source), wanted)
    assert made is not None
    array = pa.array(values, pa.int64()).cast(source) if pa.types.is_temporal(source) else pa.array(values, source)
    with pytest.raises(InvalidInput, match=re.escape(said)) as caught:
        made(array)
    assert caught.value.column == "c" or str(caught.value.column).startswith("c.")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.float64(), pa.float32()),
        (pa.float64(), pa.float16()),
        (pa.int64(), pa.float64()),
        (pa.string(), pa.int64()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.list_(pa.int8()), pa.int8()),
        (pa.struct([("a", pa.float64())]), pa.struct([("a", pa.float32())])),
        (pa.list_(pa.int8(), 2), pa.list_(pa.int8(), 3)),
        (pa.date32(), pa.timestamp("us")),
        (pa.bool_(), pa.int8()),
        (pa.binary(), pa.string()),
    ],
    ids=str,
)
def test_a_cast_that_could_change_values_is_refused_before_there_are_any(
    source: pa.DataType, target: pa.DataType
) -> None:
    with pytest.raises(Unsupported) as caught:
        cast_for(pa.field("c", source), pa.field("c", target))
    assert str(caught.value.column).startswith("c")


def test_fields_of_structs_are_found_by_name_and_missing_ones_are_null() -> None:
    source = pa.struct([("b", pa.int8()), ("a", pa.int8())])
    target = pa.struct([("a", pa.int64()), ("c", pa.string()), ("b", pa.int8())])
    made = cast_for(pa.field("s", source), pa.field("s", target))
    assert made is not None
    array = pa.array([{"a": 1, "b": 2}, None], source)
    assert made(array).to_pylist() == [{"a": 1, "c": None, "b": 2}, None]
    with pytest.raises(InvalidInput, match="no field 'b'"):
        cast_for(pa.field("s", source), pa.field("s", pa.struct([("a", pa.int8())])))


def test_what_a_null_struct_hides_is_no_null_of_a_field_that_may_not_be_null() -> None:
    source, target = (pa.struct([pa.field("a", pa.int8(), nullable)]) for nullable in (True, False))
    made = cast_for(pa.field("s", source), pa.field("s", target))
    assert made is not None
    array = pa.StructArray.from_arrays(
        [pa.array([None, 1, None], pa.int8())], ["a"], mask=pa.array([True, False, True])
    )
    found = made(array)
    found.validate(full=True)
    assert found.to_pylist() == [None, {"a": 1}, None]
    assert found.field(0).null_count == 0


def test_brain_floats_are_rounded_to_the_nearest_and_ties_to_even() -> None:
    field = pa.field("c", pa.binary(2), metadata=BFLOAT16)
    values = np.array([1.0, 1.00390625, 1.01171875, -2.5, 3.0e38, math.inf, -math.inf, math.nan, 1e-40], np.float32)
    there = cast_for(pa.field("c", pa.float32()), field)
    back = cast_for(field, pa.field("c", pa.float32()))
    assert there is not None
    assert back is not None
    found = back(there(pa.array(values))).to_numpy()
    # The neighbours of a value are 1/128 apart between 1 and 2.
    assert found[:3].tolist() == [1.0, 1.0, 1.015625]
    assert found[3] == -2.5
    assert abs(found[4] / 3.0e38 - 1) < 1 / 256
    assert found[5:7].tolist() == [math.inf, -math.inf]
    assert math.isnan(found[7])
    assert back(there(pa.array([None, 2.0], pa.float32()))).to_pylist() == [None, 2.0]


def test_truncation_is_for_those_who_ask() -> None:
    source, target = pa.field("t", pa.timestamp("ns")), pa.field("t", pa.timestamp("us"))
    made = cast_for(source, target, truncate=True)
    assert made is not None
    assert made(pa.array([1999], pa.int64()).cast(source.type)).cast(pa.int64()).to_pylist() == [1]


def test_a_size_of_vectors_is_enough_to_store_them_as_such() -> None:
    made = from_spark(
        spark.StructType([spark.StructField("v", spark.ArrayType(spark.FloatType()), metadata={FIXED_SIZE: "3"})])
    )
    assert made.field("v").type == pa.list_(pa.float32(), 3)
    shown = to_spark(pa.schema({"v": pa.list_(pa.float32(), 3)}))["v"].metadata
    assert shown == {FIXED_SIZE: 3}


def test_the_metadata_of_columns_goes_along_both_ways() -> None:
    given = spark.StructField(
        "a", spark.LongType(), metadata={"comment": "key", "ml_attr": {"type": "numeric"}, "n": 1}
    )
    made = stored(from_spark(spark.StructType([given])))
    assert made.field("a").metadata[b"comment"] == b"key"
    assert to_spark(made)["a"].metadata == given.metadata


@pytest.mark.parametrize(
    ("kind", "metadata", "said"),
    [
        (spark.StringType(), {LANCE_TYPE: "uint8"}, "string cannot become uint8"),
        (spark.LongType(), {LANCE_TYPE: "list<"}, "no Lance type"),
        (spark.LongType(), {LANCE_TYPE: "uint9"}, "logical type 'uint9' is unknown"),
        (spark.LongType(), {LANCE_TYPE: "list<int8>"}, "for a column of type bigint"),
        (spark.LongType(), {FIXED_SIZE: "3"}, "is set on a column of type bigint"),
        (spark.ArrayType(spark.FloatType()), {FIXED_SIZE: "0"}, "expected a number of at least 1"),
        (spark.YearMonthIntervalType(), {}, "does not hand values of type interval year to month to Python"),
        (spark.CalendarIntervalType(), {}, "does not hand values of type interval to Python"),
    ],
)
def test_what_cannot_be_stored_as_said_is_refused_by_name(
    kind: spark.DataType, metadata: dict[str, str], said: str
) -> None:
    field = spark.StructField("the column", kind, metadata=metadata)
    with pytest.raises(LanceletError, match=re.escape(said)) as caught:
        from_spark(spark.StructType([field]))
    assert caught.value.column == "the column"


@pytest.mark.parametrize(
    "text", ["uint16", "list<halffloat>", "map<string, large_list<struct>>", "fixed_size_list:float:8"]
)
def test_a_type_as_text_reads_back_as_the_same(text: str) -> None:
    assert str(parse_type(text)) == text
    assert str(parse_type(text.replace(" ", ""))) == text


@pytest.mark.parametrize("text", ["", "list", "list<>", "list<int8", "list<int8>>", "map<int8>", "a,b", "list<" * 40])
def test_a_text_that_says_no_type_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="no Lance type"):
        parse_type(text)


def documented() -> list[tuple[str, str, str]]:
    """The rows of the page: Lance type, Spark type, Spark type by the other choice where there is one."""
    page = Path(__file__).resolve().parents[3] / "docs/spark-types.md"
    lines = re.findall(r"^\| `([^`]+)` \| `([^`]+)`(?: or `([^`]+)`)? \|", page.read_text(), re.MULTILINE)
    assert len(lines) > 30
    return lines


@pytest.mark.parametrize(("lance", "first", "other"), documented())
def test_the_page_on_types_tells_the_truth(lance: str, first: str, other: str) -> None:
    node = parse_type(lance)
    kind, metadata = (None, {}) if node.parts or "struct" in node.name else leaf_type(node.name)
    if kind is None:
        kind = {
            "list<float>": pa.list_(pa.float32()),
            "large_list<float>": pa.large_list(pa.float32()),
            "map<string, float>": pa.map_(pa.string(), pa.float32()),
            "struct": pa.struct([("x", pa.float32())]),
            "fixed_size_list:struct:3": pa.list_(pa.struct([("x", pa.float32())]), 3),
        }[lance]
    field = pa.field("c", kind, metadata=metadata or None)
    assert str(type_text(field)) == lance
    assert to_spark(pa.schema([field]))["c"].dataType.simpleString() == first
    if other:
        wider = Choices(time="time", nanoseconds="long")
        assert to_spark(pa.schema([field]), wider)["c"].dataType.simpleString() == other
