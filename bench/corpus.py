"""What whole-file cases measure: tables of one column each, made from seeds, and the files that hold them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

__all__ = ["COLUMNS", "DIRECTORY", "Column", "scale"]

DIRECTORY = Path(__file__).parent.parent / "build" / "bench"
# Writers are handed rows in batches of about this many bytes, as pipelines hand them over.
_BATCH = 16 * 2**20


def scale() -> float:
    """The share of its rows that each column is made with: less than 1 while developing (``--quick``)."""
    return float(os.environ.get("BENCH_SCALE", "1"))


@dataclass(frozen=True, slots=True)
class Column:
    """A kind of column: how many rows, and how to make them."""

    name: str
    full_rows: int
    row_bytes: int
    make: Callable[[np.random.Generator, int], pa.Array]

    @property
    def rows(self) -> int:
        """Rows at the present scale."""
        return max(int(self.full_rows * scale()), 20_000)

    @property
    def nbytes(self) -> int:
        """About how many bytes the rows take in memory."""
        return self.rows * self.row_bytes

    def table(self) -> pa.Table:
        """The rows, the same each time."""
        return _table(self.name, self.rows)

    def lance(self) -> str:
        """The file as pylance writes it (version 2.2); written when it is first asked for."""
        return self._file("lance", _write_pylance)

    def parquet(self) -> str:
        """The same rows as pyarrow writes them by default."""
        return self._file("parquet", _write_parquet)

    def _file(self, kind: str, write: Callable[[str, pa.Table], None]) -> str:
        path = DIRECTORY / f"{self.name}-{self.rows}.{kind}"
        if not path.exists():
            DIRECTORY.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}")
            write(str(part), self.table())
            part.rename(path)
        return str(path)


@lru_cache(maxsize=1)
def _table(name: str, rows: int) -> pa.Table:
    table = pa.table({"c": COLUMNS[name].make(np.random.default_rng(1), rows)})
    batches = table.to_batches(max_chunksize=max(1, _BATCH * rows // max(table.nbytes, 1)))
    # Slices are laid out anew: pylance 14.0.2 panics on a struct with nulls that begins in the middle of its buffers.
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


def _write_pylance(path: str, table: pa.Table) -> None:
    from lance.file import LanceFileWriter

    with LanceFileWriter(path, table.schema, version="2.2") as writer:
        writer.write_batch(table)


def _write_parquet(path: str, table: pa.Table) -> None:
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, path)


def _unlike_strings(random: np.random.Generator, rows: int) -> pa.Array:
    """Strings of about 40 bytes, few of them twice: an address with three numbers in it."""
    numbers = (pa.array(random.integers(0, 10**width, rows)).cast(pa.string()) for width in (3, 6, 9))
    parts = ("https://shop.example/", "/item-", "?page=")
    joined = pa.array([""]).take(pa.array(np.zeros(rows, np.int64)))
    for part, number in zip(parts, numbers, strict=True):
        joined = _join(joined, part, number)
    return joined


def _join(left: pa.Array, middle: str, right: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(left, right, middle)


def _like_strings(random: np.random.Generator, rows: int) -> pa.Array:
    """A hundred different words."""
    return pa.array([f"category_{number:03}" for number in range(100)]).take(pa.array(random.integers(0, 100, rows)))


def _vectors(random: np.random.Generator, rows: int) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(random.standard_normal(rows * 768, np.float32)), 768)


def _lists(random: np.random.Generator, rows: int) -> pa.Array:
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(random.integers(0, 11, rows))])
    items = pa.array(random.integers(0, 100_000, offsets[-1]))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)


def _structs(random: np.random.Generator, rows: int) -> pa.Array:
    inner = pa.StructArray.from_arrays(
        [pa.array(random.standard_normal(rows)), _like_strings(random, rows)], ["x", "t"]
    )
    number = pa.array(random.integers(0, 10_000, rows), mask=random.random(rows) < 0.1)
    return pa.StructArray.from_arrays([number, inner], ["n", "p"], mask=pa.array(random.random(rows) < 0.05))


_ALL = (
    Column("int64 packed", 5_000_000, 8, lambda random, rows: pa.array(random.integers(0, 1000, rows))),
    Column("int64 flat", 5_000_000, 8, lambda random, rows: pa.array(random.integers(-(2**62), 2**62, rows))),
    Column(
        "int64 nullable",
        5_000_000,
        8,
        lambda random, rows: pa.array(random.integers(0, 1000, rows), mask=random.random(rows) < 0.1),
    ),
    Column("float64", 5_000_000, 8, lambda random, rows: pa.array(random.standard_normal(rows))),
    Column("strings unlike", 2_000_000, 46, _unlike_strings),
    Column("strings alike", 2_000_000, 16, _like_strings),
    Column("vectors 768-d", 100_000, 3072, _vectors),
    Column("lists of int64", 1_000_000, 44, _lists),
    Column("nested structs", 1_000_000, 32, _structs),
)
COLUMNS: Mapping[str, Column] = {column.name: column for column in _ALL}
