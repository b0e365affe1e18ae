"""Histories through the public API: two tables get the same changes, each change from one implementation in one table
and from the other in the other; after every step both tables hold the same, whoever reads them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancelet
from lancelet.testing.agreement import Outcome, normal, outcome
from lancelet.testing.servers import ServedStore

LINEAGE = ["_row_created_at_version", "_row_last_updated_at_version"]
POINT = pa.struct([("x", pa.int32()), ("y", pa.string())])
SCHEMA = pa.schema(
    [("u", pa.int64()), ("k", pa.int64()), ("a", pa.int32()), ("s", pa.string()), ("f", pa.float64()), ("p", POINT)]
)
#: Kinds of changes, the usual ones more often.
CHANGES = [
    "append",
    "append",
    "delete",
    "update",
    "update",
    "merge",
    "merge",
    "merge",
    "add",
    "drop",
    "rename",
    "cast",
    "restore",
    "overwrite",
    "tag",
    "compact",
]
CHANGES += ["index", "branch", "config"]
#: What a step does to a dataset of either implementation: it gives what the call gave.
Step = Callable[[Any], object]


class History:
    """Two tables, and a stream of changes to both."""

    def __init__(self, places: tuple[str, str], seed: int, *, stable: bool, options: Mapping[str, str] | None = None):
        self.places, self.stable, self.options = places, stable, options
        self.draw = random.Random(f"{seed} {stable}")
        self.next_key = self.columns_made = 0
        self.told: list[str] = []
        self.ids: dict[str, dict[int, int]] = {}
        version = self.draw.choice(["2.1", "2.2"])
        rows = self.rows(self.new_keys(self.draw.randrange(5, 40)))
        settings = {"max_rows_per_file": self.draw.randrange(4, 20), "enable_stable_row_ids": stable}
        for module, place in zip((lance, lancelet), places, strict=True):
            module.write_dataset(  # type: ignore[attr-defined]
                rows, place, data_storage_version=version, storage_options=options, **settings
            )

    def opened(self, module: Any, place: str, version: Any = None) -> Any:
        return module.dataset(place, version=version, storage_options=self.options)

    def new_keys(self, count: int) -> list[int]:
        self.next_key += count
        return list(range(self.next_key - count, self.next_key))

    def rows(self, keys: list[int], schema: pa.Schema = SCHEMA) -> pa.Table:
        """Rows of new numbers ``u`` and of given keys; other columns at random, as their types want them."""

        def value(field: pa.Field) -> Any:
            if self.draw.random() < 0.15:
                return None
            number = self.draw.randrange(10)
            if pa.types.is_struct(field.type):
                return {"x": number, "y": f"y{number}"}
            return f"s{number}" if pa.types.is_string(field.type) else number

        made = []
        for key in keys:
            row = {field.name: value(field) for field in schema}
            self.unique = getattr(self, "unique", -1) + 1
            made.append(row | {"u": self.unique, "k": key})
        return pa.Table.from_pylist(made, schema)

    def condition(self) -> str:
        number = self.draw.randrange(10)
        return self.draw.choice(
            [
                f"a > {number}",
                f"NOT (a = {number})",
                f"k % {number + 2} = 1",
                f"s IN ('s{number}', 's1') OR a IS NULL",
                f"p.x >= {number}",
                f"f < {number}.5 AND s IS NOT NULL",
                f"k BETWEEN {number} AND {number * 3}",
                f"s LIKE '%{number}'",
                "false",
            ]
        )

    def step(self, dataset: Any) -> tuple[str, Step]:
        """A change at random: its name, and what it does."""
        name = self.draw.choice(CHANGES)
        made: Step | None = getattr(self, f"_{name}")(dataset)
        return (name, made) if made is not None else self.step(dataset)

    def _append(self, dataset: Any) -> Step:
        rows = self.rows(self.new_keys(self.draw.randrange(1, 15)), dataset.schema)
        return lambda table: table.insert(rows)

    def _overwrite(self, dataset: Any) -> Step | None:
        if self.draw.random() < 0.5:
            return None
        rows = self.rows(self.new_keys(self.draw.randrange(5, 25)))
        return lambda table: table.insert(rows, mode="overwrite")

    def _delete(self, dataset: Any) -> Step:
        condition = self.condition()
        return lambda table: table.delete(condition)

    def _update(self, dataset: Any) -> Step:
        values = self.draw.choice([{"a": "a + 1"}, {"s": "'new'"}, {"f": "f * 2", "s": "s"}, {"a": "NULL"}, {"f": "a"}])
        where = self.draw.choice([self.condition(), self.condition(), None])
        return lambda table: table.update(values, where=where)

    def _merge(self, dataset: Any) -> Step:
        keys = [self.draw.randrange(self.next_key) for _ in range(self.draw.randrange(1, 10))]
        source = self.rows([*dict.fromkeys(keys), *self.new_keys(2)], dataset.schema)
        matched = self.draw.choice(["update", "update", "if", "nothing", "fail", "delete"])
        inserts = matched in ("nothing", "fail") or self.draw.random() < 0.6
        gone = self.draw.choice([None, None, None, self.condition(), True])

        def merge(table: Any) -> object:
            builder = table.merge_insert("k")
            if matched in ("update", "if"):
                builder = builder.when_matched_update_all("source.a > target.a" if matched == "if" else None)
            if matched == "fail":
                builder = builder.when_matched_fail()
            if matched == "delete":
                builder = builder.when_matched_delete()
            if inserts:
                builder = builder.when_not_matched_insert_all()
            if gone is not None and matched != "delete":
                builder = builder.when_not_matched_by_source_delete(None if gone is True else gone)
            counts = builder.execute(source)
            return {key: counts[key] for key in ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")}

        return merge

    def _add(self, dataset: Any) -> Step:
        self.columns_made += 1
        name = f"c{self.columns_made}"
        text = self.draw.choice(["a * 2", "k + u", "CAST(a AS string)", "f", "s"])
        return lambda table: table.add_columns({name: text})

    def _made_columns(self, dataset: Any) -> list[str]:
        return [name for name in dataset.schema.names if name.startswith("c")]

    def _drop(self, dataset: Any) -> Step | None:
        made = self._made_columns(dataset)
        if not made:
            return None
        name = self.draw.choice(made)
        return lambda table: table.drop_columns([name])

    def _rename(self, dataset: Any) -> Step | None:
        made = self._made_columns(dataset)
        if not made:
            return None
        self.columns_made += 1
        change = {"path": self.draw.choice(made), "name": f"c{self.columns_made}"}
        return lambda table: table.alter_columns(change)

    def _cast(self, dataset: Any) -> Step | None:
        if dataset.schema.field("a").type == pa.int64():
            return None
        return lambda table: table.alter_columns({"path": "a", "data_type": pa.int64()})

    def _restore(self, dataset: Any) -> Step | None:
        if self.draw.random() < 0.4:
            return None
        version = self.draw.randrange(1, dataset.version + 1)
        return lambda table: table.checkout_version(version).restore()

    def _tag(self, dataset: Any) -> Step:
        name, version = f"t{self.draw.randrange(4)}", self.draw.randrange(1, dataset.version + 1)
        what = self.draw.choice(["create", "create", "update", "delete"])
        if what == "delete":
            return lambda table: table.tags.delete(name)
        return lambda table: getattr(table.tags, what)(name, version)

    def _branch(self, dataset: Any) -> Step:
        name, rows = f"b{self.draw.randrange(5)}", self.rows(self.new_keys(3), dataset.schema)

        def branch(table: Any) -> object:
            made = table.create_branch(name)
            made.insert(rows)
            made.delete("k % 2 = 0")
            return made.count_rows(), sorted(made.to_table(columns=["u"])["u"].to_pylist())

        return branch

    def _compact(self, dataset: Any) -> Step:
        def compact(table: Any) -> object:
            table.optimize.compact_files(target_rows_per_fragment=50)
            return None

        return compact

    def _index(self, dataset: Any) -> Step:
        column, kind = self.draw.choice([("k", "BTREE"), ("a", "BTREE"), ("s", "BITMAP")])
        return lambda table: table.create_scalar_index(column, kind, replace=True)

    def _config(self, dataset: Any) -> Step:
        word = f"w{self.draw.randrange(9)}"
        return lambda table: table.update_config({"word": word})

    def turn(self) -> None:
        """One change to both tables, then look at them."""
        name, change = self.step(self.opened(lance, self.places[0]))
        order = [lance, lancelet] if self.draw.random() < 0.5 else [lancelet, lance]
        given = [
            outcome(lambda module=module, place=place: change(self.opened(module, place)))
            for module, place in zip(order, self.places, strict=True)
        ]
        self.told.append(f"{name} by {order[0].__name__}, {order[1].__name__}: {given[0].value or given[0].error}")
        here, there = given if order[0] is lancelet else given[::-1]
        assert bool(here.raised) == bool(there.raised), (self.told, here, there)
        if name in ("delete", "merge", "update", "branch") and not here.raised:
            assert compared(here) == compared(there), (self.told, here, there)
        self.look(keeps=name not in ("overwrite", "restore") and not here.raised)

    def look(self, *, keeps: bool) -> None:
        """Both tables are the same to both; rows that stay keep their ids."""
        seen = [self.seen(module, place) for place in self.places for module in (lance, lancelet)]
        assert seen[0] == seen[1], self.told
        assert seen[2] == seen[3], self.told
        for what in ("schema", "rows", "version", "config", "tags", "indexes", "fragments"):
            assert seen[0][what] == seen[2][what], (what, self.told)
        for place, found in ((self.places[0], seen[0]), (self.places[1], seen[2])):
            ids = dict(zip(found["u"], found["ids"], strict=True))
            before = self.ids.get(place, {})
            if keeps and self.stable:
                changed = {unique for unique in ids.keys() & before.keys() if ids[unique] != before[unique]}
                assert not changed, (changed, self.told)
            self.ids[place] = ids

    def seen(self, module: Any, place: str) -> dict[str, Any]:
        """What a reader finds in a table."""
        dataset = self.opened(module, place)
        names = [*dataset.schema.names, *(LINEAGE if self.stable else [])]
        table = dataset.to_table(columns=names, with_row_id=True)
        numbers = sorted(random.Random(len(self.told)).sample(range(table.num_rows), min(5, table.num_rows)))
        taken = dataset.take(numbers, columns=["u", "s"])
        condition = random.Random(len(self.told)).choice(["a > 3", "s IS NULL OR k % 3 = 0", "p.x < 5"])
        kept = dataset.to_table(columns=["u"], filter=condition)["u"].to_pylist()
        assert dataset.count_rows() == table.num_rows
        assert dataset.count_rows(filter=condition) == len(kept)
        assert taken.to_pylist() == table.select(["u", "s"]).take(pa.array(numbers, pa.int64())).to_pylist()
        order = sorted(range(table.num_rows), key=lambda at: (table["u"][at].as_py(), at))
        ids = table["_rowid"].to_pylist()
        plain = table.drop_columns(["_rowid"]).to_pylist()
        return {
            "schema": normal(dataset.schema),
            "rows": [normal(plain[at]) for at in order],
            "u": [plain[at]["u"] for at in order],
            "ids": [ids[at] for at in order],
            "kept": sorted(kept),
            "version": dataset.version,
            "config": dataset.config(),
            "tags": {name: tag["version"] for name, tag in dataset.tags.list().items()},
            "indexes": sorted(index.name for index in dataset.describe_indices()),
            "fragments": sorted(fragment.count_rows() for fragment in dataset.get_fragments()),
        }


def compared(given: Outcome) -> object:
    """What calls give that is compared: the numbers of rows."""
    if isinstance(given.value, dict):
        return {key: value for key, value in given.value.items() if key.startswith("num_")}
    return given.value


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable-ids"])
@pytest.mark.parametrize("seed", range(4), ids=lambda seed: f"seed-{seed}")
def test_the_same_changes_leave_the_same_tables(tmp_path: Path, seed: int, stable: bool) -> None:
    history = History((str(tmp_path / "one"), str(tmp_path / "other")), seed, stable=stable)
    for _ in range(10):
        history.turn()


@pytest.mark.long
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable-ids"])
@pytest.mark.parametrize("seed", range(100, 140), ids=lambda seed: f"seed-{seed}")
def test_the_same_long_histories_leave_the_same_tables(tmp_path: Path, seed: int, stable: bool) -> None:
    history = History((str(tmp_path / "one"), str(tmp_path / "other")), seed, stable=stable)
    for _ in range(40):
        history.turn()


def test_the_same_changes_leave_the_same_tables_in_a_bucket(s3_server: ServedStore) -> None:
    place = s3_server.place()
    history = History((f"{place}/one", f"{place}/other"), 7, stable=True, options=s3_server.storage_options)
    for _ in range(5):
        history.turn()
