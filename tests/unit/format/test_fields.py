"""Fields and schemas: ids, the stored depth-first list, and what of it may be trusted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelet.errors import Corrupt, InvalidInput, Unsupported
from lancelet.format.fields import (
    DictionaryPlace,
    Field,
    FieldEncoding,
    FileDescriptor,
    Schema,
    parse_fields,
    parse_file_descriptor,
    parse_schema,
    write_fields,
    write_file_descriptor,
    write_schema,
)
from lancelet.format.protos import schema_pb2 as wire
from lancelet.format.wire import MAX_DEPTH

U32 = st.integers(0, 2**32 - 1)
METADATA = st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2)
LEAVES = st.builds(
    Field,
    st.text(max_size=5),
    st.sampled_from(["int32", "string", "unheard-of"]),
    st.booleans(),
    metadata=METADATA,
    encoding=st.sampled_from(FieldEncoding),
    dictionary=st.none() | st.builds(DictionaryPlace, st.integers(0, 2**62), st.integers(0, 2**62)),
    primary_key=st.booleans(),
    primary_key_position=U32,
    clustering_key=st.booleans(),
    clustering_key_position=U32,
)
FIELDS = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        Field,
        st.text(max_size=5),
        st.just("struct"),
        st.booleans(),
        st.lists(inner, max_size=3).map(tuple),
        metadata=METADATA,
    ),
    max_leaves=8,
)
SCHEMAS = st.builds(Schema, st.lists(FIELDS, max_size=4).map(tuple), METADATA)


@given(SCHEMAS, st.integers(0, 1000))
def test_a_schema_is_read_back(schema: Schema, first: int) -> None:
    numbered = schema.with_ids(first)
    assert [item.id for item in numbered.walk()] == list(range(first, first + len(list(schema.walk()))))
    assert parse_schema(write_schema(numbered)) == numbered
    assert parse_file_descriptor(write_file_descriptor(FileDescriptor(numbered, 9))).schema == numbered


@given(SCHEMAS, st.data())
def test_damaged_bytes_give_a_schema_or_a_named_error(schema: Schema, data: st.DataObject) -> None:
    damaged = bytearray(write_file_descriptor(FileDescriptor(schema.with_ids(), 5)))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        parse_file_descriptor(bytes(damaged))
    except (Corrupt, Unsupported):
        return


def test_ids_may_be_sparse_and_children_may_come_after_other_fields() -> None:
    fields = [
        wire.Field(name="s", id=7, parent_id=-1, logical_type="struct"),
        wire.Field(name="a", id=3, parent_id=-1, logical_type="int32"),
        wire.Field(name="x", id=90, parent_id=7, logical_type="int32"),
    ]
    schema = Schema(parse_fields(fields))
    assert [(item.name, item.id) for item in schema.walk()] == [("s", 7), ("x", 90), ("a", 3)]
    assert schema.by_id()[90].parent_id == 7


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([wire.Field(name="x", id=1, parent_id=5)], "parent 5"),
        ([wire.Field(name="x", id=1, parent_id=1)], "parent 1"),
        ([wire.Field(name="x", id=1, parent_id=-1), wire.Field(name="y", id=1, parent_id=-1)], "id 1"),
        ([wire.Field(name="x", id=k, parent_id=k - 1) for k in range(MAX_DEPTH + 1)], "nested more than"),
    ],
)
def test_a_list_that_is_no_tree_is_corrupt(fields: list[wire.Field], message: str) -> None:
    with pytest.raises(Corrupt, match=message):
        parse_fields(fields)


def test_the_fields_of_a_blob_description_belong_to_the_blob_before_them() -> None:
    fields = [
        wire.Field(name="b", id=0, parent_id=-1, logical_type="struct", metadata={"lance-encoding:blob": b"true"}),
        wire.Field(name="kind", id=-1, parent_id=-1, logical_type="uint8"),
        wire.Field(name="size", id=-1, parent_id=-1, logical_type="uint64"),
        wire.Field(name="c", id=3, parent_id=-1, logical_type="int8"),
    ]
    schema = Schema(parse_fields(fields))
    assert [(top.name, len(top.children)) for top in schema.fields] == [("b", 2), ("c", 0)]
    assert [item.name for item in write_fields(schema.fields)] == ["b", "kind", "size", "c"]


def test_metadata_that_is_not_text_survives() -> None:
    fields = [wire.Field(name="a", parent_id=-1, metadata={"k": b"\xff\x00\xc3"})]
    assert write_fields(parse_fields(fields))[0].metadata["k"] == b"\xff\x00\xc3"


def test_an_extension_name_alone_becomes_metadata() -> None:
    (field,) = parse_fields([wire.Field(name="a", parent_id=-1, extension_name="lance.json")])
    assert field.extension_name == "lance.json"


def test_an_unknown_field_encoding_reads_as_none() -> None:
    message = wire.Field(name="a", parent_id=-1)
    message.MergeFromString(b"\x38\x63")
    assert parse_fields([message])[0].encoding is FieldEncoding.NONE


def test_an_id_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'a'"):
        write_fields([Field("a", "int32", id=2**31)])


@pytest.mark.parametrize(("path", "found"), [("s", 0), ("s.x", 1), ("s.y", None), ("t", None), ("s.x.z", None)])
def test_a_path_finds_a_field(path: str, found: int | None) -> None:
    schema = Schema((Field("s", "struct", children=(Field("x", "int8"),)),)).with_ids()
    field = schema.find(path)
    assert (None if field is None else field.id) == found
