"""Indexes over values: building and asking them, by lancelet and by pylance, each on a table of its own.

Both tables have the same rows, made by pylance; the indexes that are asked were made by pylance, too. A build gets a
copy without indexes, made of links, each time. What is opened and looked up for the first time lies under a path of its
own: neither library has anything of it in its caches.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.corpus import DIRECTORY, scale
from bench.harness import Case

__all__ = ["cases"]

#: Rows of the table, and of each of its fragments, at full scale.
_ROWS, _FRAGMENT_ROWS = 4_000_000, 1_000_000
#: Lookups that are timed together: one by itself is too short for a clock that ticks in CPU time.
_LOOKUPS = 20

# State of a case: the path of a table, or what is asked.
State = Any
#: Each column, and the type of its index. Texts are fewer: their index is the largest.
_INDEXES = {"number": "BTREE", "text": "BTREE", "hundredth": "BITMAP", "rising": "ZONEMAP"}


def cases() -> Iterator[Case[State]]:
    """Builds of each type, then questions."""
    yield building("BTREE of int64", "number", "BTREE", ["number = {some}", "number < {low}"], goal=2)
    yield building("BTREE of strings", "text", "BTREE", ["text = '{text}'", "text < 'item 12'"], goal=1)
    yield building("BITMAP of 100 values", "hundredth", "BITMAP", ["hundredth = 7", "hundredth in (1, 99)"], goal=2)
    yield building("ZONEMAP of int64", "rising", "ZONEMAP", ["rising < 1000"], goal=1)
    yield building("NGRAM", "words", "NGRAM", ["contains(words, 'item 123')"], goal=1, share=0.1)
    yield looking_up("point lookup", "number = {point}", goal=2)
    yield looking_up("range of 1,000 rows", "number >= {point} and number < {behind}", goal=2)
    yield looking_up("bitmap filter of 1 %", "hundredth = {hundredth}", goal=2, times=2, columns=("number",))
    yield opening()


def building(what: str, column: str, kind: str, conditions: list[str], *, goal: float, share: float = 1) -> Case[State]:
    """Open a table and index a column. What the index answers to pylance is compared."""
    rows = int(_ROWS * scale() * share)
    facts = _facts(rows)

    def fresh(_: int) -> str:
        return _copy(_table(rows), "build")

    def lancelet(path: str) -> object:
        import_module("lancelet").dataset(path).create_scalar_index(column, kind)
        return path

    def pylance(path: str) -> object:
        import_module("lance").dataset(path).create_scalar_index(column, kind)
        return path

    def answers(path: object) -> object:
        dataset = import_module("lance").dataset(str(path))
        asked = [condition.format(**facts) for condition in conditions]
        assert all("ScalarIndexQuery" in dataset.scanner(filter=one).explain_plan() for one in asked)
        return [dataset.to_table(filter=one, columns=["id"])["id"].to_pylist() for one in asked]

    return Case(
        f"build {what}, {rows:,} rows",
        fresh,
        {"lancelet": lancelet, "pylance": pylance},
        "pylance",
        compared=answers,
        goal=goal,
    )


def looking_up(
    what: str, condition: str, *, goal: float, times: int = _LOOKUPS, columns: tuple[str, ...] = ("id", "text")
) -> Case[State]:
    """Ask an open table, whose index was asked before, for the rows of other values each time."""
    rows = int(_ROWS * scale())

    def fresh(repetition: int) -> list[str]:
        draw = np.random.default_rng(repetition)
        return [condition.format(**_asked(rows, draw)) for _ in range(times)]

    return Case(
        f"{what}, {rows:,} rows, {times} times",
        fresh,
        {name: _lookups(name, lambda: _indexed(rows), columns) for name in ("lancelet", "lance")},
        "lance",
        prepare={name: lambda name=name: _opened(name, _indexed(rows)) for name in ("lancelet", "lance")},
        goal=goal,
    )


def opening() -> Case[State]:
    """Open a table under a path that is new to the process, and look up one row."""
    rows = int(_ROWS * scale())
    turn = iter(range(10**9))

    def fresh(repetition: int) -> tuple[str, str]:
        number = next(turn)
        path = _copy(_indexed(rows), f"open-{number}")
        shutil.rmtree(Path(DIRECTORY) / f"copy-open-{number - 1}-{os.getpid()}", ignore_errors=True)
        return path, "number = {point}".format(**_asked(rows, np.random.default_rng(repetition)))

    def by(library: str) -> Callable[[State], object]:
        def run(state: State) -> object:
            path, condition = state
            return import_module(library).dataset(path).to_table(filter=condition).to_pylist()

        return run

    return Case(
        f"open, and one point lookup, {rows:,} rows",
        fresh,
        {name: by(name) for name in ("lancelet", "lance")},
        "lance",
        goal=1,
    )


def _lookups(library: str, path: Callable[[], str], columns: tuple[str, ...]) -> Callable[[State], object]:
    def run(conditions: State) -> object:
        dataset = _opened(library, path())
        found = [dataset.to_table(filter=one, columns=list(columns)) for one in conditions]
        return pa.concat_tables(found).combine_chunks().to_pydict()

    return run


@lru_cache(maxsize=8)
def _opened(library: str, path: str) -> Any:
    dataset = import_module(library).dataset(path)
    for name in ("number_idx", "hundredth_idx"):
        dataset.prewarm_index(name)
    return dataset


def _asked(rows: int, draw: np.random.Generator) -> Mapping[str, int]:
    """Values that are there: ``number`` has each multiple of 10 below ten times the rows once."""
    point = int(draw.integers(0, rows - 1000)) * 10
    return {"point": point, "behind": point + 10_000, "hundredth": int(draw.integers(0, 100))}


def _facts(rows: int) -> Mapping[str, object]:
    table = _rows(min(rows, 1000), rows)
    return {"some": table["number"][7].as_py(), "low": rows // 20, "text": table["text"][7].as_py()}


def _rows(count: int, total: int, start: int = 0) -> pa.Table:
    """Rows of the table from one on."""
    draw = np.random.default_rng(total)
    number = draw.permutation(total)[start : start + count] * 10
    words = draw.integers(0, 10**6, (count, 3))
    text = [f"item {a} of shelf {b % 1000}" for a, b in words[:, :2].tolist()]
    return pa.table(
        {
            "id": np.arange(start, start + count),
            "number": number,
            "rising": np.arange(start, start + count) // 7,
            "hundredth": draw.integers(0, 100, count),
            "text": pa.array(text),
            "words": pa.array([f"{one}, which stands beside {c}" for one, c in zip(text, words[:, 2], strict=True)]),
        }
    )


def _table(rows: int) -> str:
    """The table without indexes; made when it is first asked for."""
    path = DIRECTORY / f"unindexed-{rows}.lance"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}")
        for start in range(0, rows, _FRAGMENT_ROWS):
            count = min(_FRAGMENT_ROWS, rows - start)
            import_module("lance").write_dataset(_rows(count, rows, start), str(part), mode="append")
        part.rename(path)
    return str(path)


@lru_cache(maxsize=8)
def _indexed(rows: int) -> str:
    """The table with indexes, as pylance makes it."""
    path = DIRECTORY / f"indexed-{rows}.lance"
    if not path.exists():
        part = Path(_copy(_table(rows), "indexed"))
        dataset = import_module("lance").dataset(str(part))
        for column, kind in _INDEXES.items():
            dataset.create_scalar_index(column, kind)
        part.rename(path)
    return str(path)


def _copy(table: str, name: str) -> str:
    """A copy of a table that shares its files: nobody changes those once they are written, but for the hint."""
    target = Path(DIRECTORY) / f"copy-{name}-{os.getpid()}"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(table, target, copy_function=os.link)
    hint = target / "_versions" / "latest_version_hint.json"
    if hint.exists():
        # The one file that is written over.
        text = hint.read_bytes()
        hint.unlink()
        hint.write_bytes(text)
    return str(target)
