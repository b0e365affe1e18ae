"""Histories against pylance: one table made by it alone, one by turns; after every step both read the same."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lancelet.format import operations as op
from lancelet.format import row_ids
from lancelet.format.fragments import Fragment
from lancelet.format.names import NamingScheme
from lancelet.format.transaction import Transaction
from lancelet.query.scan import scan
from lancelet.storage import open_store
from lancelet.table.commit import commit, create_table
from lancelet.table.index_upkeep import FRAGMENT_REUSE
from lancelet.table.outcome import Committed, committed
from lancelet.table.snapshot import open_snapshot
from lancelet.testing.faults import Fault, FaultyStore, Killed, Kind
from lancelet.testing.servers import ServedStore
from lancelet.testing.tables import write_fragment, write_table, written_deletion

LINEAGE = ["_row_created_at_version", "_row_last_updated_at_version"]


def rows(first: int, count: int) -> pa.Table:
    """Rows of two columns; the first is a key."""
    return pa.table({"key": range(first, first + count), "value": [float(number) for number in range(count)]})


def addresses(root: Path, predicate: str) -> dict[int, list[int]]:
    """Physical offsets of the rows that pylance finds, by fragment."""
    found = lance.dataset(root).to_table(columns=["key"], filter=predicate, with_row_address=True)
    result: dict[int, list[int]] = {}
    for address in found["_rowaddr"].to_pylist():
        result.setdefault(address >> 32, []).append(address & 0xFFFFFFFF)
    return result


def without(root: Path, predicate: str) -> tuple[list[Fragment], list[int]]:
    """The fragments of the newest version without some rows: those changed, and those left with none."""
    snapshot = open_snapshot(open_store(root))
    changed, gone = [], []
    before = {item.fragment_id: item for item in lance.dataset(root).get_fragments()}
    for number, offsets in addresses(root, predicate).items():
        live = before[number].to_table(columns=["key"], with_row_address=True)["_rowaddr"].to_pylist()
        kept = {address & 0xFFFFFFFF for address in live} - set(offsets)
        everything = set(range(before[number].physical_rows))
        if kept:
            changed.append(written_deletion(snapshot, number, sorted(everything - kept)))
        else:
            gone.append(number)
    return changed, gone


def field_ids(root: Path, table: pa.Table) -> tuple[int, ...]:
    schema = open_snapshot(open_store(root)).schema
    return tuple(field.id for name in table.column_names if (field := schema.find(name)) is not None)


class Pylance:
    """Each change as pylance makes it."""

    def append(self, root: Path, table: pa.Table) -> None:
        lance.write_dataset(table, root, mode="append")

    def delete(self, root: Path, predicate: str) -> None:
        lance.dataset(root).delete(predicate)

    def update(self, root: Path, predicate: str) -> None:
        lance.dataset(root).update({"value": "value + 1000"}, where=predicate)

    def configure(self, root: Path, key: str) -> None:
        lance.dataset(root).update_config({key: "1"})

    def restore(self, root: Path, version: int) -> None:
        lance.dataset(root, version=version).restore()

    def overwrite(self, root: Path, table: pa.Table) -> None:
        lance.write_dataset(table, root, mode="overwrite")

    def compact(self, root: Path, _: object) -> None:
        lance.dataset(root).optimize.compact_files()


class Lancelet(Pylance):
    """The same changes as transactions of ours; compaction is left to pylance."""

    def commit(self, root: Path, operation: op.Operation) -> None:
        snapshot = open_snapshot(open_store(root))
        committed(commit(snapshot, Transaction(snapshot.version, operation)))

    def append(self, root: Path, table: pa.Table) -> None:
        self.commit(root, op.Append((write_fragment(open_store(root), table, field_ids=field_ids(root, table)),)))

    def delete(self, root: Path, predicate: str) -> None:
        changed, gone = without(root, predicate)
        self.commit(root, op.Delete(tuple(changed), tuple(gone), predicate))

    def update(self, root: Path, predicate: str) -> None:
        stable = lance.dataset(root).has_stable_row_ids
        found = lance.dataset(root).to_table(filter=predicate, with_row_id=True)
        changed, gone = without(root, predicate)
        table = found.select(["key", "value"])
        table = table.set_column(1, "value", pc.add(table["value"], 1000.0))
        moved = write_fragment(open_store(root), table, field_ids=field_ids(root, table))
        if stable:
            ids = row_ids.PlainArray(row_ids.PackedArray.of(np.array(found["_rowid"].to_pylist(), np.uint64)))
            moved = replace(moved, inline_row_ids=row_ids.write_row_ids([ids]))
        value = field_ids(root, table)[1]
        self.commit(root, op.Update(tuple(gone), tuple(changed), (moved,), fields_for_preserving_frag_bitmap=(value,)))

    def configure(self, root: Path, key: str) -> None:
        self.commit(root, op.UpdateConfig(op.MapUpdate(((key, "1"),))))

    def restore(self, root: Path, version: int) -> None:
        self.commit(root, op.Restore(version))

    def overwrite(self, root: Path, table: pa.Table) -> None:
        fragment = write_fragment(open_store(root), table)
        schema = replace(open_snapshot(open_store(root)).schema, metadata={})
        self.commit(root, op.Overwrite((fragment,), schema))


def content(root: Path) -> tuple[object, ...]:
    """What there is to see of a table: rows, ids, lineage, config, kinds of fragments, and its history."""
    table = lance.dataset(root)
    columns = ["key", "value", *(LINEAGE if table.has_stable_row_ids else [])]
    found = table.to_table(columns=columns, with_row_id=True, with_row_address=True)
    kinds = [
        type(transaction.operation).__name__
        for version in table.versions()
        if (transaction := table.read_transaction(version["version"])) is not None
    ]
    return found.to_pydict(), table.config(), table.count_rows(), len(table.versions()), kinds


def check_ours(root: Path) -> None:
    """Our own view of the newest version says the same as pylance's."""
    snapshot, table = open_snapshot(open_store(root)), lance.dataset(root)
    assert snapshot.version == table.version == table.latest_version
    assert snapshot.count_rows() == table.count_rows()
    assert dict(snapshot.manifest.config) == table.config()
    assert snapshot.manifest.fragments.ids().tolist() == [item.fragment_id for item in table.get_fragments()]


#: Lineage in data files as soon as there is any.
SPILL = {"lance.row_lineage.spill": "true", "lance.row_lineage.inline_max_bytes": "0"}
CHANGES = ["append", "append", "delete", "update", "update", "update", "configure", "restore", "overwrite", "compact"]


@pytest.mark.parametrize(("stable", "config"), [(False, {}), (True, {}), (True, SPILL)], ids=["no", "yes", "spilled"])
@pytest.mark.parametrize("seed", range(4))
def test_a_history_by_turns_is_the_history_of_pylance_alone(
    tmp_path: Path, seed: int, stable: bool, config: dict[str, str]
) -> None:
    alone, turns = tmp_path / "alone", tmp_path / "turns"
    draw = random.Random(seed)
    lance.write_dataset(rows(0, 20), alone, enable_stable_row_ids=stable)
    write_table(open_store(turns), rows(0, 20), stable_row_ids=stable)
    if config:
        lance.dataset(alone).update_config(config)
        lance.dataset(turns).update_config(config)
    first = 20
    for step in range(14):
        writer = Lancelet() if draw.random() < 0.6 else Pylance()
        change = draw.choice(CHANGES)
        low = draw.randrange(first)
        arguments: dict[str, object] = {
            "append": rows(first, 7),
            "overwrite": rows(first, 7),
            "delete": f"key >= {low} and key < {low + 4}",
            "update": f"key >= {low} and key < {low + 6}",
            "configure": f"key{step}",
            "restore": draw.randrange(1, lance.dataset(alone).version + 1),
            "compact": None,
        }
        argument = arguments[change]
        if change in ("delete", "update") and lance.dataset(alone).count_rows(str(argument)) == 0:
            continue
        first += 7
        for root, who in ((alone, Pylance()), (turns, writer)):
            getattr(who, change)(root, argument)
        assert content(turns) == content(alone), (step, change, type(writer).__name__)
        check_ours(turns)
        check_ours(alone)
    assert not config or open_snapshot(open_store(turns)).manifest.config.items() >= config.items()


#: Rows are moved out of fragments whose lineage spilled: written by pylance, and by compaction; some of them twice.
SPILLED_STEPS = [
    (Pylance, "append", rows(20, 10)),
    (Pylance, "update", "key >= 15 and key < 25"),
    (Lancelet, "update", "key >= 18 and key < 23"),
    (Pylance, "update", "key >= 3 and key < 20"),
    (Lancelet, "delete", "key = 4 or key = 19"),
    (Lancelet, "update", "key >= 2 and key < 22"),
    (Pylance, "compact", None),
    (Lancelet, "append", rows(30, 5)),
    (Lancelet, "update", "key >= 21 and key < 33"),
    (Lancelet, "delete", "key = 22 or key = 23"),
    (Pylance, "compact", None),
    (Lancelet, "update", "key >= 0"),
    (Pylance, "update", "key >= 10"),
]


def test_rows_that_spilled_keep_their_lineage_when_they_are_moved(tmp_path: Path) -> None:
    alone, turns = tmp_path / "alone", tmp_path / "turns"
    for root in (alone, turns):
        lance.write_dataset(rows(0, 20), root, enable_stable_row_ids=True).update_config(SPILL)
    spilled = 0
    for step, (who, change, argument) in enumerate(SPILLED_STEPS):
        getattr(Pylance(), change)(alone, argument)
        getattr(who(), change)(turns, argument)
        assert content(turns) == content(alone), (step, change)
        check_ours(turns)
        spilled += open_snapshot(open_store(turns)).manifest.fragments.spilled()
    assert spilled > 6
    expected = lance.dataset(turns).to_table(columns=["key", *LINEAGE], with_row_id=True)
    ours = scan(open_snapshot(open_store(turns)), ["key", *LINEAGE, "_rowid"]).read_all()
    assert ours.to_pydict() == expected.to_pydict()


@pytest.mark.parametrize("scheme", list(NamingScheme))
def test_pylance_goes_on_where_we_began_by_either_naming(tmp_path: Path, scheme: NamingScheme) -> None:
    store = open_store(tmp_path / "table")
    schema = write_table(open_store(tmp_path / "other"), rows(0, 1)).manifest.schema
    operation = op.Overwrite((write_fragment(store, rows(0, 5)),), schema)
    committed(create_table(store, Transaction(0, operation), scheme=scheme))
    lance.write_dataset(rows(5, 5), tmp_path / "table", mode="append")
    Lancelet().append(tmp_path / "table", rows(10, 5))
    assert open_snapshot(store).scheme is scheme
    assert lance.dataset(tmp_path / "table").to_table()["key"].to_pylist() == list(range(15))
    assert open_snapshot(store).schema == schema


def test_a_detached_version_of_ours_opens_in_pylance(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    write_table(store, rows(0, 5))
    snapshot = open_snapshot(store)
    made = commit(snapshot, Transaction(1, op.Append((write_fragment(store, rows(5, 5)),))), detached=True)
    assert isinstance(made, Committed)
    assert lance.dataset(tmp_path, version=made.version).count_rows() == 10
    assert lance.dataset(tmp_path).count_rows() == 5


def _pylance_writer(root: str, first: int, results: multiprocessing.Queue[int]) -> None:
    for number in range(6):
        lance.write_dataset(rows(first + number, 1), root, mode="append")
        results.put(first + number)


def _our_writer(root: str, first: int, results: multiprocessing.Queue[int]) -> None:
    store = open_store(root)
    for number in range(6):
        operation = op.Append((write_fragment(store, rows(first + number, 1)),))
        # Now and then the process dies in the middle, and its successor tries again with what it finds.
        faults = [Fault(kind=Kind.KILL, verb="put_if_absent", after=number % 2 == 0)] if number % 3 == 0 else []
        snapshot = replace(open_snapshot(store), store=FaultyStore(store, faults))
        transaction = Transaction(snapshot.version, operation)
        try:
            outcome = commit(snapshot, transaction)
        except Killed:
            outcome = commit(replace(snapshot, store=store), transaction)
        if isinstance(outcome, Committed):
            results.put(first + number)


def test_writers_of_both_implementations_racing_in_processes_lose_nothing(tmp_path: Path) -> None:
    write_table(open_store(tmp_path), rows(0, 1))
    spawn = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[int] = spawn.Queue()
    work: list[Callable[[str, int, multiprocessing.Queue[int]], None]] = [_pylance_writer, _our_writer] * 2
    writers = [
        spawn.Process(target=target, args=(str(tmp_path), 100 * (place + 1), results))
        for place, target in enumerate(work)
    ]
    for writer in writers:
        writer.start()
    acknowledged = [results.get(timeout=120) for _ in range(24)]
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    stored = lance.dataset(tmp_path).to_table()["key"].to_pylist()
    assert sorted(stored) == [0, *sorted(acknowledged)]
    assert open_snapshot(open_store(tmp_path)).version == 25


def test_writers_of_both_implementations_racing_on_s3_lose_nothing(s3_server: ServedStore) -> None:
    uri, options = s3_server.place(), s3_server.storage_options
    write_table(open_store(uri, storage_options=options), rows(0, 1))
    acknowledged: list[int] = []

    def ours(first: int) -> None:
        store = open_store(uri, storage_options=options)
        for number in range(first, first + 4):
            snapshot = open_snapshot(store)
            operation = op.Append((write_fragment(store, rows(number, 1)),))
            if isinstance(commit(snapshot, Transaction(snapshot.version, operation)), Committed):
                acknowledged.append(number)

    def theirs(first: int) -> None:
        for number in range(first, first + 4):
            lance.write_dataset(rows(number, 1), uri, mode="append", storage_options=options)
            acknowledged.append(number)

    threads = [
        threading.Thread(target=work, args=(100 * place,)) for place, work in enumerate([ours, theirs] * 2, start=1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(acknowledged) == 16
    stored = lance.dataset(uri, storage_options=options).to_table()["key"].to_pylist()
    assert sorted(stored) == [0, *sorted(acknowledged)]
    assert open_snapshot(open_store(uri, storage_options=options)).version == 17


def test_a_rewrite_that_leaves_indexes_as_they_are_keeps_what_tells_where_rows_went(tmp_path: Path) -> None:
    before, theirs, ours = tmp_path / "before", tmp_path / "theirs", tmp_path / "ours"
    lance.write_dataset(rows(0, 10), before)
    lance.write_dataset(rows(10, 10), before, mode="append").create_scalar_index("key", "BTREE")
    shutil.copytree(before, theirs)
    lance.dataset(theirs).optimize.compact_files(defer_index_remap=True)
    made = open_snapshot(open_store(theirs))
    transaction = made.transaction()
    assert transaction is not None
    shutil.copytree(theirs, ours)
    shutil.rmtree(ours / "_versions")
    shutil.copytree(before / "_versions", ours / "_versions")
    Lancelet().commit(ours, op.ReserveFragments(made.manifest.max_fragment_id or 0))
    reuse = next(item for item in made.indexes() if item.name == FRAGMENT_REUSE)
    snapshot = open_snapshot(open_store(ours), version=transaction.read_version)
    committed(commit(snapshot, transaction, reuse_index=reuse))
    found = open_snapshot(open_store(ours))
    assert list(found.manifest.fragments) == list(made.manifest.fragments)
    assert found.indexes() == made.indexes()
    assert lance.dataset(ours).to_table(filter="key = 15").num_rows == 1
