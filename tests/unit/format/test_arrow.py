"""Schemas to and from Arrow: keys, JSON, nesting, and what cannot be carried over."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelet.errors import Corrupt, InvalidInput, LanceletError, Unsupported
from lancelet.format.arrow import field_from_arrow, field_to_arrow, schema_from_arrow, schema_to_arrow
from lancelet.format.fields import Field, Schema

PRIMARY = "lance-schema:unenforced-primary-key"
POSITION = f"{PRIMARY}:position"
CLUSTERING = "lance-schema:unenforced-clustering-key:position"


def key(metadata: dict[str, str], *, nullable: bool = False) -> pa.Field:
    """A field with metadata."""
    return pa.field("k", pa.int32(), nullable, metadata=metadata)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({PRIMARY: "true"}, (True, 0)),
        ({PRIMARY: "YES"}, (True, 0)),
        ({PRIMARY: "on"}, (True, 0)),
        ({PRIMARY: " true"}, (False, 0)),
        ({PRIMARY: "no"}, (False, 0)),
        ({POSITION: "2"}, (True, 2)),
        ({POSITION: "0"}, (True, 0)),
        ({PRIMARY: "false", POSITION: "2"}, (True, 2)),
        ({POSITION: "-1"}, (False, 0)),
        ({POSITION: "99999999999"}, (False, 0)),
        ({POSITION: "9" * 9999}, (False, 0)),
        ({POSITION: "x"}, (False, 0)),
    ],
)
def test_primary_keys_are_read_from_metadata(metadata: dict[str, str], expected: tuple[bool, int]) -> None:
    field = field_from_arrow(key(metadata))
    assert (field.primary_key, field.primary_key_position) == expected


def test_clustering_positions_are_read_from_metadata() -> None:
    field = field_from_arrow(key({CLUSTERING: "3"}))
    assert (field.clustering_key, field.clustering_key_position) == (False, 3)


KEYED = key({PRIMARY: "true"})


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (key({PRIMARY: "true"}, nullable=True), "nullable"),
        (pa.field("s", pa.struct([KEYED]), True), "within a nullable field"),
        (pa.field("s", pa.list_(KEYED), False), "within a list"),
        (pa.field("s", pa.struct([pa.field("x", pa.int8())]), False, metadata={PRIMARY: "true"}), "not a leaf"),
        (pa.field("a.b", pa.int8()), "dot"),
    ],
)
def test_a_schema_that_no_table_may_have_is_refused(field: pa.Field, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        schema_from_arrow(pa.schema([field]))


def test_a_primary_key_within_structs_that_are_always_there_is_fine() -> None:
    schema = schema_from_arrow(pa.schema([pa.field("s", pa.struct([KEYED]), False)]))
    assert [item.primary_key for item in schema.walk()] == [False, True]


def test_a_name_may_occur_once_at_the_top() -> None:
    with pytest.raises(InvalidInput, match="occurs twice"):
        schema_from_arrow(pa.schema([("a", pa.int8()), ("a", pa.int8())]))


def test_metadata_must_be_text() -> None:
    with pytest.raises(InvalidInput, match="not text"):
        field_from_arrow(pa.field("a", pa.int8(), metadata={b"k": b"\xff"}))


@pytest.mark.parametrize(
    ("kind", "extension", "expected"),
    [
        (pa.string(), "arrow.json", ("json", "lance.json")),
        (pa.large_string(), "arrow.json", ("json", "lance.json")),
        (pa.string_view(), "arrow.json", ("string", "arrow.json")),
        (pa.binary(), "arrow.json", ("binary", "arrow.json")),
        (pa.large_binary(), "lance.json", ("json", "lance.json")),
        (pa.binary(), "lance.json", ("binary", "lance.json")),
        (pa.int32(), "lance.json", ("int32", "lance.json")),
    ],
)
def test_json_is_known_by_its_extension(kind: pa.DataType, extension: str, expected: tuple[str, str]) -> None:
    field = field_from_arrow(pa.field("j", kind, metadata={"ARROW:extension:name": extension}))
    assert (field.logical_type, field.extension_name) == expected


def test_an_error_names_the_column() -> None:
    with pytest.raises(Unsupported) as caught:
        schema_from_arrow(pa.schema([("good", pa.int8()), ("bad", pa.struct([("worse", pa.decimal32(5, 2))]))]))
    assert caught.value.column == "worse"
    with pytest.raises(Unsupported) as caught:
        field_to_arrow(Field("odd", "unheard-of"))
    assert caught.value.column == "odd"


@pytest.mark.parametrize(
    ("field", "error"),
    [
        (Field("a", "list"), Corrupt),
        (Field("a", "large_list.struct"), Corrupt),
        (Field("a", "fixed_size_list:struct:2"), Corrupt),
        (Field("a", "map", children=(Field("entries", "struct"),)), Corrupt),
        (Field("a", "int8", children=(Field("b", "int8"),)), Corrupt),
        (Field("a", "fixed_size_list:struct:x"), Corrupt),
        (Field("a", "fixed_size_list:list:2"), Unsupported),
    ],
)
def test_a_field_without_the_children_of_its_type_is_refused(field: Field, error: type[LanceletError]) -> None:
    with pytest.raises(error):
        field_to_arrow(field)


def test_extension_types_of_pyarrow_survive_at_every_depth() -> None:
    kind = pa.struct([("a", pa.list_(pa.uuid())), ("b", pa.opaque(pa.int32(), "t", "v"))])
    schema = pa.schema([("s", kind), ("t", pa.fixed_shape_tensor(pa.float32(), [2, 3]))], metadata={"m": "1"})
    assert schema_to_arrow(schema_from_arrow(schema)).equals(schema, check_metadata=True)


def test_schema_metadata_is_carried_over() -> None:
    assert schema_from_arrow(pa.schema([], metadata={"a": "é"})) == Schema((), {"a": "é"})


def test_an_extension_on_the_wrong_storage_is_refused() -> None:
    with pytest.raises(Unsupported, match="extension type"):
        field_to_arrow(Field("a", "int32", metadata={"ARROW:extension:name": "arrow.uuid"}))


def test_a_null_field_reads_as_nullable() -> None:
    assert field_to_arrow(Field("a", "null", nullable=False)).nullable
