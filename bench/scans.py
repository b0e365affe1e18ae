"""Scans of tables through the dataset: filters, counts, projections, small fragments, takes, deletions, nearest rows.

Both implementations read the same tables, which pylance writes. A dataset is opened once in each process, except where
opening is part of the question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from bench.corpus import DIRECTORY, scale
from bench.harness import Case

__all__ = ["cases"]

ROWS = int(2_000_000 * scale())
VECTORS = int(150_000 * scale())
_MODULES = {"lancelet": "lancelet", "pylance": "lance"}

State = Any
#: What is asked of a dataset.
Ask = Callable[[Any, State], object]


def cases() -> Iterator[Case[State]]:
    """All questions of the issue on scans."""
    rows = f"{ROWS:,} rows"
    yield case(f"filter 1 % of {rows}", "wide", lambda table, _: table.to_table(filter="k < 100"), goal=2)
    yield case(f"filter 50 % of {rows}", "wide", lambda table, _: table.to_table(filter="k < 5000"), goal=2)
    yield case(f"filter text of {rows}", "wide", lambda table, _: table.to_table(filter="s = 'category_007'"), goal=2)
    yield case("count with a filter of 1 %", "wide", lambda table, _: table.count_rows(filter="k < 100"), goal=2)
    yield case("count with a filter of 50 %", "wide", lambda table, _: table.count_rows(filter="k < 5000"), goal=2)
    yield case("one of 100 columns", "hundred", lambda table, _: table.to_table(columns=["c37"]), goal=2)
    yield case("open and scan 1,000 fragments", "small", lambda table, _: table.to_table(), goal=1.5, opens=True)
    yield case("scan with 1 % deleted", "deleted", lambda table, _: table.to_table(), goal=2)
    for count in (1, 100, 10_000):
        yield case(f"take {count:,} rows", "wide", lambda table, rows: table.take(rows), goal=1, fresh=places(count))
    yield case("nearest of 150 k x 128", "vectors", nearest, goal=5, fresh=vector)


def case(
    name: str,
    table: str,
    ask: Ask,
    *,
    goal: float,
    fresh: Callable[[int], State] = lambda _: None,
    opens: bool = False,
) -> Case[State]:
    """A question to both."""

    def contender(module: str) -> Callable[[State], object]:
        def run(state: State) -> object:
            opened = import_module(module).dataset(path_of(table)) if opens else dataset(module, table)
            return ask(opened, state)

        return run

    return Case(
        name,
        fresh,
        {name: contender(module) for name, module in _MODULES.items()},
        "pylance",
        compared=content,
        equal=lambda one, other: bool(one == other),
        prepare={name: lambda module=module: dataset(module, table) for name, module in _MODULES.items()},
        goal=goal,
    )


def content(found: object) -> object:
    """What is compared: tables as such, of nearest rows their ids."""
    if not isinstance(found, pa.Table):
        return found
    return found["id"].to_pylist() if "_distance" in found.column_names else found.combine_chunks()


@lru_cache
def dataset(module: str, table: str) -> Any:
    """A table as one implementation opens it."""
    return import_module(module).dataset(path_of(table))


def places(count: int) -> Callable[[int], list[int]]:
    """Rows that were not asked for before."""
    return lambda turn: np.sort(np.random.default_rng(turn).choice(ROWS, count, replace=False)).tolist()


def vector(turn: int) -> Any:
    """A vector to search for."""
    return np.random.default_rng(turn).standard_normal(128, dtype=np.float32)


def nearest(table: Any, query: Any) -> object:
    """The ten nearest rows, exactly."""
    wanted = {"column": "v", "q": query, "k": 10, "use_index": False}
    return table.to_table(columns=["id", "_distance"], nearest=wanted)


@lru_cache
def path_of(table: str) -> str:
    """A table as pylance makes it; made when it is first asked for."""
    path = DIRECTORY / f"scans-{table}-{ROWS}.lance"
    if not path.exists():
        DIRECTORY.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".new")
        _MAKERS[table](str(part))
        part.rename(path)
    return str(path)


def _wide(path: str, **options: Any) -> Any:
    draw = np.random.default_rng(1)
    words = np.array([f"category_{number:03}" for number in range(100)])
    rows = pa.table(
        {
            "id": np.arange(ROWS),
            "k": draw.integers(0, 10_000, ROWS),
            "f": draw.random(ROWS),
            "s": pa.array(words[draw.integers(0, 100, ROWS)]),
        }
    )
    return import_module("lance").write_dataset(rows, path, mode="overwrite", **options)


def _hundred(path: str) -> None:
    draw = np.random.default_rng(2)
    rows = pa.table({f"c{number}": draw.random(ROWS // 10) for number in range(100)})
    import_module("lance").write_dataset(rows, path, mode="overwrite")


def _small(path: str) -> None:
    draw = np.random.default_rng(3)
    count = 1_000_000
    rows = pa.table({"id": np.arange(count), "x": draw.random(count), "s": pa.array(["text"] * count)})
    import_module("lance").write_dataset(rows, path, mode="overwrite", max_rows_per_file=1_000)


def _vectors(path: str) -> None:
    values = np.random.default_rng(4).standard_normal(VECTORS * 128, dtype=np.float32)
    rows = pa.table({"id": np.arange(VECTORS), "v": pa.FixedSizeListArray.from_arrays(values, 128)})
    import_module("lance").write_dataset(rows, path, mode="overwrite")


_MAKERS: dict[str, Callable[[str], Any]] = {
    "wide": _wide,
    "hundred": _hundred,
    "small": _small,
    "deleted": lambda path: _wide(path).delete("id % 100 = 7"),
    "vectors": _vectors,
}
