"""Tables: opening, appending small batches and deleting, by lancelet and by pylance, each on a copy of its own.

A table is made once by pylance. Appends go on with the copies that they have, so that the tables of both grow alike;
a delete gets a fresh copy, made of links, each time.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.corpus import DIRECTORY, scale
from bench.harness import Case

__all__ = ["cases"]

#: Rows of a fragment of the tables that are opened and appended to, and of each append.
_SMALL = 1000
_LARGE = 1_000_000

# State of a case: the path of a table, or nothing.
State = Any
Run = Callable[[str], object]


def cases() -> Iterator[Case[State]]:
    """Opening and appending to tables of one fragment and of many, deleting from a large one."""
    for fragments in (1, 1000):
        yield opening(fragments)
    for fragments in (1, 1000):
        yield appending(fragments)
    yield deleting("1 row", "id = 5")
    yield deleting("1 % of the rows", "id % 100 = 0")
    yield deleting("half of the rows", "x < 0.5")


def opening(fragments: int) -> Case[State]:
    """Open the newest version, and tell its number, its rows and its columns."""

    def lancelet(path: str) -> object:
        snapshot = _snapshot(path)
        return snapshot.version, snapshot.count_rows(), [field.name for field in snapshot.schema.fields]

    def pylance(path: str) -> object:
        dataset = import_module("lance").dataset(path)
        return dataset.version, dataset.count_rows(), dataset.schema.names

    return Case(
        f"open {_counted(fragments)}",
        lambda _: _table(fragments, _SMALL),
        {"lancelet": lancelet, "pylance": pylance},
        "pylance",
        goal=1,
    )


def appending(fragments: int) -> Case[State]:
    """Open the table, append a thousand rows, commit."""
    copies = {
        name: lru_cache(lambda name=name: _copy(_table(fragments, _SMALL), f"append-{fragments}-{name}"))
        for name in ("lancelet", "pylance")
    }
    rows = _rows(_SMALL)

    def lancelet(_: State) -> object:
        path = copies["lancelet"]()
        import_module("lancelet.ops.write").append(_snapshot(path), rows)
        return path

    def pylance(_: State) -> object:
        path = copies["pylance"]()
        import_module("lance").write_dataset(rows, path, mode="append")
        return path

    return Case(
        f"append {_SMALL:,} rows to {_counted(fragments)}",
        lambda _: None,
        {"lancelet": lancelet, "pylance": pylance},
        "pylance",
        prepare=copies,
        compared=_content,
        goal=1,
    )


def deleting(what: str, condition: str) -> Case[State]:
    """Open the table, delete by a condition, commit."""

    def fresh(_: int) -> str:
        return _copy(_table(1, int(_LARGE * scale())), "delete")

    def lancelet(path: str) -> object:
        import_module("lancelet.ops.deletion").delete_where(_snapshot(path), condition)
        return path

    def pylance(path: str) -> object:
        import_module("lance").dataset(path).delete(condition)
        return path

    return Case(
        f"delete {what} of {int(_LARGE * scale()):,}",
        fresh,
        {"lancelet": lancelet, "pylance": pylance},
        "pylance",
        compared=_content,
        goal=1,
    )


def _snapshot(path: str) -> Any:
    store = import_module("lancelet.storage").open_store(path)
    return import_module("lancelet.table.snapshot").open_snapshot(store)


def _counted(fragments: int) -> str:
    return f"{fragments:,} fragment{'s' * (fragments > 1)}"


@lru_cache(maxsize=2)
def _rows(count: int) -> pa.Table:
    draw = np.random.default_rng(count)
    return pa.table(
        {
            "id": np.arange(count),
            "x": draw.random(count),
            "s": pa.array([f"item {number}" for number in draw.integers(0, 10**6, count).tolist()]),
        }
    )


def _table(fragments: int, rows: int) -> str:
    """A table as pylance makes it, of so many fragments of so many rows; made when it is first asked for."""
    path = DIRECTORY / f"table-{fragments}-{rows}.lance"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}")
        whole = pa.concat_tables([_rows(rows)] * fragments)
        import_module("lance").write_dataset(whole, str(part), max_rows_per_file=rows, max_rows_per_group=rows)
        part.rename(path)
    return str(path)


def _copy(table: str, name: str) -> str:
    """A copy of a table that shares its files: nobody changes those once they are written, but for the hint."""
    target = Path(DIRECTORY) / f"copy-{name}-{os.getpid()}"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(table, target, copy_function=os.link)
    return str(target)


def _content(path: object) -> object:
    """What is compared: the rows, by pylance, and how many versions made them."""
    dataset = import_module("lance").dataset(str(path))
    rows = dataset.to_table()
    return dataset.version, rows.num_rows, rows["id"].to_pylist()
