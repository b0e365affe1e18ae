"""Changes of tables: appends, deletes, updates, merges and new columns by lancelet against pylance.

Each run works on a copy of a table that pylance wrote, made before the time is taken. What is compared are the rows.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.corpus import DIRECTORY
from bench.harness import Case

__all__ = ["ROWS", "Change", "State", "case", "cases", "made", "rows", "theirs"]

ROWS = int(1_000_000 * float(os.environ.get("BENCH_SCALE", "1")))

#: The path of a table to be changed.
State = Any
Change = Callable[[str], object]
_numbers = count(1)


def cases() -> Iterator[Case[State]]:
    """All kinds of changes."""
    yield case("append 1,000 rows", plain, ours_append, theirs_append)
    yield case("delete 1 %", plain, ours_delete, theirs_delete)
    yield case("update 1 %", plain, ours_update("r < 0.01"), theirs_update("r < 0.01"))
    yield case("update all rows", plain, ours_update(None), theirs_update(None))
    for number in (1_000, 100_000):
        yield case(f"merge {number:,} rows", plain, ours_merge(number), theirs_merge(number))
    yield case("add a column by SQL", plain, ours_column, theirs_column)


def rows() -> pa.Table:
    """A key, a random number, and a text."""
    draw = np.random.default_rng(7)
    return pa.table(
        {"k": np.arange(ROWS), "r": draw.random(ROWS), "s": pa.array([f"text {number}" for number in range(ROWS)])}
    )


def made(name: str, make: Callable[[str], None]) -> Path:
    path = DIRECTORY / f"changes-{name}-{ROWS}"
    if not path.exists():
        DIRECTORY.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(f"{path}.new", ignore_errors=True)
        make(f"{path}.new")
        Path(f"{path}.new").rename(path)
    return path


@lru_cache
def plain() -> Path:
    """One fragment."""
    import lance

    return made("plain", lambda path: lance.write_dataset(rows(), path) and None)


def case(name: str, table: Callable[[], Path], ours: Change, theirs: Change) -> Case[State]:
    """One change by both."""

    def fresh(_: int) -> str:
        # A new name each time: what the process keeps of a file that is gone is not to go during the next run.
        for old in DIRECTORY.glob(f"changed-{os.getpid()}-*"):
            shutil.rmtree(old, ignore_errors=True)
        path = DIRECTORY / f"changed-{os.getpid()}-{next(_numbers)}"
        shutil.copytree(table(), path)
        return str(path)

    def contender(change: Change) -> Callable[[State], object]:
        def changed(path: State) -> object:
            change(path)
            return path

        return changed

    def prepare() -> None:
        import lance  # noqa: F401

        import lancelet.ops.merge.merge  # noqa: F401

    return Case(
        name,
        fresh,
        {"lancelet": contender(ours), "pylance": contender(theirs)},
        "pylance",
        compared=found,
        equal=lambda one, other: bool(one == other),
        prepare={"lancelet": prepare, "pylance": prepare},
        goal=1,
    )


def found(path: object) -> pa.Table:
    """The rows of a table in the order of their keys."""
    import lance

    dataset: Any = lance.dataset(str(path))
    table: pa.Table = dataset.to_table().sort_by([("k", "ascending"), ("r", "ascending")])
    return table.combine_chunks()


def opened(path: str) -> Any:
    """Our snapshot of a table."""
    from lancelet.storage import open_store
    from lancelet.table.snapshot import open_snapshot

    return open_snapshot(open_store(path))


def theirs(path: str) -> Any:
    """Pylance's dataset."""
    import lance

    return lance.dataset(path)


@lru_cache
def small() -> pa.Table:
    """Rows to append."""
    return rows().slice(0, 1_000).combine_chunks()


def ours_append(path: str) -> object:
    from lancelet.ops.writing import write

    return write(opened(path), small(), "append")


def theirs_append(path: str) -> object:
    import lance

    return lance.write_dataset(small(), path, mode="append")


def ours_delete(path: str) -> object:
    from lancelet.ops.deletion import delete_where

    return delete_where(opened(path), "r < 0.01")


def theirs_delete(path: str) -> object:
    return theirs(path).delete("r < 0.01")


def ours_update(where: str | None) -> Change:
    def change(path: str) -> object:
        from lancelet.ops.update import update

        return update(opened(path), {"r": "r + 1"}, where)

    return change


def theirs_update(where: str | None) -> Change:
    return lambda path: theirs(path).update({"r": "r + 1"}, where=where)


@lru_cache
def source(rows: int) -> pa.Table:
    """Rows half of whose keys are there."""
    keys = np.random.default_rng(rows).choice(2 * ROWS, rows, replace=False)
    return pa.table({"k": keys, "r": np.zeros(rows), "s": pa.array(["new"] * rows)})


def ours_merge(number: int) -> Change:
    def change(path: str) -> object:
        from lancelet.ops.merge.merge import MergeRequest, merge_insert

        return merge_insert(opened(path), source(number), MergeRequest.upsert(("k",)))

    return change


def theirs_merge(number: int) -> Change:
    def change(path: str) -> object:
        builder = theirs(path).merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
        return builder.execute(source(number))

    return change


def ours_column(path: str) -> object:
    from lancelet.ops.new_columns import add_columns_by_sql

    return add_columns_by_sql(opened(path), {"double": "r * 2"})


def theirs_column(path: str) -> object:
    return theirs(path).add_columns({"double": "r * 2"})
