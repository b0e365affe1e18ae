"""Versions, tags, branches, clones and cleanup through the dataset, compared with pylance on the same table."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancelet
from lancelet.testing.agreement import disagreement

ROWS = pa.table({"x": pa.array(range(10), pa.int64()), "s": [str(number) for number in range(10)]})
REFERENCES: tuple[object, ...] = (1, 2, 3, 0, 99, 2**63, 1.5, None, "t", "on-b", "nope", "", ("b", 1), ("b", None))
REFERENCES += (("main", 2), (None, None), (None, 1), ("nope", 1), ("b", 99), ("b",), (), b"t")


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Three versions and a branch with one more, tags on both."""
    path = str(tmp_path / "t.lance")
    dataset = lance.write_dataset(ROWS, path, max_rows_per_file=4)
    dataset.insert(ROWS)
    dataset.delete("x = 3")
    branch = dataset.create_branch("b", 2)
    branch.delete("x = 1")
    dataset.tags.create("t", 1)
    dataset.tags.create("on-b", ("b", 3))
    return path


def told(version: Any) -> object:
    """What is told of a version but for its time, which they round to the microsecond by floating point."""
    return {key: value for key, value in version.items() if key != "timestamp"}


def test_both_tell_the_same_times(table: str) -> None:
    ours, theirs = lancelet.dataset(table).versions(), lance.dataset(table).versions()
    for here, there in zip(ours, theirs, strict=True):
        assert abs(here["timestamp"] - there["timestamp"]) <= timedelta(microseconds=1)


def both(table: str, call: Callable[[Any], object]) -> str | None:
    """How the two differ when they are asked the same of the table."""
    return disagreement(lambda: call(lancelet.dataset(table)), lambda: call(lance.dataset(table)))


@pytest.mark.parametrize(
    "call",
    [
        lambda ds: [told(item) for item in ds.versions()],
        lambda ds: told(ds.get_version()),
        lambda ds: ds.version_refs(),
        lambda ds: (ds.version, ds.latest_version, ds.count_rows(), len(ds)),
        lambda ds: told(ds.checkout_version(1).get_version()),
        lambda ds: [told(item) for item in ds.checkout_version(("b", None)).versions()],
        lambda ds: ds.checkout_version(("b", None)).latest_version,
        lambda ds: ds.tags.list(),
        lambda ds: ds.tags.list_ordered(),
        lambda ds: ds.tags.list_ordered("asc"),
        lambda ds: ds.tags.list_ordered("desc"),
        lambda ds: ds.tags.list_ordered("sideways"),
        lambda ds: [ds.tags.get_version(tag) for tag in ("t", "on-b")],
        lambda ds: ds.tags.get_version("nope"),
        lambda ds: ds.branches.list(),
        lambda ds: ds.branches.list_ordered("asc"),
        lambda ds: ds.branches.list_ordered("sideways"),
        lambda ds: ds.checkout_version(("b", None)).branches.list(),
        lambda ds: ds.checkout_version(("b", None)).tags.list(),
        lambda ds: ds.tags.delete("nope"),
        lambda ds: ds.tags.update("nope", 1),
        lambda ds: ds.tags.create("t", 1),
        lambda ds: ds.tags.create("new", 99),
        lambda ds: ds.tags.create("bad name", 1),
        lambda ds: ds.branches.delete("nope"),
        lambda ds: ds.branches.delete("b"),
        lambda ds: ds.create_branch("main"),
        lambda ds: ds.create_branch("b"),
        lambda ds: ds.create_branch("new", 99),
        lambda ds: ds.cleanup_old_versions(older_than=timedelta(0)),
        lambda ds: ds.cleanup_old_versions(retain_versions=0),
        lambda ds: ds.cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False, delete_rate_limit=0),
        lambda ds: ds.explain_cleanup_old_versions(max_files=0),
        lambda ds: ds.base_paths(),
        lambda ds: ds.fragment_ids() == {0, 1, 2, 3, 4, 5},
        lambda ds: (ds.data_storage_version, ds.has_stable_row_ids, ds.max_field_id),
        lambda ds: ds.stats.dataset_stats(5),
        lambda ds: ds.stats.data_stats(),
        lambda ds: [type(item.operation).__name__ for item in ds.get_transactions()],
        lambda ds: ds.get_transactions(1)[0].operation.deleted_fragment_ids,
        lambda ds: ds.read_transaction(99),
        lambda ds: ds.read_transaction(0),
        lambda ds: ds.get_fragment(99),
        lambda ds: [item.metadata for item in ds.get_fragments()],
        lambda ds: [item.deletion_file() for item in ds.get_fragments()],
        lambda ds: sorted(map(str, ds.tracked_files().read_all().to_pylist())),
        lambda ds: ds.tracked_files().schema,
        lambda ds: sorted(row["path"] for row in ds.all_files().read_all().to_pylist()),
        lambda ds: ds.all_files().schema,
        lambda ds: ds.get_fragments(filter="x"),
        lambda ds: ds.partition_expression,
        lambda ds: ds.replace_schema(None),
        lambda ds: ds.validate(),
    ],
)
def test_both_tell_the_same_of_a_table(table: str, call: Callable[[Any], object]) -> None:
    assert both(table, call) is None


@pytest.mark.parametrize("reference", REFERENCES, ids=repr)
def test_both_find_the_same_version_by_a_reference(table: str, reference: object) -> None:
    def rows(dataset: Any) -> object:
        found = dataset.checkout_version(reference)
        return found.version, sorted(found.to_table()["x"].to_pylist())

    assert both(table, rows) is None


@pytest.mark.parametrize("reference", [True, (1, 2), -1], ids=repr)
def test_what_is_surely_a_mistake_is_no_reference(table: str, reference: Any) -> None:
    with pytest.raises(ValueError, match="version"):
        lancelet.dataset(table).checkout_version(reference)


def test_a_dataset_on_a_branch_is_opened_again_by_its_uri(table: str) -> None:
    branch = lancelet.dataset(table).checkout_version(("b", None))
    assert lancelet.dataset(branch.uri).snapshot.branch == "b"
    assert lance.dataset(branch.uri).count_rows() == branch.count_rows()


@pytest.mark.parametrize("version", [None, 1, 3, 99, "t", "on-b", "nope", ("b", 1), 1.5], ids=repr)
def test_both_open_the_same_version(table: str, version: Any) -> None:
    def opened(library: Any) -> object:
        found = library.dataset(table, version)
        return found.version, found.uri.removeprefix(table), found.count_rows()

    assert disagreement(lambda: opened(lancelet), lambda: opened(lance)) is None


@pytest.mark.parametrize(
    "asof",
    [
        "2020-01-01 00:00:00",
        "2090-01-01 00:00:00",
        datetime(2090, 1, 1),
        datetime(2020, 1, 1),
        5,
        "yesterday",
    ],
    ids=repr,
)
def test_both_open_the_same_version_of_a_moment(table: str, asof: Any) -> None:
    found = disagreement(
        lambda: lancelet.dataset(table, asof=asof).version, lambda: lance.dataset(table, asof=asof).version
    )
    assert found is None


def test_moments_between_versions_and_with_time_zones_find_the_version_of_then(table: str) -> None:
    versions = lancelet.dataset(table).versions()
    for item in versions:
        just_after = item["timestamp"] + timedelta(microseconds=1)
        assert lancelet.dataset(table, asof=just_after).version == item["version"]
        assert lance.dataset(table, asof=just_after).version == item["version"]
        assert lancelet.dataset(table, asof=just_after.astimezone(UTC)).version == item["version"]


@pytest.mark.parametrize(
    "change",
    [
        lambda ds: ds.restore(),
        lambda ds: ds.checkout_version(1).restore(),
        lambda ds: ds.checkout_version(("b", None)).restore(),
        lambda ds: ds.tags.create("new"),
        lambda ds: ds.tags.create("new", ("b", None)),
        lambda ds: ds.checkout_version(("b", 2)).tags.create("new"),
        lambda ds: ds.tags.update("t", 2),
        lambda ds: ds.tags.delete("t"),
        lambda ds: ds.tags.replace_metadata("t", {"k": "v"}),
        lambda ds: ds.create_branch("c"),
        lambda ds: ds.create_branch("c", "t"),
        lambda ds: ds.create_branch("c/d", ("b", None)),
        lambda ds: ds.checkout_version(("b", None)).create_branch("c"),
        lambda ds: ds.branches.replace_metadata("b", {"k": "v"}),
        lambda ds: ds.update_config({"a": "1", "b": "2"}),
        lambda ds: ds.update_metadata({"a": "1"}),
        lambda ds: ds.update_schema_metadata({"a": "1"}),
        lambda ds: ds.update_field_metadata({"x": {"a": "1"}}),
        lambda ds: ds.update_field_metadata({"nope": {"a": "1"}}),
        lambda ds: (ds.update_config({"a": "1"}), ds.update_config({"b": "2"}, replace=True)),
        lambda ds: (ds.update_config({"a": "1"}), ds.delete_config_keys(["a"])),
        lambda ds: ds.replace_schema_metadata({"z": "1"}),
        lambda ds: ds.replace_field_metadata("x", {"z": "1"}),
        lambda ds: ds.migrate_manifest_paths_v2(),
        lambda ds: (
            ds.branches.delete("b") if "on-b" not in ds.tags.list() else ds.tags.delete("on-b"),
            ds.branches.list() and ds.branches.delete("b"),
            ds.cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False),
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_change_by_either_leaves_the_same_table(table: str, tmp_path: Path, change: Callable[[Any], object]) -> None:
    copies = []
    for library in (lancelet, lance):
        path = str(tmp_path / library.__name__)
        shutil.copytree(table, path)
        copies.append((library, path))

    def changed(library: Any, path: str) -> object:
        change(library.dataset(path))
        # What came of it is told by one reader for both.
        seen = lance.dataset(path)
        tags = {name: (item["branch"], item["version"], item["metadata"]) for name, item in seen.tags.list().items()}
        branches = {
            name: (item["parent_branch"], item["parent_version"], item["metadata"])
            for name, item in seen.branches.list().items()
        }
        numbers = [item["version"] for item in seen.versions()]
        settings = seen.config(), seen.metadata, seen.schema_metadata, str(seen.schema)
        return numbers, tags, branches, settings, sorted(seen.to_table()["x"].to_pylist())

    assert disagreement(lambda: changed(*copies[0]), lambda: changed(*copies[1])) is None


@pytest.mark.parametrize("reference", [1, "t", "on-b", ("b", None), 99], ids=repr)
@pytest.mark.parametrize("kind", ["shallow_clone", "deep_clone"])
def test_clones_of_either_are_read_by_the_other(table: str, tmp_path: Path, kind: str, reference: Any) -> None:
    def cloned(library: Any, reader: Any) -> object:
        target = tmp_path / f"{library.__name__}.lance"
        made = getattr(library.dataset(table), kind)(target, reference)
        seen = reader.dataset(target)
        return made.version, seen.version, sorted(seen.to_table()["x"].to_pylist())

    if kind == "deep_clone" and reference in ("on-b", ("b", None)):
        # They look for the files of a branch in the table's own folder alone, or the other way round.
        assert cloned(lancelet, lance)[2] == sorted(lancelet.dataset(table, "on-b").to_table()["x"].to_pylist())
        return
    assert disagreement(lambda: cloned(lancelet, lance), lambda: cloned(lance, lancelet)) is None


def test_both_explain_the_same_cleanup(table: str) -> None:
    lance.dataset(table).tags.delete("on-b")
    lance.dataset(table).branches.delete("b")
    for path in list((Path(table) / "data").iterdir()):
        shutil.copy(path, path.with_name(f"x{path.name}"))

    def explained(library: Any, **options: Any) -> object:
        found = library.dataset(table).explain_cleanup_old_versions(
            retain_versions=1, include_files=True, error_if_tagged_old_versions=False, **options
        )
        files = sorted((Path(item.path).name, item.kind, item.size_bytes) for item in found.candidate_files)
        stats = found.stats
        names = ("bytes_removed", "old_versions", "data_files_removed", "transaction_files_removed")
        branches = [(item.name, item.referenced_version) for item in found.referenced_branches]
        return (
            found.read_version, files, [getattr(stats, name) for name in names], branches,
            found.candidate_files_truncated, found.candidate_file_limit,
        )  # fmt: skip

    for options in ({}, {"delete_unverified": True}, {"max_files": 1, "delete_unverified": True}):
        ours, theirs = explained(lancelet, **options), explained(lance, **options)
        if "max_files" in options:
            ours, theirs = (*ours[:1], *ours[2:]), (*theirs[:1], *theirs[2:])  # type: ignore[index]
        assert ours == theirs
