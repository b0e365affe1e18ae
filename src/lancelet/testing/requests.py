"""Generated tables and questions to them: for tests that ask two implementations, or one in two ways, the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.testing.arrays import NULL_PATTERNS, SHAPES, make_array

__all__ = ["Question", "conditions", "questions", "sample_table"]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a table, in words that both implementations understand."""

    columns: tuple[str, ...] | None = None
    filter: str | None = None
    limit: int | None = None
    offset: int | None = None
    #: Column, ascending, nulls first.
    order_by: tuple[tuple[str, bool, bool], ...] = ()
    batch_size: int | None = None
    #: Places of fragments.
    fragments: tuple[int, ...] | None = None
    system: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = {name: getattr(self, name) for name in self.__slots__ if getattr(self, name)}
        return " ".join(f"{name}={value}" for name, value in shown.items()) or "everything"


def sample_table(seed: int, rows: int, kinds: Sequence[pa.DataType], *, first: int = 0, nulls: bool = True) -> pa.Table:
    """Rows of a key from ``first`` on, a small number, a word, and a column of each type.

    >>> sample_table(1, 3, [pa.bool_()]).column_names
    ['key', 'small', 'word', 'c0']
    """
    draw = np.random.default_rng(seed)
    words = np.array([f"w{number}" for number in range(7)])
    missing = draw.random(rows) < (0.1 if nulls else 0.0)
    columns: dict[str, pa.Array] = {
        "key": pa.array(np.arange(first, first + rows)),
        "small": pa.array(draw.integers(0, 20, rows).astype(np.int32), mask=missing),
        "word": pa.array(words[draw.integers(0, 7, rows)], pa.string(), mask=np.roll(missing, 1)),
    }
    for number, kind in enumerate(kinds):
        pattern = NULL_PATTERNS[int(draw.integers(len(NULL_PATTERNS)))] if nulls else "none"
        shape = SHAPES[int(draw.integers(len(SHAPES)))]
        columns[f"c{number}"] = make_array(draw, kind, rows, nulls=pattern, shape=shape)
    return pa.table(columns)


def conditions(draw: Random, rows: int) -> str:
    """A condition on the columns that every generated table has."""
    simple = (
        lambda: f"key >= {draw.randrange(rows + 1)}",
        lambda: f"key % {draw.randrange(2, 9)} = 0",
        lambda: f"small < {draw.randrange(21)}",
        lambda: f"small IN ({draw.randrange(20)}, {draw.randrange(20)})",
        lambda: f"small IS {'NOT ' * draw.randrange(2)}NULL",
        lambda: f"word = 'w{draw.randrange(9)}'",
        lambda: f"word > 'w{draw.randrange(7)}'",
        lambda: f"key BETWEEN {draw.randrange(rows + 1)} AND {draw.randrange(rows + 1)}",
    )
    one = draw.choice(simple)()
    for _ in range(draw.randrange(3)):
        one = f"({one}) {draw.choice(['AND', 'OR', 'AND'])} ({draw.choice(simple)()})"
    return one if draw.random() < 0.8 else f"NOT ({one})"


def questions(
    seed: int, count: int, schema: pa.Schema, rows: int, *, fragments: int = 1, system: Sequence[str] = ()
) -> Iterator[Question]:
    """Questions to a table of such a schema."""
    draw = Random(seed)
    paths = [path for item in schema for path in _paths(item, item.name)]
    orderable = [item.name for item in schema if _is_orderable(item.type)]
    for _ in range(count):
        made = Question()
        known = draw.sample(system, draw.randrange(len(system) + 1)) if draw.random() < 0.5 else []
        columns: list[str] | None = None
        if draw.random() < 0.7:
            columns = draw.sample(paths, draw.randrange(1, min(len(paths), 4) + 1))
            columns = _apart(columns)
        keys: tuple[tuple[str, bool, bool], ...] = ()
        if draw.random() < 0.25:
            # The key at last makes the order a single one.
            names = [*draw.sample(orderable, draw.randrange(min(len(orderable), 2) + 1)), "key"]
            keys = tuple((name, draw.random() < 0.5, draw.random() < 0.5) for name in dict.fromkeys(names))
            columns = None if columns is None else [*dict.fromkeys([*columns, *(name for name, _, _ in keys)])]
        made = Question(
            columns=None if columns is None else tuple(columns),
            filter=conditions(draw, rows) if draw.random() < 0.6 else None,
            limit=draw.choice([0, 1, 5, rows // 2, rows + 5]) if draw.random() < 0.4 else None,
            offset=draw.choice([0, 1, rows // 3, rows - 1, rows + 1]) if draw.random() < 0.3 else None,
            order_by=keys,
            batch_size=draw.choice([1, 7, 100, 8192]) if draw.random() < 0.6 else None,
            fragments=tuple(draw.sample(range(fragments), draw.randrange(1, fragments + 1)))
            if draw.random() < 0.25
            else None,
            system=tuple(known),
        )
        yield made


def _paths(item: pa.Field, path: str) -> Iterator[str]:
    yield path
    if pat.is_struct(item.type):
        for child in item.type:
            yield from _paths(child, f"{path}.{child.name}")


def _apart(paths: list[str]) -> list[str]:
    """The paths without those that lead into another of them."""
    return [path for path in paths if not any(path.startswith(f"{other}.") for other in paths)]


def _is_orderable(kind: pa.DataType) -> bool:
    return not (pat.is_nested(kind) or pat.is_null(kind) or pat.is_dictionary(kind) or pat.is_floating(kind))
