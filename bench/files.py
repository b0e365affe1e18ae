"""Whole data files: scans, takes and writes of lancelet against pylance and, beside them, Parquet through pyarrow.

Readers read the same Lance file, which pylance wrote. A vector column's scan is copied or summed, since lancelet may
answer it with views of the mapped file, which cost nothing until they are touched. Libraries are imported, and for
takes files are opened, before the time is taken.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.corpus import COLUMNS, DIRECTORY, Column
from bench.harness import Case

__all__ = ["cases"]

# Batches of this many bytes are within a tenth of pylance's best CPU time for every column here, of the sizes from
# 64 rows to the whole file that were tried; its default of 1,024 rows takes up to five times as long.
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
    batch = max(_BATCH_BYTES * column.rows // column.nbytes, 1)

    def lancelet(_: State) -> object:
        return finish(_lancelet(column.lance()).read_all().to_table())

    def pylance(_: State) -> object:
        return finish_others(_pylance(column.lance()).read_all(batch_size=batch).to_table())

    def parquet(_: State) -> object:
        return finish_others(_read_parquet(column.parquet()))

    return Case(
        f"scan {column.name}{how}",
        lambda _: None,
        {"lancelet": lancelet, "pylance": pylance, "parquet": parquet},
        "pylance",
        size=column.nbytes,
        prepare=_preparing(column.lance, column.parquet),
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

    def contender(run: Callable[[str, pa.Table], None]) -> Callable[[State], object]:
        def written(state: State) -> object:
            run(*state)
            return state[0]

        return written

    return Case(
        f"write {column.name}",
        fresh,
        {
            "lancelet": contender(_write_lancelet),
            "pylance": contender(_write_pylance),
            "parquet": contender(_write_parquet),
        },
        "pylance",
        size=column.nbytes,
        prepare=_preparing(column.table, column.table),
        equal=_equal,
        compared=_read_back,
        weigh=lambda path: os.path.getsize(str(path)),
        goal=1,
    )


def _lancelet(path: str) -> Any:
    return import_module("lancelet.file.reader").LanceFileReader(path)


def _pylance(path: str) -> Any:
    return import_module("lance.file").LanceFileReader(path)


def _preparing(lance: Callable[[], object], parquet: Callable[[], object]) -> dict[str, Callable[[], object]]:
    """What each contender does beforehand: its file or table is made, its library used once for a file of one row."""
    return {
        "lancelet": lambda: (lance(), _first_use(_write_lancelet, lambda path: _lancelet(path).read_all().to_table())),
        "pylance": lambda: (lance(), _first_use(_write_pylance, lambda path: _pylance(path).read_all().to_table())),
        "parquet": lambda: (parquet(), _first_use(_write_parquet, _read_parquet)),
    }


def _first_use(write: Callable[[str, pa.Table], None], read: Callable[[str], pa.Table]) -> object:
    """Imports and first calls cost what they cost once; what they give is of no interest."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    path = DIRECTORY / f"first-{os.getpid()}"
    path.unlink(missing_ok=True)
    write(str(path), pa.table({"c": [1]}))
    found = read(str(path))
    path.unlink()
    return found


def _write_lancelet(path: str, table: pa.Table) -> None:
    with import_module("lancelet.file.writer").LanceFileWriter(path) as writer:
        writer.write_batch(table)


def _write_pylance(path: str, table: pa.Table) -> None:
    with import_module("lance.file").LanceFileWriter(path, table.schema, version="2.2") as writer:
        writer.write_batch(table)


def _write_parquet(path: str, table: pa.Table) -> None:
    import_module("pyarrow.parquet").write_table(table, path)


def _read_parquet(path: str) -> Any:
    return import_module("pyarrow.parquet").read_table(path)


def _same_table(table: pa.Table) -> object:
    return table


def _copied(table: pa.Table) -> object:
    """The vectors in memory of their own, copied by as many threads as the machine has processors."""

    def copy(chunk: pa.Array) -> pa.Array:
        items = np.frombuffer(chunk.flatten().buffers()[1], np.float32, len(chunk) * 768, chunk.offset * 768 * 4)
        own = np.empty_like(items)
        np.copyto(own, items)
        return pa.FixedSizeListArray.from_arrays(pa.array(own), 768)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return pa.table([pa.chunked_array(list(pool.map(copy, table["c"].chunks)))], table.schema)


def _summed(table: pa.Table) -> object:
    """All bytes of the vectors read once: their sum as 64-bit words, which is exact in whatever order it is made."""
    total = 0
    for chunk in table["c"].chunks:
        items = np.frombuffer(chunk.flatten().buffers()[1], np.uint64, len(chunk) * 384, chunk.offset * 768 * 4)
        total += int(items.sum(dtype=np.uint64))
    return total % 2**64


def _equal(one: object, other: object) -> bool:
    if isinstance(one, pa.Table):
        return bool(one["c"].equals(other["c"]))  # type: ignore[index]
    return one == other


def _read_back(path: object) -> object:
    """The rows of a written file, read by the implementation whose format it is."""
    if Path(str(path)).read_bytes()[-4:] == b"PAR1":
        return import_module("pyarrow.parquet").read_table(path)
    return _pylance(str(path)).read_all(batch_size=65_536).to_table()
