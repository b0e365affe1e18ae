"""The schema that pylance writes into a file equals ours, and the schema that it reports equals what we report."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pyarrow as pa
import pytest
from lance.file import LanceFileReader, LanceFileWriter

from lancelet.errors import LanceletError
from lancelet.format.arrow import schema_from_arrow, schema_to_arrow
from lancelet.format.blobs import file_schema
from lancelet.format.fields import FileDescriptor, parse_file_descriptor
from lancelet.format.protos import schema_pb2

VERSIONS = ["2.0", "2.1", "2.2"]
BFLOAT16 = {"ARROW:extension:name": "lance.bfloat16", "ARROW:extension:metadata": ""}
TIMES = [
    pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Europe/Berlin", "+05:30")
]
FIXED = [
    pa.bool_(),
    *(getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *(pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64(), pa.binary(1), pa.binary(16)),
    *(pa.decimal128(38, 10), pa.decimal128(5, -3), pa.decimal256(76, 76)),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
    *TIMES,
]
WORDS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.string_view(), pa.binary_view()]
DICTIONARIES = [
    pa.dictionary(index, value)
    for index in (pa.int8(), pa.uint16(), pa.int32(), pa.uint64())
    for value in (pa.string(), pa.large_binary(), pa.int64(), pa.float32())
]
EXTENSIONS = [
    pa.uuid(),
    pa.bool8(),
    pa.json_(),
    pa.opaque(pa.int8(), "a", "b"),
    pa.fixed_shape_tensor(pa.int8(), [2, 2]),
]
LEAVES = [pa.null(), *FIXED, *WORDS, *DICTIONARIES, *EXTENSIONS]

NAMES = ["a", "b", "c", "item", "x y", "é", "element"]
SCHEMAS_PER_SEED = 40


class Generator:
    """Schemas made up at random; ``since_2_2`` adds maps and fixed-size lists of structs."""

    def __init__(self, seed: int, *, since_2_2: bool) -> None:
        self.random = random.Random(seed)
        self.nested = ["struct", "list", "large_list", *(["map", "list of structs"] if since_2_2 else [])]

    def schema(self) -> pa.Schema:
        """Up to four columns."""
        return pa.schema(self.fields(4, 0), metadata=self.metadata())

    def fields(self, most: int, depth: int) -> list[pa.Field]:
        """Fields of different names."""
        return [self.field(name, depth) for name in self.random.sample(NAMES, self.random.randint(0, most))]

    def field(self, name: str, depth: int) -> pa.Field:
        """A field of any type, which may hold others as long as the depth allows."""
        kind = self.kind(depth)
        nullable = kind == pa.null() or self.random.random() < 0.7
        return pa.field(name, kind, nullable, metadata=self.metadata())

    def metadata(self) -> dict[str, str] | None:
        """None more often than not."""
        return self.random.choice([None, None, {}, {"k": "v", "é": "ü"}, {"lance-encoding:compression": "zstd"}])

    def kind(self, depth: int) -> pa.DataType:
        """A type."""
        if depth == 4 or self.random.random() < 0.4:
            return self.random.choice(LEAVES) if self.random.random() < 0.8 else self.fixed_list(0)
        match self.random.choice(self.nested):
            case "struct":
                return pa.struct(self.fields(3, depth + 1))
            case "list":
                return pa.list_(self.field(self.random.choice(NAMES), depth + 1))
            case "large_list":
                return pa.large_list(self.field(self.random.choice(NAMES), depth + 1))
            case "map":
                key = pa.field("key", self.random.choice([pa.string(), pa.int32()]), False)
                return pa.map_(key, self.field("value", depth + 1))
            case _:
                fields = [self.field("x", depth + 1), *self.fields(1, depth + 1)]
                item = pa.field(self.random.choice(NAMES), pa.struct(fields), metadata=self.metadata())
                return pa.list_(item, self.random.randint(1, 5))

    def fixed_list(self, depth: int) -> pa.DataType:
        """A fixed-size list of values or of such lists."""
        item = pa.field("item", self.random.choice([*FIXED, *WORDS, pa.null(), pa.uuid()]))
        if self.random.random() < 0.2:
            item = pa.field("item", pa.binary(2), metadata=BFLOAT16)
        if depth < 2 and self.random.random() < 0.3:
            item = pa.field("item", self.fixed_list(depth + 1))
        return pa.list_(item, self.random.randint(1, 9))


def written(path: Path, schema: pa.Schema, version: str) -> tuple[FileDescriptor, bytes]:
    """What pylance says in an empty file's first global buffer."""
    with LanceFileWriter(str(path), schema, version=version):
        pass
    data = path.read_bytes()
    (table,) = struct.unpack("<Q", data[-24:-16])
    start, size = struct.unpack("<QQ", data[table : table + 16])
    return parse_file_descriptor(data[start : start + size]), data[start : start + size]


def assert_equal(path: Path, schema: pa.Schema, version: str) -> None:
    """Both directions at once; also that the type enum, which nobody reads, stays unset."""
    descriptor, raw = written(path, schema, version)
    assert descriptor.schema == file_schema(schema_from_arrow(schema))
    assert {field.type for field in schema_pb2.FileDescriptor.FromString(raw).schema.fields} <= {0}
    reported = LanceFileReader(str(path)).metadata().schema
    ours = schema_to_arrow(descriptor.schema)
    assert ours.equals(reported, check_metadata=True), f"{ours}\n\n{reported}"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("nullable", [True, False])
def test_every_leaf_type_is_stated_and_reported_alike(tmp_path: Path, version: str, nullable: bool) -> None:
    kinds = [kind for kind in LEAVES if nullable or not pa.types.is_null(kind)]
    schema = pa.schema([pa.field(f"c{n}", kind, nullable) for n, kind in enumerate(kinds)], metadata={"a": "b"})
    assert_equal(tmp_path / "a.lance", schema, version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(5))
def test_generated_schemas_are_stated_and_reported_alike(tmp_path: Path, version: str, seed: int) -> None:
    generator = Generator(seed, since_2_2=version == "2.2")
    for _ in range(SCHEMAS_PER_SEED):
        assert_equal(tmp_path / "a.lance", generator.schema(), version)


KEY = "lance-schema:unenforced-primary-key"
SPECIAL = {
    "primary key": pa.field("a", pa.int8(), False, metadata={KEY: "Yes"}),
    "key position": pa.field("a", pa.int8(), False, metadata={f"{KEY}:position": "2"}),
    "key position and no": pa.field("a", pa.int8(), False, metadata={KEY: "no", f"{KEY}:position": "+2"}),
    "key that is none": pa.field("a", pa.int8(), metadata={KEY: "maybe", f"{KEY}:position": " 2"}),
    "key within a struct": pa.field("s", pa.struct([pa.field("a", pa.int8(), False, metadata={KEY: "1"})]), False),
    "clustering": pa.field("a", pa.int8(), metadata={"lance-schema:unenforced-clustering-key:position": "1"}),
    "clustering word": pa.field("a", pa.int8(), metadata={"lance-schema:unenforced-clustering-key": "true"}),
    "bfloat16": pa.field("a", pa.binary(2), metadata=BFLOAT16),
    "bfloat16 items": pa.field("a", pa.list_(pa.field("item", pa.binary(2), metadata=BFLOAT16))),
    "arrow json": pa.field("a", pa.string(), metadata={"ARROW:extension:name": "arrow.json"}),
    "arrow json in a view": pa.field("a", pa.string_view(), metadata={"ARROW:extension:name": "arrow.json"}),
    "lance json": pa.field("a", pa.large_binary(), metadata={"ARROW:extension:name": "lance.json"}),
    "lance json of another type": pa.field("a", pa.int32(), metadata={"ARROW:extension:name": "lance.json"}),
    "own extension": pa.field("a", pa.int32(), metadata={"ARROW:extension:name": "my.own", "z": "1"}),
    "blob": pa.field("a", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
    "packed": pa.field("a", pa.struct([("x", pa.int8())]), metadata={"lance-encoding:packed": "true"}),
    "no name": pa.field("", pa.int8()),
    "dot below the top": pa.field("s", pa.struct([("a.b", pa.int8())])),
    "same names in a struct": pa.field("s", pa.struct([pa.field("a", pa.int8()), pa.field("a", pa.int8())])),
    "ordered dictionary": pa.field("a", pa.dictionary(pa.int8(), pa.string(), True)),
    "zone that is a dash": pa.field("a", pa.timestamp("us", "-")),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", SPECIAL)
def test_special_fields_are_stated_and_reported_alike(tmp_path: Path, case: str, version: str) -> None:
    assert_equal(tmp_path / "a.lance", pa.schema([SPECIAL[case]]), version)


BLOB = pa.field(
    "b",
    pa.struct([("data", pa.large_binary()), ("uri", pa.string())]),
    metadata={"ARROW:extension:name": "lance.blob.v2", "z": "1"},
)


@pytest.mark.parametrize(
    "columns",
    [
        [BLOB],
        [pa.field("a", pa.int8()), BLOB.with_nullable(False), pa.field("c", pa.int8())],
        [pa.field("s", pa.struct([BLOB, pa.field("c", pa.int8())])), pa.field("d", pa.int8())],
        [pa.field("l", pa.list_(BLOB))],
    ],
    ids=["alone", "between", "in a struct", "in a list"],
)
def test_a_blob_is_stated_alike(tmp_path: Path, columns: list[pa.Field]) -> None:
    # pylance reports the parts of a blob's description as columns of their own; here they are the blob's.
    schema = pa.schema(columns)
    assert written(tmp_path / "a.lance", schema, "2.2")[0].schema == file_schema(schema_from_arrow(schema))


REFUSED = [
    pa.schema([("a", pa.int8()), ("a", pa.int8())]),
    *(
        pa.schema([field])
        for field in (
            pa.field("a.b", pa.int8()),
            pa.field("a", pa.decimal32(5, 2)),
            pa.field("a", pa.decimal64(5, 2)),
            pa.field("a", pa.month_day_nano_interval()),
            pa.field("a", pa.list_view(pa.int8())),
            pa.field("a", pa.run_end_encoded(pa.int32(), pa.int8())),
            pa.field("a", pa.dense_union([pa.field("x", pa.int8())])),
            pa.field("a", pa.map_(pa.string(), pa.int8(), keys_sorted=True)),
            pa.field("a", pa.list_(pa.list_(pa.int8()), 2)),
            pa.field("a", pa.list_(pa.int8(), 0)),
            pa.field("a", pa.list_(pa.map_(pa.string(), pa.int8()), 2)),
            pa.field("a", pa.list_(pa.list_(pa.struct([("x", pa.int8())]), 2), 2)),
            pa.field("a", pa.list_(pa.dictionary(pa.int8(), pa.string()), 2)),
            pa.field("a", pa.dictionary(pa.int8(), pa.date32())),
            pa.field("a", pa.dictionary(pa.int8(), pa.binary(2))),
            pa.field("a", pa.int8(), True, metadata={KEY: "true"}),
            pa.field("a", pa.struct([("x", pa.int8())]), False, metadata={KEY: "true"}),
            pa.field("a", pa.list_(pa.field("x", pa.int8(), False, metadata={KEY: "true"})), False),
            pa.field("a", pa.int8(), metadata={b"k": b"\xff"}),
        )
    ),
]


@pytest.mark.parametrize("schema", REFUSED, ids=lambda schema: str(schema.field(0).type))
def test_what_pylance_refuses_is_refused(tmp_path: Path, schema: pa.Schema) -> None:
    with pytest.raises(LanceletError):
        schema_from_arrow(schema)
    with pytest.raises(Exception, match=r"."):
        written(tmp_path / "a.lance", schema, "2.2")
