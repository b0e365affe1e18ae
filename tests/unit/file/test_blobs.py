"""Blob v2 at the level of data files: every payload finds its place and is found again; what is damaged says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancelet.config import default_options
from lancelet.errors import Corrupt, InvalidInput, NotFound, OverBudget, Unsupported
from lancelet.file import LanceFileSession
from lancelet.file.blob_columns import LOGICAL, BlobLimits
from lancelet.file.blob_descriptors import PREPARED, BlobDescriptor, BlobDescriptorArrayBuilder
from lancelet.file.blob_reader import BlobReader
from lancelet.file.blobs import DESCRIPTOR, BlobKind, Descriptors, parse_descriptors, sidecar_path
from lancelet.storage import open_store
from lancelet.storage.counting import CountingStore
from lancelet.storage.memory import MemoryStore

_FRESH = count()
_KEYS = "inline-size-threshold", "dedicated-size-threshold", "pack-file-size-threshold"


@pytest.fixture
def place() -> str:
    """A store nobody has used."""
    return _fresh()


def _fresh() -> str:
    return f"memory://blob-tests-{next(_FRESH)}"


def _field(inline: int = 8, dedicated: int = 100, pack_file: int = 250, nullable: bool = True) -> pa.Field:
    limits = dict(zip(_KEYS, (inline, dedicated, pack_file), strict=True))
    metadata = {f"lance-encoding:blob-{key}": str(value) for key, value in limits.items()}
    return pa.field("b", LOGICAL, nullable, metadata={"ARROW:extension:name": "lance.blob.v2", **metadata})


def _logical(values: Sequence[bytes | str | dict[str, object] | None]) -> pa.StructArray:
    def row(value: bytes | str | dict[str, object] | None) -> dict[str, object] | None:
        if value is None or isinstance(value, dict):
            return value
        return {"data": value} if isinstance(value, bytes) else {"uri": value}

    return pa.array([row(value) for value in values], LOGICAL)


def _write(place: str, field: pa.Field, *arrays: pa.Array) -> pa.ChunkedArray:
    """The descriptors of a column after a round through a data file."""
    session = LanceFileSession(place)
    with session.open_writer("f.lance", schema=pa.schema([field]), version="2.2") as writer:
        for array in arrays:
            writer.write_batch(pa.record_batch([array], schema=pa.schema([field.with_type(array.type)])))
    return session.open_reader("f.lance").read_all().to_table()["b"]


def _descriptor(**changes: object) -> pa.StructArray:
    return pa.array([{"kind": 0, "position": 0, "size": 0, "blob_id": 0, "blob_uri": "", **changes}], DESCRIPTOR)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"kind": 4, "blob_uri": "a/b"}, Unsupported, "kind 4 .managed"),
        ({"kind": 5, "blob_uri": "a/b"}, Unsupported, "kind 5 .managed"),
        ({"kind": 77}, Unsupported, "kind 77"),
        ({"kind": 1, "size": 3}, Corrupt, "sidecar 0"),
        ({"kind": 2, "size": 3}, Corrupt, "sidecar 0"),
        ({"kind": 3}, Corrupt, "no URI"),
        ({"kind": 3, "blob_uri": "x", "blob_id": 9}, Corrupt, "base 9"),
        ({"position": 2**63, "size": 1}, Corrupt, "beyond the end of any file"),
        ({"position": 2**64 - 1, "size": 2**64 - 1}, Corrupt, "beyond the end of any file"),
    ],
)
def test_a_descriptor_that_leads_nowhere_is_refused(
    place: str, changes: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        BlobReader(open_store(place), "f.lance").locations(_descriptor(**changes))


@pytest.mark.parametrize("kind", [pa.int64(), pa.struct({"x": pa.int64()}), LOGICAL, pa.large_binary()])
def test_other_columns_are_no_descriptors(kind: pa.DataType) -> None:
    with pytest.raises(InvalidInput, match="holds no blob descriptors"):
        parse_descriptors(pa.nulls(2, kind))


def test_a_null_inside_a_valid_descriptor_is_corrupt() -> None:
    loose = pa.struct({field.name: field.type for field in DESCRIPTOR})
    row = {"kind": 1, "position": None, "size": 5, "blob_id": 1, "blob_uri": ""}
    with pytest.raises(Corrupt, match="position of a blob descriptor is null"):
        parse_descriptors(pa.array([row], loose))


def test_descriptors_go_to_arrow_and_back() -> None:
    array = pa.concat_arrays([_descriptor(kind=1, blob_id=3, size=9), pa.nulls(1, DESCRIPTOR), _descriptor(size=2)])
    found = parse_descriptors(array.slice(0, 2)), parse_descriptors(array.slice(1))
    assert pa.concat_arrays([part.to_arrow() for part in found]).to_pylist() == array.take([0, 1, 1, 2]).to_pylist()
    assert isinstance(found[0], Descriptors)
    assert found[0].to_arrow().type == DESCRIPTOR


def test_blobs_of_the_first_kind_are_null_where_their_place_means_nothing() -> None:
    rows = [{"position": 64, "size": 5}, {"position": 0, "size": 0}, {"position": 1, "size": 0}, None]
    assert parse_descriptors(pa.array(rows)).valid.tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("path", "blob_id"), [("f", 1), (".lance", 1), ("a/.lance", 1), ("f.lance", 0), ("f.lance", 2**32), ("f.lance", -1)]
)
def test_sidecars_have_names_only_beside_data_files(path: str, blob_id: int) -> None:
    with pytest.raises(InvalidInput):
        sidecar_path(path, blob_id)


# Sidecars and columns written by hand


def test_a_packed_sidecar_takes_single_blobs_and_arrays(place: str) -> None:
    writer = LanceFileSession(place).open_packed_blob_writer("d/f.lance", 1)
    writer.write_blob(b"hello")
    writer.write_blobs(pa.array([b"zero", b"a", None, b"", b"bc"]).slice(1))
    writer.write_blobs(pa.chunked_array([pa.array([b"xy", None], pa.binary(2))]))
    writer.write_blobs(pa.array([b"z"], pa.binary_view()))
    assert not list(open_store(place).list_from(""))
    packed = [(0, 5), (5, 1), None, (6, 0), (6, 2), (8, 2), None, (10, 1)]
    assert writer.finish() == [
        BlobDescriptor()
        if found is None
        else BlobDescriptor(BlobKind.PACKED, blob_id=1, offset=found[0], size=found[1])
        for found in packed
    ]
    assert bytes(open_store(place).read_all(sidecar_path("d/f.lance", 1))) == b"helloabcxyz"


@pytest.mark.parametrize("payloads", [[b"a"], pa.array(["a"]), pa.array([1])])
def test_a_packed_sidecar_takes_nothing_but_binary_arrays(place: str, payloads: object) -> None:
    with LanceFileSession(place).open_packed_blob_writer("f.lance", 1) as writer, pytest.raises(InvalidInput):
        writer.write_blobs(payloads)


def test_a_sidecar_that_is_not_finished_never_appears(place: str) -> None:
    session = LanceFileSession(place)
    with (
        session.open_packed_blob_writer("f.lance", 1) as packed,
        session.open_dedicated_blob_writer("f.lance", 2) as one,
    ):
        packed.write_blob(b"a")
        one.write(b"b")
    assert session.list() == []
    for use in (packed.finish, one.finish, lambda: packed.write_blob(b"a"), lambda: one.write(b"a")):
        with pytest.raises(InvalidInput, match="already finished"):
            use()


def test_columns_written_by_hand_are_read_like_any_other(place: str) -> None:
    session = LanceFileSession(place)
    packed = session.open_packed_blob_writer("f.lance", 1)
    packed.write_blobs(pa.array([b"one", None, b"three"]))
    dedicated = session.open_dedicated_blob_writer("f.lance", 2)
    dedicated.write(b"dedi")
    dedicated.write(b"cated")
    builder = BlobDescriptorArrayBuilder("b")
    builder.append_inline(b"inline")
    builder.extend(packed.finish())
    builder.append_null()
    builder.append(dedicated.finish())
    builder.extend_packed(1, [1], [2])
    builder.append_inline(b"")
    found = _write(place, builder.field, builder.finish())
    wanted = [b"inline", b"one", None, b"three", None, b"dedicated", b"ne", b""]
    assert list(BlobReader(open_store(place), "f.lance").read_blobs(found)) == wanted
    with pytest.raises(InvalidInput, match="already finished"):
        builder.append_null()


@pytest.mark.parametrize(
    "use",
    [
        lambda builder: builder.extend_packed(0, [0], [1]),
        lambda builder: builder.extend_packed(1, [0], [1, 2]),
        lambda builder: builder.extend_packed(1, [-1], [1]),
        lambda builder: builder.append_dedicated(0, 1),
        lambda builder: builder.append_dedicated(1, -1),
        lambda builder: builder.append_managed("", 0, 1),
        lambda builder: builder.append_managed("/absolute", 0, 1),
        lambda builder: builder.append_managed("../up", 0, 1),
        lambda builder: builder.append_managed("s3://b/x", 0, 1),
    ],
)
def test_the_builder_refuses_what_no_descriptor_can_say(use: Callable[[BlobDescriptorArrayBuilder], None]) -> None:
    with pytest.raises(InvalidInput):
        use(BlobDescriptorArrayBuilder("b"))


def test_managed_blobs_can_be_described_but_not_read(place: str) -> None:
    builder = BlobDescriptorArrayBuilder("b")
    builder.append_managed("a/b", 3, 5)
    builder.append_managed("a/b", 4, 6, base_id=3)
    found = _write(place, builder.field, builder.finish())
    assert [(row["kind"], row["blob_id"], row["blob_uri"]) for row in found.to_pylist()] == [
        (4, 0, "a/b"),
        (5, 3, "a/b"),
    ]
    with pytest.raises(Unsupported, match="kind 4"):
        BlobReader(open_store(place), "f.lance").open(found)


# Placing payloads


def test_size_decides_where_a_payload_goes(place: str) -> None:
    sizes = [101, 9, 8, 0, 100, 150, 90, 60, 1]
    found = _write(place, _field(), _logical([bytes(size) for size in sizes]))
    places = [(row["kind"], row["blob_id"]) for row in found.to_pylist()]
    # The second packed sidecar starts where the first would have outgrown 250 bytes.
    assert places == [(2, 1), (1, 2), (0, 0), (0, 0), (1, 2), (2, 3), (1, 2), (1, 4), (0, 0)]
    assert all(row["position"] % 64 == 0 for row in found.to_pylist() if row["kind"] == 0)


def test_a_payload_above_the_limit_of_packed_sidecars_has_one_alone(place: str) -> None:
    found = _write(place, _field(0, 1000, 50), _logical([b"a" * size for size in (30, 70, 20, 60, 50)]))
    assert [row["blob_id"] for row in found.to_pylist()] == [1, 2, 3, 4, 5]


_PAYLOADS = st.lists(st.one_of(st.none(), st.integers(0, 200)), max_size=30)


@settings(max_examples=60)
@given(_PAYLOADS, st.integers(0, 30), st.integers(1, 150), st.integers(1, 400), st.integers(1, 30), st.integers(0, 9))
def test_every_payload_is_found_again(
    sizes: list[int | None], inline: int, dedicated: int, pack_file: int, batch: int, seed: int
) -> None:
    place, draw = _fresh(), np.random.default_rng(seed)
    values = [None if size is None else draw.bytes(size) for size in sizes]
    column = _logical([None, *values]).slice(1)
    pieces = [column.slice(at, batch) for at in range(0, len(column), batch)]
    found = _write(place, _field(inline, dedicated, pack_file), *pieces)
    reader = BlobReader(CountingStore(MemoryStore(place)), "f.lance")
    assert list(reader.read_blobs(found, window_bytes=300)) == values
    assert reader.read_array(found).to_pylist() == values
    assert [file and file.readall() for file in reader.open(found)] == values


def test_large_inline_payloads_are_not_gathered(place: str) -> None:
    values = [b"a" * (9 << 20), b"b", b"c" * (5 << 20), b"d" * (5 << 20)]
    found = _write(place, _field(1 << 30, 1 << 30), _logical(values))
    assert list(BlobReader(open_store(place), "f.lance").read_blobs(found)) == values


def test_blobs_below_structs_and_lists_are_placed_too(place: str) -> None:
    inner = _field()
    struct = pa.struct([inner, pa.field("x", pa.int8())])
    values = _logical([b"a", b"hidden" * 20, None, b"c" * 50, b"d" * 200])
    rows = pa.StructArray.from_arrays(
        [values, pa.array([1, 2, 3, 4, 5], pa.int8())],
        fields=list(struct),
        mask=pa.array([False, True, False, False, False]),
    )
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 5], pa.int32()), rows, type=pa.list_(struct))
    session, schema = LanceFileSession(place), pa.schema([pa.field("l", lists.type)])
    with session.open_writer("f.lance", schema=schema) as writer:
        writer.write_batch(pa.record_batch([lists], schema=schema))
    (found,) = session.open_reader("f.lance").read_all().to_table()["l"].chunks
    assert found.to_pylist()[1] == [None]
    blobs = found.values.flatten()[0]
    assert list(BlobReader(open_store(place), "f.lance").read_blobs(blobs)) == [b"a", None, None, b"c" * 50, b"d" * 200]
    # The payload that a null struct hides was not written anywhere.
    assert sum(entry.size for entry in open_store(place).list_from("f/")) == 250


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"data": b"x", "uri": "file:///u"}, "exactly one"),
        ({}, "exactly one"),
        ({"uri": ""}, "neither absolute"),
        ({"uri": "relative/path"}, "neither absolute"),
        ({"uri": "file:///u", "position": 1}, "both position and size"),
        ({"uri": "file:///u", "position": 1, "size": 0}, "size 0"),
        ({"data": b"x", "position": 1, "size": 1}, "no uri"),
    ],
)
def test_a_logical_blob_must_say_one_thing(place: str, row: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        _write(place, _field(), _logical([None, row]))
    assert caught.value.column == "b"
    assert not list(open_store(place).list_from(""))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"kind": None}, "no kind"),
        ({"kind": 9}, "unknown kind"),
        ({"kind": 0}, "no data"),
        ({"kind": 1, "blob_size": 4}, "sidecar 0"),
        ({"kind": 3}, "no URI"),
    ],
)
def test_a_prepared_blob_must_lie_somewhere(place: str, row: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        _write(place, _field(), pa.array([row], PREPARED))


def test_a_failed_write_takes_its_sidecars_back(place: str) -> None:
    with pytest.raises(InvalidInput, match="exactly one"):
        _write(place, _field(), _logical([b"a" * 200, b"b" * 50]), _logical([{}]))
    assert not list(open_store(place).list_from(""))


@pytest.mark.parametrize("text", ["abc", "-1", "1.5", "", "0", str(2**64)])
def test_thresholds_are_numbers(text: str) -> None:
    with pytest.raises(InvalidInput, match="dedicated-size-threshold"):
        BlobLimits.of({"lance-encoding:blob-dedicated-size-threshold": text})


def test_a_column_that_is_not_nullable_takes_no_null(place: str) -> None:
    with pytest.raises(InvalidInput, match="non-nullable"):
        _write(place, _field(nullable=False), _logical([b"a", None]))


def test_blobs_of_the_second_kind_need_version_2_2(place: str) -> None:
    with pytest.raises(Unsupported, match=r"needs file version 2\.2"):
        LanceFileSession(place).open_writer("f.lance", schema=pa.schema([_field()]), version="2.1")


def test_blobs_of_one_object_are_asked_for_together(place: str) -> None:
    found = _write(place, _field(0, 1000, 10_000), _logical([b"x" * 50] * 100))
    store = CountingStore(MemoryStore(place))
    assert len(list(BlobReader(store, "f.lance").read_blobs(found))) == 100
    assert store.snapshot().requests == {"read": 1}


def test_windows_bound_what_is_read_ahead(place: str) -> None:
    found = _write(place, _field(0, 1000, 10_000), _logical([b"x" * 50] * 100))
    store = CountingStore(MemoryStore(place))
    blobs = BlobReader(store, "f.lance").read_blobs(found, window_bytes=200)
    assert next(blobs) == b"x" * 50
    assert store.snapshot().bytes_read == 200


def test_more_than_the_budget_is_not_read_at_once(place: str) -> None:
    found = _write(place, _field(), _logical([b"x" * 90] * 3))
    options = default_options().with_(memory_budget=200)
    reader = BlobReader(open_store(place), "f.lance", options=options)
    assert len(list(reader.read_blobs(found))) == 3
    with pytest.raises(OverBudget):
        reader.read_array(found)
    small = BlobReader(open_store(place), "f.lance", options=options.with_(memory_budget=50))
    with pytest.raises(OverBudget, match="row 0"):
        list(small.read_blobs(found))


def test_external_blobs_are_followed_from_absolute_uris_and_from_bases(place: str) -> None:
    outside = _fresh()
    open_store(outside).put("dir/a.bin", b"0123456789")
    reader = BlobReader(open_store(place), "f.lance", bases={7: f"{outside}/dir/"})
    rows = [
        _descriptor(kind=3, blob_uri=f"{outside}/dir/a.bin"),
        _descriptor(kind=3, blob_uri="a.bin", blob_id=7, position=3, size=4),
        _descriptor(kind=3, blob_uri="a.bin", blob_id=7),
    ]
    found = pa.concat_arrays(rows)
    assert list(reader.read_blobs(found)) == [b"0123456789", b"3456", b"0123456789"]
    assert reader.read_array(found).to_pylist() == [b"0123456789", b"3456", b"0123456789"]
    assert [file.size() for file in reader.open(found) if file] == [10, 4, 10]
    missing = reader.open(_descriptor(kind=3, blob_uri=f"{outside}/none"))[0]
    assert missing is not None
    with pytest.raises(NotFound):
        missing.size()


@pytest.mark.parametrize("damage", ["short", "gone"])
def test_a_damaged_sidecar_is_named(place: str, damage: str) -> None:
    found = _write(place, _field(), _logical([b"x" * 50]))
    store, path = open_store(place), sidecar_path("f.lance", 1)
    if damage == "short":
        store.put(path, b"x" * 49)
    else:
        store.delete([path])
    reader = BlobReader(store, "f.lance")
    with pytest.raises(Corrupt if damage == "short" else NotFound, match=r"f/1000"):
        list(reader.read_blobs(found))


def test_descriptors_past_the_end_of_the_file_are_corrupt(place: str) -> None:
    _write(place, _field(), _logical([b"x"]))
    with pytest.raises(Corrupt, match=r"f\.lance"):
        list(BlobReader(open_store(place), "f.lance").read_blobs(_descriptor(position=10**6, size=5)))
