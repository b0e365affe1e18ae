"""Blobs and what file versions can hold."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelet.errors import Unsupported
from lancelet.format.arrow import schema_from_arrow
from lancelet.format.blobs import check_storable, file_schema, is_blob_v1, is_blob_v2
from lancelet.format.versions import FileVersion

BLOB_TYPE = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
BLOB = pa.field("b", BLOB_TYPE, metadata={"ARROW:extension:name": "lance.blob.v2", "other": "x"})


def test_a_blob_becomes_its_description_and_later_ids_stay() -> None:
    schema = schema_from_arrow(pa.schema([("s", pa.struct([BLOB])), ("c", pa.int8())]))
    stated = file_schema(schema)
    assert [(item.name, item.id) for item in stated.walk()] == [
        ("s", 0),
        ("b", 1),
        *((name, -1) for name in ("kind", "position", "size", "blob_id", "blob_uri")),
        ("c", 4),
    ]
    blob = stated.fields[0].children[0]
    assert blob.metadata == {"lance-encoding:packed": "true", "lance-encoding:blob": "true"}
    assert is_blob_v2(schema.fields[0].children[0])


def test_a_blob_of_the_first_kind_is_known_by_its_metadata() -> None:
    marked = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    fields = schema_from_arrow(pa.schema([marked, ("c", pa.large_binary())])).fields
    assert [is_blob_v1(field) for field in fields] == [True, False]


LIST_OF_STRUCT = pa.list_(pa.struct([("x", pa.int8())]), 2)
ALWAYS = [
    pa.int8(),
    pa.list_(pa.struct([("x", pa.string())])),
    pa.list_(pa.float16(), 4),
    pa.dictionary(pa.int8(), pa.string()),
]
SINCE_2_2 = [pa.map_(pa.string(), pa.int8()), LIST_OF_STRUCT, pa.list_(pa.map_(pa.string(), pa.int8())), pa.binary(0)]
NEVER = [
    pa.list_(pa.string(), 2),
    pa.list_(pa.list_(pa.large_binary(), 2), 2),
    pa.list_(LIST_OF_STRUCT),
    pa.list_(pa.struct([("x", pa.list_(pa.int8()))]), 2),
]


@pytest.mark.parametrize("version", list(FileVersion)[:4])
@pytest.mark.parametrize("kind", [*ALWAYS, *SINCE_2_2, *NEVER], ids=str)
def test_a_version_refuses_what_it_cannot_hold(kind: pa.DataType, version: FileVersion) -> None:
    schema = schema_from_arrow(pa.schema([("outer", pa.struct([("inner", kind)]))]))
    if kind in ALWAYS or (kind in SINCE_2_2 and version >= FileVersion.V2_2):
        check_storable(schema, version)
        return
    with pytest.raises(Unsupported) as caught:
        check_storable(schema, version)
    assert (caught.value.column or "").startswith("outer.inner")


@pytest.mark.parametrize("version", [FileVersion.V2_0, FileVersion.V2_1])
def test_a_blob_of_the_second_kind_needs_2_2(version: FileVersion) -> None:
    schema = schema_from_arrow(pa.schema([BLOB]))
    check_storable(schema, FileVersion.V2_2)
    with pytest.raises(Unsupported, match=r"lance\.blob\.v2"):
        check_storable(schema, version)
