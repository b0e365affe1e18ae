"""Every manifest, transaction, tag and branch that pylance writes is read in full and written again as it was."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.message import Message
from lance.dataset import LanceOperation

from lancelet.format.flags import check_writable, flags_for
from lancelet.format.fragments import Fragment
from lancelet.format.indexes import parse_index_section, write_index_section
from lancelet.format.manifest import Manifest, data_version, parse_manifest, write_manifest
from lancelet.format.manifest_file import ManifestFile, parse_manifest_file, write_manifest_file
from lancelet.format.names import (
    HINT,
    NamingScheme,
    branch_folder,
    branch_of_path,
    branch_path,
    deletion_path,
    index_folder,
    manifest_path,
    parse_hint,
    parse_manifest_name,
    tag_path,
    transaction_name,
    write_hint,
)
from lancelet.format.operations import Restore, Rewrite, Unknown
from lancelet.format.protos import indexes_pb2, table_pb2, transaction_pb2
from lancelet.format.refs import parse_branch, parse_tag, write_branch, write_tag
from lancelet.format.transaction import Transaction, parse_transaction, write_transaction

KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "stable": {"enable_stable_row_ids": True},
    "v1_names": {"enable_v2_manifest_paths": False},
    "legacy": {"data_storage_version": "legacy"},
    "v2_0": {"data_storage_version": "2.0"},
}
NOTHING = Transaction(0, Restore(0))


def rows(count: int, start: int = 0) -> pa.Table:
    """A table with a key, a text and a vector."""
    vectors = pa.array([[float(n)] * 4 for n in range(count)], pa.list_(pa.float32(), 4))
    return pa.table({"id": np.arange(start, start + count), "s": [f"v{n}" for n in range(count)], "v": vectors})


def change(place: Path) -> Iterator[Callable[[Any], object]]:
    """Operations of all kinds, in the order in which they are to be carried out."""
    uri = str(place)
    yield lambda ds: ds.insert(rows(50, 1000))
    yield lambda ds: ds.delete("id < 10")
    yield lambda ds: ds.delete("id % 3 = 0")
    yield lambda ds: ds.delete("id >= 80 and id < 100")
    yield lambda ds: ds.update({"s": "'x'"}, where="id % 7 = 1")
    clauses = lance.LanceDataset.merge_insert
    yield lambda ds: clauses(ds, "id").when_matched_update_all().when_not_matched_insert_all().execute(rows(30, 1040))
    yield lambda ds: ds.add_columns({"w": "id * 2"})
    yield lambda ds: ds.alter_columns({"path": "s", "name": "renamed"})
    yield lambda ds: ds.alter_columns({"path": "w", "data_type": pa.int32()})
    yield lambda ds: ds.drop_columns(["w"])
    yield lambda ds: ds.create_scalar_index("id", "BTREE")
    yield lambda ds: ds.create_scalar_index("renamed", "BITMAP")
    yield lambda ds: ds.drop_index("renamed_idx")
    yield lambda ds: ds.update_config({"a": "1", "b": "2"})
    yield lambda ds: ds.delete_config_keys(["a"])
    yield lambda ds: ds.update_metadata({"k": "v"})
    yield lambda ds: ds.update_schema_metadata({"sk": "sv", "empty": ""})
    yield lambda ds: ds.update_field_metadata({"id": {"fk": "fv"}})
    yield lambda ds: ds.tags.create("first", 2)
    yield lambda ds: ds.tags.update("first", 3)
    yield lambda ds: ds.create_branch("feature/x")
    yield lambda ds: ds.checkout_version(("feature/x", None)).delete("id > 1050")
    yield lambda ds: ds.shallow_clone(f"{uri}_shallow", 2)
    yield lambda ds: ds.deep_clone(f"{uri}_deep", 2)
    yield lambda ds: ds.add_bases([lance.DatasetBasePath(f"{uri}_base", "more", False)])
    yield lambda ds: ds.optimize.compact_files()
    yield lambda ds: ds.checkout_version(4).restore()
    yield lambda ds: lance.write_dataset(rows(9), uri, mode="overwrite", commit_message="all anew")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of every kind, and those made from them, in one folder."""
    root = tmp_path_factory.mktemp("history")
    for kind, options in KINDS.items():
        place = root / kind
        lance.write_dataset(rows(100), str(place), max_rows_per_file=40, **options)
        for step in change(place):
            step(lance.dataset(str(place)))
    detached(root / "plain")
    spilled(root / "spilled")
    based(root / "based")
    deferred(root / "deferred")
    return root


def detached(place: Path) -> None:
    """A version beside the history; with V1 names there are none."""
    version = lance.dataset(str(place)).version
    nothing = LanceOperation.Append([])
    lance.LanceDataset.commit(str(place), nothing, read_version=version, detached=True, commit_message="aside")


def spilled(place: Path) -> None:
    """A table whose row ids and versions outgrow the manifest."""
    config: dict[str, str | None] = {"lance.row_lineage.spill": "true", "lance.row_lineage.inline_max_bytes": "0"}
    lance.write_dataset(rows(100), str(place), max_rows_per_file=40, enable_stable_row_ids=True)
    lance.dataset(str(place)).update_config(config)
    lance.dataset(str(place)).delete("id % 2 = 0")
    lance.dataset(str(place)).update({"s": "'x'"}, where="id % 7 = 1")
    lance.dataset(str(place)).optimize.compact_files()


def based(place: Path) -> None:
    """A table with files below other paths, in several versions of the data format."""
    bases = [lance.DatasetBasePath(f"{place}_{n}", f"b{n}", bool(n)) for n in range(2)]
    lance.write_dataset(rows(10), str(place), initial_bases=bases, target_bases=["b1"], data_storage_version="2.1")
    lance.write_dataset(rows(10), str(place), mode="append", data_storage_version="2.2")
    lance.dataset(str(place)).delete("id = 3")


def deferred(place: Path) -> None:
    """A table with a vector index and one that remembers how fragments were rewritten."""
    lance.write_dataset(rows(300), str(place), max_rows_per_file=100)
    lance.dataset(str(place)).create_index("v", "IVF_FLAT", num_partitions=1, metric="l2")
    lance.dataset(str(place)).optimize.compact_files(defer_index_remap=True)


def files(history: Path) -> list[tuple[Path, ManifestFile]]:
    """Every manifest below the folder."""
    found = sorted(history.rglob("*.manifest"))
    assert len(found) > 150
    return [(path, parse_manifest_file(path.read_bytes(), uri=str(path))) for path in found]


def table_of(path: Path) -> Path:
    """The folder of the table or branch that a manifest belongs to."""
    return path.parent.parent


def test_manifests_are_written_again_byte_for_byte_unless_the_order_of_a_mapping_is_open(history: Path) -> None:
    same = 0
    for path, file in files(history):
        before = path.read_bytes()
        after = write_manifest_file(file.manifest, indexes=file.index_section(), transaction=file.transaction())
        again = parse_manifest_file(after)
        assert again.index_section() == file.index_section()
        assert again.transaction() == file.transaction()
        if after != before:
            stored = table_pb2.Manifest.FromString(write_manifest(file.manifest))
            done = transaction_pb2.Transaction.FromString(write_transaction(again.transaction() or NOTHING))
            assert open_order(stored) or open_order(done), path
        same += after == before
    assert same > 100


def open_order(message: Message) -> bool:
    """Whether a message holds a mapping that writers store each in their way: many keys, or a default one."""
    for descriptor, value in message.ListFields():
        kind = descriptor.message_type
        if kind is None:
            continue
        if kind.GetOptions().map_entry:
            if len(value) > 1 or not all(key and (isinstance(item, Message) or item) for key, item in value.items()):
                return True
            value = [item for item in value.values() if isinstance(item, Message)]
        if any(open_order(item) for item in ([value] if isinstance(value, Message) else value)):
            return True
    return False


def test_no_message_that_pylance_writes_has_a_field_unknown_to_us(history: Path) -> None:
    for path, file in files(history):
        manifest, transaction = file.manifest, file.transaction()
        assert not manifest.unknown, path
        assert not manifest.unknown_of_fields, path
        for fragment in manifest.fragments:
            assert not fragment.unknown
            assert not any(item.unknown for item in fragment.files)
        assert not any(index.unknown for index in file.index_section().indexes)
        assert transaction is not None
        assert not transaction.unknown
        assert not isinstance(transaction.operation, Unknown)


def test_stored_messages_equal_what_is_parsed_and_written(history: Path) -> None:
    for path, file in files(history):
        data, manifest = file.data, file.manifest
        stored = section(data, int.from_bytes(data[-16:-8], "little"))
        assert table_pb2.Manifest.FromString(write_manifest(parse_manifest(stored))) == (
            table_pb2.Manifest.FromString(stored)
        ), path
        assert manifest.transaction_section is not None
        stored = section(data, manifest.transaction_section)
        assert transaction_pb2.Transaction.FromString(write_transaction(parse_transaction(stored))) == (
            transaction_pb2.Transaction.FromString(stored)
        ), path
        if manifest.index_section is not None:
            stored = section(data, manifest.index_section)
            assert indexes_pb2.IndexSection.FromString(write_index_section(parse_index_section(stored))) == (
                indexes_pb2.IndexSection.FromString(stored)
            ), path


def section(data: memoryview, place: int) -> bytes:
    """A message that its length precedes."""
    return bytes(data[place + 4 : place + 4 + int.from_bytes(data[place : place + 4], "little")])


def test_every_operation_but_those_for_logs_and_overlays_was_seen(history: Path) -> None:
    seen = {type(transaction.operation).__name__ for _, file in files(history) if (transaction := file.transaction())}
    assert seen == {
        *("Append", "Delete", "Overwrite", "CreateIndex", "Rewrite", "Merge", "Restore", "ReserveFragments"),
        *("Update", "Project", "UpdateConfig", "Clone", "UpdateBases"),
    }


def test_transaction_files_hold_what_the_manifests_hold(history: Path) -> None:
    compared = 0
    for path, file in files(history):
        transaction = file.transaction()
        assert transaction is not None
        assert file.manifest.transaction_file == transaction_name(transaction.read_version, transaction.uuid)
        stored = table_of(path) / "_transactions" / file.manifest.transaction_file
        if stored.exists():
            assert parse_transaction(stored.read_bytes()) == transaction
            compared += 1
    assert compared > 100


def test_names_lead_to_the_files(history: Path) -> None:
    for path, file in files(history):
        name, manifest = parse_manifest_name(str(path)), file.manifest
        assert name is not None
        assert name.version == manifest.version
        assert table_of(path) / manifest_path(name.version, name.scheme or NamingScheme.V2) == path
        assert name.detached == path.name.startswith("d")
        for fragment in manifest.fragments:
            for item in fragment.files:
                root = folder(table_of(path), manifest, item.base_id, "data")
                assert (root / item.path).stat().st_size == (item.file_size or (root / item.path).stat().st_size)
            if (deletion := fragment.deletion_file) is not None:
                base = folder(table_of(path), manifest, deletion.base_id, "")
                assert (base / deletion_path(fragment.id, deletion)).exists()
        for index in file.index_section().indexes:
            root = folder(table_of(path), manifest, index.base_id, "") / index_folder(index.uuid)
            assert {item.path: item.size_bytes for item in index.files} == (
                {item.name: item.stat().st_size for item in root.iterdir()} if root.exists() else {}
            )


def folder(table: Path, manifest: Manifest, base_id: int | None, inside: str) -> Path:
    """Where files with a base id lie."""
    if base_id is None:
        return table / inside
    base = manifest.base_path(base_id)
    place = Path(base.path.removeprefix("file://"))
    return place / inside if base.is_dataset_root else place


@pytest.mark.parametrize("kind", [*KINDS, "spilled", "based", "deferred"])
def test_fields_equal_what_pylance_reports(history: Path, kind: str) -> None:
    place = history / kind
    entries: list[Any] = lance.dataset(str(place)).versions()
    for entry in entries:
        ds = lance.dataset(str(place), version=entry["version"])
        scheme = NamingScheme.V1 if kind == "v1_names" else NamingScheme.V2
        file = parse_manifest_file((place / manifest_path(ds.version, scheme)).read_bytes())
        manifest = file.manifest
        for ours, theirs in zip(manifest.fragments, ds.get_fragments(), strict=True):
            check_fragment(ours, theirs.metadata)
        assert data_version(manifest).label == ds.data_storage_version
        assert {item.name: item.id for item in manifest.schema.fields} == {
            item.name(): item.id() for item in ds.lance_schema.fields()
        }
        assert dict(manifest.config) == ds.config()
        assert dict(manifest.table_metadata) == ds.metadata
        assert manifest.timestamp is not None
        assert manifest.timestamp // 10**9 == int(entry["timestamp"].timestamp())
        assert {item.name for item in file.index_section().indexes} == {item.name for item in ds.describe_indices()}
        transaction = file.transaction()
        assert transaction is not None
        if isinstance(transaction.operation, Rewrite):
            # pylance 14.0.2 cannot show these when they rewrote an index.
            continue
        reported: Any = ds.read_transaction(ds.version)
        assert (transaction.uuid, transaction.read_version) == (reported.uuid, reported.read_version)
        assert transaction.properties == (reported.transaction_properties or {})


def check_fragment(ours: Fragment, theirs: lance.FragmentMetadata) -> None:
    """Compare one fragment field by field."""
    assert (ours.id, ours.physical_rows, ours.num_deleted_rows) == (
        theirs.id,
        theirs.physical_rows,
        theirs.num_deletions,
    )
    for mine, item in zip(ours.files, theirs.files, strict=True):
        assert (mine.path, list(mine.fields), list(mine.column_indices)) == (
            item.path,
            list(item.fields),
            list(item.column_indices),
        )
        assert (mine.file_major_version, mine.file_minor_version) == (item.file_major_version, item.file_minor_version)
        assert (mine.file_size, mine.base_id) == (item.file_size_bytes or None, item.base_id)


def test_tags_branches_and_hints_are_written_as_pylance_writes_them(history: Path) -> None:
    place = history / "plain"
    tag = (place / tag_path("first")).read_bytes()
    assert parse_tag(tag).version == 3
    assert write_tag(parse_tag(tag)) == tag
    branch = (place / branch_path("feature/x")).read_bytes()
    assert branch_of_path(branch_path("feature/x")) == "feature/x"
    assert write_branch(parse_branch(branch)) == branch
    assert parse_branch(branch).points[0].version == parse_branch(branch).parent_version
    for table in (place, place / branch_folder("feature/x")):
        hint = (table / HINT).read_bytes()
        assert write_hint(parse_hint(hint) or 0) == hint


def test_flags_are_those_that_pylance_sets(history: Path) -> None:
    for path, file in files(history):
        manifest = file.manifest
        check_writable(manifest)
        words = (manifest.reader_flags, manifest.writer_flags)
        assert flags_for(manifest, indexes=file.index_section().indexes) == words, path


def test_pylance_reads_tables_whose_manifests_and_transactions_we_wrote(history: Path, tmp_path: Path) -> None:
    for kind in ("plain", "stable"):
        place = tmp_path / kind
        shutil.copytree(history / kind, place)
        expected = {
            entry["version"]: lance.dataset(str(place), version=entry["version"]).to_table()
            for entry in lance.dataset(str(place)).versions()
        }
        for path, file in [(path, parse_manifest_file(path.read_bytes())) for path in place.rglob("*.manifest")]:
            transaction = file.transaction()
            assert isinstance(transaction, Transaction)
            path.write_bytes(write_manifest_file(file.manifest, indexes=file.index_section(), transaction=transaction))
        for version, table in expected.items():
            assert lance.dataset(str(place), version=version).to_table() == table
        lance.write_dataset(rows(2), str(place), mode="append")
