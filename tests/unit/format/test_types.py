"""Logical types: names and Arrow types both ways, and what is malformed or has no counterpart."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelet.errors import Corrupt, InvalidInput, LanceletError, Unsupported
from lancelet.format.types import arrow_type, fixed_size_list_of_struct, logical_type

PAIRS = [
    ("null", pa.null()),
    ("bool", pa.bool_()),
    *((f"{sign}int{bits}", getattr(pa, f"{sign}int{bits}")()) for sign in ("", "u") for bits in (8, 16, 32, 64)),
    ("halffloat", pa.float16()),
    ("float", pa.float32()),
    ("double", pa.float64()),
    ("string", pa.string()),
    ("binary", pa.binary()),
    ("large_string", pa.large_string()),
    ("large_binary", pa.large_binary()),
    ("date32:day", pa.date32()),
    ("date64:ms", pa.date64()),
    ("time32:s", pa.time32("s")),
    ("time32:ms", pa.time32("ms")),
    ("time64:us", pa.time64("us")),
    ("time64:ns", pa.time64("ns")),
    *((f"duration:{unit}", pa.duration(unit)) for unit in ("s", "ms", "us", "ns")),
    *((f"timestamp:{unit}:-", pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")),
    ("timestamp:us:America/New_York", pa.timestamp("us", "America/New_York")),
    ("timestamp:s:+05:30", pa.timestamp("s", "+05:30")),
    ("decimal:128:38:0", pa.decimal128(38, 0)),
    ("decimal:128:10:-2", pa.decimal128(10, -2)),
    ("decimal:256:76:5", pa.decimal256(76, 5)),
    ("fixed_size_binary:0", pa.binary(0)),
    ("fixed_size_binary:16", pa.binary(16)),
    ("fixed_size_list:float:128", pa.list_(pa.float32(), 128)),
    ("fixed_size_list:fixed_size_list:bool:2:3", pa.list_(pa.list_(pa.bool_(), 2), 3)),
    ("fixed_size_list:timestamp:us:+05:30:2", pa.list_(pa.timestamp("us", "+05:30"), 2)),
    ("fixed_size_list:decimal:128:10:2:4", pa.list_(pa.decimal128(10, 2), 4)),
    ("dict:string:int8:false", pa.dictionary(pa.int8(), pa.string())),
    ("dict:int64:uint64:false", pa.dictionary(pa.uint64(), pa.int64())),
]


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_a_name_and_a_type_mean_each_other(name: str, kind: pa.DataType) -> None:
    assert arrow_type(name) == kind
    assert logical_type(kind) == name


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.string_view(), "string"),
        (pa.binary_view(), "binary"),
        (pa.dictionary(pa.int32(), pa.string(), True), "dict:string:int32:false"),
        (pa.list_(pa.field("other", pa.int8(), nullable=False), 2), "fixed_size_list:int8:2"),
        (pa.list_(pa.field("item", pa.uuid()), 2), "fixed_size_list:fixed_size_binary:16:2"),
    ],
)
def test_a_type_is_stored_in_its_plain_form(kind: pa.DataType, name: str) -> None:
    assert logical_type(kind) == name


def test_bfloat16_items_keep_their_extension() -> None:
    kind = arrow_type("fixed_size_list:lance.bfloat16:4")
    assert kind.value_field.metadata[b"ARROW:extension:name"] == b"lance.bfloat16"
    assert logical_type(kind) == "fixed_size_list:lance.bfloat16:4"
    assert logical_type(pa.list_(kind, 2)) == "fixed_size_list:fixed_size_list:lance.bfloat16:4:2"


@pytest.mark.parametrize(
    "kind",
    [
        pa.decimal32(5, 2),
        pa.decimal64(9, 2),
        pa.month_day_nano_interval(),
        pa.list_view(pa.int8()),
        pa.large_list_view(pa.int8()),
        pa.run_end_encoded(pa.int32(), pa.int8()),
        pa.dense_union([pa.field("a", pa.int8())]),
        pa.list_(pa.list_(pa.int8()), 2),
        pa.list_(pa.dictionary(pa.int8(), pa.string()), 2),
        pa.dictionary(pa.int8(), pa.timestamp("us")),
        pa.dictionary(pa.int8(), pa.binary(3)),
        pa.dictionary(pa.int8(), pa.list_(pa.int8())),
    ],
)
def test_a_type_without_counterpart_is_unsupported(kind: pa.DataType) -> None:
    with pytest.raises(Unsupported):
        logical_type(kind)


def test_a_fixed_size_list_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="size 0"):
        logical_type(pa.list_(pa.int8(), 0))


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("", Unsupported),
        ("int128", Unsupported),
        ("struct", Unsupported),
        ("variant:1", Unsupported),
        ("fixed_size_list:", Unsupported),
        ("fixed_size_list:4", Unsupported),
        ("fixed_size_list:float:0", Corrupt),
        ("fixed_size_list:float:-1", Corrupt),
        ("fixed_size_list:float:99999999999", Corrupt),
        ("fixed_size_list:float:" + "9" * 9999, Corrupt),
        ("fixed_size_list:" * 50 + "float" + ":2" * 50, Corrupt),
        ("fixed_size_binary:-1", Corrupt),
        ("fixed_size_binary:x", Corrupt),
        ("fixed_size_binary:٣", Corrupt),
        ("decimal:64:5:2", Corrupt),
        ("decimal:128:39:0", Corrupt),
        ("decimal:128:5", Corrupt),
        ("decimal:256:5:200", Corrupt),
        ("timestamp:us", Corrupt),
        ("timestamp:min:-", Corrupt),
        ("dict:string:int8", Corrupt),
        ("dict:string:string:false", Corrupt),
    ],
)
def test_a_malformed_name_is_refused(name: str, error: type[LanceletError]) -> None:
    with pytest.raises(error):
        arrow_type(name)


@given(st.lists(st.sampled_from(["fixed_size_list", "dict", "decimal", "timestamp", "int8", "128", "2", "-", ""])))
def test_any_name_gives_a_type_or_a_named_error(parts: list[str]) -> None:
    try:
        arrow_type(":".join(parts))
    except (Corrupt, Unsupported):
        return


def test_the_size_of_a_list_of_structs_is_found() -> None:
    assert fixed_size_list_of_struct("fixed_size_list:struct:7") == 7
    assert fixed_size_list_of_struct("fixed_size_list:int8:7") is None
    with pytest.raises(Corrupt):
        fixed_size_list_of_struct("fixed_size_list:struct:0")
