"""Whole data files: scans, takes and writes of lancelet against pylance and, beside them, Parquet through pyarrow.

Readers read the same Lance file, which pylance wrote. A vector column's scan is copied or summed, since lancelet may
answer it with views of the mapped file, which cost nothing until they are touched. Libraries are imported, and for
takes files are opened, before the time is taken.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.corpus import COLUMNS, DIRECTORY, Column
from bench.harness import Case

__all__ = ["cases"]

# pylance scans fastest in batches of about this many bytes; its default of 1,024 rows is slower.
_BATCH_BYTES = 2**20
_TAKES = (1, 100, 10_000)
# How many times as fast as pylance lancelet is meant to be: 2 at scans, 5 at takes, but for these.
_SCAN_GOALS = {"strings unlike": 1.3, "strings alike": 1.3, "lists of int64": 1.3, "nested structs": 1.3}
_WITHOUT_TAKE_GOAL = ("lists of int64", "nested structs")

# State of a case: row numbers for takes, a path and a table for writes.
State = Any


def cases() -> Iterator[Case[State]]:
    """All kinds of columns: first scans, then takes, then writes."""
    for column in COLUMNS.values():
        if column.name.startswith("vectors"):
            yield scan(column, " copied", _copied, _same_table)
            yield scan(column, " summed", _summed, _summed)
        else:
            yield scan(column, "", _same_table, _same_table)
    for column in COLUMNS.values():
        for count in _TAKES:
            yield take(column, count)
    for column in COLUMNS.values():
        yield write(column)


def scan(
    column: Column, how: str, finish: Callable[[pa.Table], object], finish_others: Callable[[pa.Table], object]
) -> Case[State]:
    """Open the file and read all of it; then finish, since the others have copied the bytes already."""
    batch = max(_BATCH_BYTES * column.rows // column.nbytes, 1024)

    def lancelet(_: State) -> object:
        return finish(_lancelet(column.lance()).read_all().to_table())

    def pylance(_: State) -> object:
        return finish_others(_pylance(column.lance()).read_all(batch_size=batch).to_table())

    def parquet(_: State) -> object:
        return finish_others(import_module("pyarrow.parquet").read_table(column.parquet()))

    return Case(
        f"scan {column.name}{how}",
        lambda _: None,
        {"lancelet": lancelet, "pylance": pylance, "parquet": parquet},
        "pylance",
        size=column.nbytes,
        prepare=_importing(column.lance, column.parquet),
        equal=_equal,
        goal=_SCAN_GOALS.get(column.name, 2.0),
    )


def take(column: Column, count: int) -> Case[State]:
    """Different rows, drawn anew each time, in ascending order, from a file that is open."""

    def fresh(repetition: int) -> list[int]:
        drawn = np.random.default_rng([repetition, count]).choice(column.rows, count, replace=False, shuffle=False)
        return sorted(drawn.tolist())

    readers = {
        "lancelet": lru_cache(lambda: _lancelet(column.lance())),
        "pylance": lru_cache(lambda: _pylance(column.lance())),
    }
    return Case(
        f"take {count:,} {column.name}",
        fresh,
        {
            "lancelet": lambda rows: readers["lancelet"]().take_rows(rows).to_table(),
            "pylance": lambda rows: readers["pylance"]().take_rows(rows, batch_size=count).to_table(),
        },
        "pylance",
        prepare=readers,
        equal=_equal,
        goal=0 if column.name in _WITHOUT_TAKE_GOAL else 5,
    )


def write(column: Column) -> Case[State]:
    """Write the whole table to a new file, which the system keeps in memory."""

    def fresh(_: int) -> tuple[str, pa.Table]:
        DIRECTORY.mkdir(parents=True, exist_ok=True)
        path = DIRECTORY / f"written-{os.getpid()}"
        path.unlink(missing_ok=True)
        return str(path), column.table()

    def lancelet(state: State) -> object:
        with import_module("lancelet.file.writer").LanceFileWriter(state[0]) as writer:
            writer.write_batch(state[1])
        return state[0]

    def pylance(state: State) -> object:
        with import_module("lance.file").LanceFileWriter(state[0], state[1].schema, version="2.2") as writer:
            writer.write_batch(state[1])
        return state[0]

    def parquet(state: State) -> object:
        import_module("pyarrow.parquet").write_table(state[1], state[0])
        return state[0]

    return Case(
        f"write {column.name}",
        fresh,
        {"lancelet": lancelet, "pylance": pylance, "parquet": parquet},
        "pylance",
        size=column.nbytes,
        prepare=_importing(column.table, column.table),
        equal=_equal,
        compared=_read_back,
        weigh=lambda path: os.path.getsize(str(path)),
        goal=1,
    )


def _lancelet(path: str) -> Any:
    return import_module("lancelet.file.reader").LanceFileReader(path)


def _pylance(path: str) -> Any:
    return import_module("lance.file").LanceFileReader(path)


def _importing(lance: Callable[[], object], parquet: Callable[[], object]) -> dict[str, Callable[[], object]]:
    """What each contender does beforehand: import its library, and have its file or table made."""
    modules = {
        "lancelet": ("lancelet.file.writer", lance),
        "pylance": ("lance.file", lance),
        "parquet": ("pyarrow.parquet", parquet),
    }
    return {name: partial(_imported, *what) for name, what in modules.items()}


def _imported(module: str, make: Callable[[], object]) -> None:
    import_module(module)
    make()


def _same_table(table: pa.Table) -> object:
    return table


def _copied(table: pa.Table) -> object:
    """The vectors in memory of their own."""
    arrays = []
    for chunk in table["c"].chunks:
        items = np.frombuffer(chunk.flatten().buffers()[1], np.float32, len(chunk) * 768, chunk.offset * 768 * 4)
        own = np.empty_like(items)
        np.copyto(own, items)
        arrays.append(pa.FixedSizeListArray.from_arrays(pa.array(own), 768))
    return pa.table([pa.chunked_array(arrays)], table.schema)


def _summed(table: pa.Table) -> object:
    """The sum of all items; of a table, so that chunks of any length give the same."""
    return sum(float(chunk.flatten().to_numpy().sum(dtype=np.float64)) for chunk in table["c"].chunks)


def _equal(one: object, other: object) -> bool:
    if isinstance(one, pa.Table):
        return bool(one["c"].equals(other["c"]))  # type: ignore[index]
    return bool(np.isclose(one, other))  # type: ignore[call-overload]


def _read_back(path: object) -> object:
    """The rows of a written file, read by the implementation whose format it is."""
    if Path(str(path)).read_bytes()[-4:] == b"PAR1":
        return import_module("pyarrow.parquet").read_table(path)
    return _pylance(str(path)).read_all(batch_size=65_536).to_table()
