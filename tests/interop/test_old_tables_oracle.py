"""Tables that pylance releases from 0.4 to 1.0 made: what we write into them is what pylance 14 writes and reads."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lancelet.errors import LanceletError
from lancelet.format import operations as op
from lancelet.format.manifest import Manifest, data_version
from lancelet.format.versions import FileVersion
from lancelet.ops import columns, delete, new_columns, write
from lancelet.rows.addresses import join
from lancelet.storage import open_store
from lancelet.table.branches import create_branch
from lancelet.table.clone import deep_clone, shallow_clone
from lancelet.table.commit import commit
from lancelet.table.outcome import committed
from lancelet.table.snapshot import Snapshot, open_snapshot
from lancelet.table.versions import restore_transaction
from lancelet.testing.tables import carry_out

GOLDEN = Path(__file__).parents[1] / "golden"
TABLES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
ROWS = 300


def opened(root: Path | str) -> Snapshot:
    return open_snapshot(open_store(root))


def known(name: str) -> pa.Table:
    """What the release that made a table read from it."""
    with pa.OSFile(f"{GOLDEN / name}.arrow") as file:
        return pa.ipc.open_file(file).read_all()


def added(name: str) -> pa.Table:
    """A new column beside the table's rows."""
    return pa.table({"new": [f"n{number}" for number in range(ROWS)]})


def wider(root: Path) -> None:
    table: Any = lance.dataset(root)
    table.add_columns(added(root.name).to_reader())


def configured(root: Path) -> None:
    committed(carry_out(open_store(root), op.UpdateConfig(op.MapUpdate((("written", "again"),)))))


def dataset_of(root: Path) -> Any:
    return lance.dataset(root)


Change = Callable[[Path], object]
#: The same changes by us and by pylance; the last are of rows that we write, which 0.1 tables refuse.
CHANGES: dict[str, tuple[Change, Change]] = {
    "config": (configured, lambda root: dataset_of(root).update_config({"written": "again"})),
    "delete": (
        lambda root: committed(delete.delete(opened(root), join(0, np.arange(10, 40)), predicate="i32 >= 10")),
        lambda root: dataset_of(root).delete("i32 >= 10 and i32 < 40"),
    ),
    "delete all": (
        lambda root: committed(delete.delete(opened(root), join(0, np.arange(ROWS)), predicate="true")),
        lambda root: dataset_of(root).delete("true"),
    ),
    "drop": (
        lambda root: committed(columns.drop_columns(opened(root), ["f32", "st"])),
        lambda root: dataset_of(root).drop_columns(["f32", "st"]),
    ),
    "rename": (
        lambda root: committed(columns.rename_columns(opened(root), {"i32": "number"})),
        lambda root: dataset_of(root).alter_columns({"path": "i32", "name": "number"}),
    ),
    "restore": (
        lambda root: committed(commit(opened(root), restore_transaction(opened(root), 1))),
        lambda root: dataset_of(root).checkout_version(1).restore(),
    ),
    "append": (
        lambda root: committed(write.append(opened(root), known(root.name).slice(0, 20))),
        lambda root: lance.write_dataset(known(root.name).slice(0, 20), root, mode="append"),
    ),
    "add": (lambda root: committed(new_columns.add_columns(opened(root), added(root.name))), wider),
    "overwrite": (
        lambda root: committed(write.overwrite(opened(root), known(root.name).slice(0, 20))),
        lambda root: lance.write_dataset(known(root.name).slice(0, 20), root, mode="overwrite"),
    ),
}
WRITES_ROWS = ("append", "add", "overwrite")


def copies(name: str, folder: Path) -> tuple[Path, Path]:
    """Two copies of a table."""
    one, other = (folder / whose / name for whose in ("ours", "theirs"))
    return Path(shutil.copytree(GOLDEN / name, one)), Path(shutil.copytree(GOLDEN / name, other))


def plain(table: pa.Table) -> pa.Table:
    """The rows without dictionaries, which implementations may merge and order as they like."""
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, table[field.name].cast(field.type.value_type))
    return table


def said(root: Path) -> tuple[object, ...]:
    """What the newest manifest says of rows and files, but for names and sizes of files written now."""
    manifest: Manifest = opened(root).manifest
    fragments = [
        replace(
            item,
            files=tuple(replace(file, path="", file_size=None) for file in item.files),
            deletion_file=item.deletion_file and replace(item.deletion_file, id=0),
        )
        for item in manifest.fragments
    ]
    return fragments, manifest.data_format, manifest.max_fragment_id, manifest.reader_flags, manifest.writer_flags


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", TABLES)
def test_a_change_of_an_old_table_is_the_change_that_pylance_makes(tmp_path: Path, name: str, change: str) -> None:
    ours, theirs = copies(name, tmp_path)
    by_us, by_them = CHANGES[change]
    if change in WRITES_ROWS and data_version(opened(ours).manifest) is FileVersion.V0_1:
        with pytest.raises(LanceletError, match=r"0\.1"):
            by_us(ours)
        assert dataset_of(ours).version == 1
        return
    by_us(ours)
    if change == "restore" and data_version(opened(ours).manifest) is FileVersion.V0_1:
        # pylance 14.0.2 does not find the values of dictionaries then.
        assert plain(dataset_of(ours).to_table()) == plain(known(name))
        return
    by_them(theirs)
    assert plain(dataset_of(ours).to_table()) == plain(dataset_of(theirs).to_table())
    assert dataset_of(ours).version == dataset_of(theirs).version
    found, expected = said(ours), said(theirs)
    if change == "delete all":
        # The id of the last fragment is not given again by us, where old manifests did not say which was the highest.
        found, expected = (*found[:2], *found[3:]), (*expected[:2], *expected[3:])
    assert found == expected
    # And once more, now that the manifest is ours.
    configured(ours)
    assert plain(dataset_of(ours).to_table()) == plain(dataset_of(theirs).to_table())


@pytest.mark.parametrize("name", TABLES)
def test_old_tables_are_cloned_and_branched_with_all_that_they_hold(tmp_path: Path, name: str) -> None:
    root, _ = copies(name, tmp_path)
    snapshot, wanted = opened(root), plain(known(name))
    shallow_clone(snapshot, open_store(tmp_path / "shallow"))
    deep_clone(snapshot, open_store(tmp_path / "deep"))
    create_branch(snapshot, "b")
    for place in (tmp_path / "shallow", tmp_path / "deep", root / "tree/b"):
        configured(place)
        assert plain(dataset_of(place).to_table()) == wanted, place
    assert plain(dataset_of(root).to_table()) == wanted
