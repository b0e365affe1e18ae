"""Operations against pylance: one table made by it alone, one by turns; after every step both are the same to both."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lancelet.ops import alter, columns, delete, new_columns, write
from lancelet.ops.data_files import Limits
from lancelet.query.scan import CREATED_AT, LAST_UPDATED_AT, ROW_ADDRESS, ROW_ID, scan
from lancelet.storage import open_store
from lancelet.table.commit import commit
from lancelet.table.outcome import committed
from lancelet.table.snapshot import Snapshot, open_snapshot
from lancelet.table.tags import create_tag, list_tags
from lancelet.table.versions import restore_transaction
from lancelet.testing.servers import ServedStore

LINEAGE = [CREATED_AT, LAST_UPDATED_AT]
STEPS = 10
KINDS = {"a": pa.int32(), "b": pa.string(), "s": pa.struct([("x", pa.int64()), ("y", pa.list_(pa.float32()))])}


def values(kind: pa.DataType, count: int, draw: random.Random) -> pa.Array:
    """Values of a type, some of them null; but structs never are, since 2.0 files do not hold that."""

    def one(number: int) -> object:
        if draw.random() < 0.2 and not pa.types.is_struct(kind):
            return None
        if pa.types.is_struct(kind):
            return {"x": number, "y": None if draw.random() < 0.3 else [float(number)] * draw.randrange(3)}
        return f"text {number}" if pa.types.is_string(kind) else number

    return pa.array([one(number) for number in range(count)], kind)


def rows(schema: pa.Schema, first: int, count: int, draw: random.Random) -> pa.Table:
    """Rows for all columns of a schema; ``key`` counts on."""
    return pa.table(
        [
            pa.array(range(first, first + count)) if field.name == "key" else values(field.type, count, draw)
            for field in schema
        ],
        schema=pa.schema([(field.name, field.type) for field in schema]),
    )


def opened(root: str) -> Snapshot:
    return open_snapshot(open_store(root))


def dataset_of(root: str, **options: Any) -> Any:
    """What pylance opens; its annotations are narrower than what it takes."""
    return lance.dataset(root, **options)


class Pylance:
    """Each change as pylance makes it."""

    def append(self, root: str, table: pa.Table) -> None:
        lance.write_dataset(table, root, mode="append", max_rows_per_file=9)

    def overwrite(self, root: str, table: pa.Table) -> None:
        lance.write_dataset(table, root, mode="overwrite", max_rows_per_file=9)

    def delete(self, root: str, keys: range) -> None:
        dataset_of(root).delete(f"key >= {keys.start} AND key < {keys.stop}")

    def add(self, root: str, table: pa.Table) -> None:
        dataset_of(root).add_columns(table.to_reader(max_chunksize=4))

    def add_null(self, root: str, schema: pa.Schema) -> None:
        dataset_of(root).add_columns(schema)

    def drop(self, root: str, path: str) -> None:
        dataset_of(root).drop_columns([path])

    def rename(self, root: str, names: Mapping[str, str]) -> None:
        dataset_of(root).alter_columns(*({"path": path, "name": name} for path, name in names.items()))

    def cast(self, root: str, column: str) -> None:
        dataset_of(root).alter_columns({"path": column, "data_type": pa.int64()})

    def restore(self, root: str, version: int) -> None:
        dataset_of(root, version=version).restore()

    def tag(self, root: str, name: str) -> None:
        dataset = dataset_of(root)
        dataset.tags.create(name, dataset.version)


class Lancelet:
    """The same changes by our operations."""

    def append(self, root: str, table: pa.Table) -> None:
        committed(write.append(opened(root), table.to_reader(max_chunksize=5), limits=Limits(rows_per_file=9)))

    def overwrite(self, root: str, table: pa.Table) -> None:
        committed(write.overwrite(opened(root), table, limits=Limits(rows_per_file=9)))

    def delete(self, root: str, keys: range) -> None:
        found = scan(opened(root), ["key", ROW_ADDRESS]).read_all()
        wanted = pc.is_in(found["key"], pa.array(keys, pa.int64()))
        committed(delete.delete(opened(root), found.filter(wanted)[ROW_ADDRESS].to_numpy()))

    def add(self, root: str, table: pa.Table) -> None:
        committed(new_columns.add_columns(opened(root), table.to_reader(max_chunksize=4)))

    def add_null(self, root: str, schema: pa.Schema) -> None:
        committed(new_columns.add_null_columns(opened(root), schema))

    def drop(self, root: str, path: str) -> None:
        committed(columns.drop_columns(opened(root), [path]))

    def rename(self, root: str, names: Mapping[str, str]) -> None:
        committed(columns.rename_columns(opened(root), names))

    def cast(self, root: str, column: str) -> None:
        committed(alter.cast_column(opened(root), column, pa.int64()))

    def restore(self, root: str, version: int) -> None:
        snapshot = opened(root)
        committed(commit(snapshot, restore_transaction(snapshot, version)))

    def tag(self, root: str, name: str) -> None:
        create_tag(open_store(root), name, opened(root).version)


def chosen(root: str, step: int, draw: random.Random) -> tuple[str, object]:
    """A change that the table as it is allows, and what it is to be done with."""
    dataset = dataset_of(root)
    others = [name for name in dataset.schema.names if name != "key"]
    small = [name for name in others if dataset.schema.field(name).type == pa.int32()]
    first = 100 * step
    kind = draw.choice(list(KINDS.values()))
    choices: dict[str, object] = {
        "append": rows(dataset.schema, first, draw.randrange(1, 25), draw),
        "delete": range(low := 100 * draw.randrange(step + 1) + draw.randrange(20), low + draw.randrange(1, 30)),
        "restore": draw.randrange(1, dataset.version + 1),
        "tag": f"step-{step}",
        "add_null": pa.schema([(f"null{step}", kind)]),
        "overwrite": rows(pa.schema([("key", pa.int64()), *KINDS.items()]), first, 12, draw),
    }
    if dataset.count_rows():
        choices["add"] = pa.table({f"new{step}": values(kind, dataset.count_rows(), draw)})
    if others:
        choices["drop"] = draw.choice(others)
        choices["rename"] = {draw.choice(others): f"other{step}"}
    if small:
        choices["cast"] = draw.choice(small)
    weights = {"append": 4, "delete": 5, "add": 3, "overwrite": 0.5}
    change = draw.choices(list(choices), [weights.get(name, 1) for name in choices])[0]
    return change, choices[change]


def seen_by_pylance(root: str) -> tuple[object, ...]:
    """What pylance finds in a table: rows, their ids, addresses and versions, fields with their ids, tags."""
    dataset = dataset_of(root)
    names = [*dataset.schema.names, *(LINEAGE if dataset.has_stable_row_ids else [])]
    found = dataset.to_table(columns=names, with_row_id=True, with_row_address=True)
    fields = [(field.name(), field.id(), str(field)) for field in dataset.lance_schema.fields()]
    tags = {name: tag["version"] for name, tag in dataset.tags.list().items()}
    operations = [
        type(transaction.operation).__name__
        for version in dataset.versions()
        if (transaction := dataset.read_transaction(version["version"])) is not None
    ]
    return found.to_pydict(), found.schema, fields, tags, operations, dataset.version


def check_our_view(root: str, batch_size: int) -> None:
    """We read of the table what pylance reads."""
    snapshot, dataset = opened(root), dataset_of(root)
    lineage = LINEAGE if dataset.has_stable_row_ids else []
    names = [*dataset.schema.names, *lineage]
    expected = dataset.to_table(columns=names, with_row_id=True, with_row_address=True)
    ours = scan(snapshot, [*names, ROW_ID, ROW_ADDRESS], batch_size=batch_size).read_all()
    assert ours.select(expected.column_names).to_pydict() == expected.to_pydict()
    assert ours.select(dataset.schema.names).schema == dataset.schema
    assert snapshot.count_rows() == dataset.count_rows()
    known = {name: tag.version for name, tag in list_tags(open_store(root)).items()}
    assert known == {name: tag["version"] for name, tag in dataset.tags.list().items()}


def check_history(alone: str, turns: str, seed: int, stable: bool, version: Any, steps: int) -> None:
    """Make one history by pylance at ``alone`` and by turns at ``turns``; both find the same after every step."""
    draw = random.Random(f"{seed} {stable} {version}")
    first = rows(pa.schema([("key", pa.int64()), *KINDS.items()]), 0, 20, draw)
    lance.write_dataset(first, alone, enable_stable_row_ids=stable, data_storage_version=version, max_rows_per_file=9)
    limits = Limits(rows_per_file=9)
    made = write.create(open_store(turns), first, stable_row_ids=stable, data_storage_version=version, limits=limits)
    committed(made)
    done = []
    for step in range(1, steps + 1):
        change, argument = chosen(alone, step, draw)
        writer: Pylance | Lancelet = Lancelet() if draw.random() < 0.6 else Pylance()
        done.append((change, type(writer).__name__))
        for root, who in ((alone, Pylance()), (turns, writer)):
            getattr(who, change)(root, argument)
        assert seen_by_pylance(turns) == seen_by_pylance(alone), done
        check_our_view(turns, draw.choice([3, 8192]))
    check_our_view(alone, 1)


VERSIONS = pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable-ids"])


@VERSIONS
@STABLE
@pytest.mark.parametrize("seed", range(3), ids=lambda seed: f"seed-{seed}")
def test_a_history_of_operations_by_turns_is_that_of_pylance_alone(
    tmp_path: Path, seed: int, stable: bool, version: Any
) -> None:
    check_history(str(tmp_path / "alone"), str(tmp_path / "turns"), seed, stable, version, STEPS)


@pytest.mark.long
@VERSIONS
@STABLE
@pytest.mark.parametrize("seed", range(100, 120), ids=lambda seed: f"seed-{seed}")
def test_a_long_history_of_operations_by_turns_is_that_of_pylance_alone(
    tmp_path: Path, seed: int, stable: bool, version: Any
) -> None:
    check_history(str(tmp_path / "alone"), str(tmp_path / "turns"), seed, stable, version, 3 * STEPS)


@pytest.fixture
def bucket(s3_server: ServedStore, monkeypatch: pytest.MonkeyPatch) -> str:
    """A place on the S3 server that both reach by what the environment says."""
    for name, value in s3_server.storage_options.items():
        monkeypatch.setenv(f"AWS_{name.upper()}", value)
    return s3_server.place()


@STABLE
@pytest.mark.parametrize("seed", range(20, 22), ids=lambda seed: f"seed-{seed}")
def test_a_history_on_s3_by_turns_is_that_of_pylance_alone(
    tmp_path: Path, bucket: str, seed: int, stable: bool
) -> None:
    check_history(str(tmp_path / "alone"), bucket, seed, stable, "2.2", STEPS)
