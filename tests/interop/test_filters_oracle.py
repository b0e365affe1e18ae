"""Generated filters and computed columns over rows of every type: the rows and values that pylance and DuckDB give.

Where pylance differs, DuckDB decides over the same rows; what neither decides is listed below and in
``docs/differences.md``. Expressions that pylance refuses are held against DuckDB as far as it knows them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import lance
import pyarrow as pa
import pytest

import lancelet
from lancelet.errors import InvalidInput, LanceletError
from lancelet.testing.expressions import Expressions, rows_of_every_type

ROWS = 60
SEEDS = range(6)
CASES = 220
#: What pylance computes otherwise, and why; measured, and told in docs/differences.md.
PECULIAR = (
    # Zeros of different signs differ, where both sides are columns or computed.
    r"\b(f32|f64|nullif|round|ceil|trunc|floor|atan2|sqrt|sin|cbrt)\b",
    # Moments are compared by the clocks of their zones.
    r"\b(ny|tz)\b",
    # Decimals beside floats become decimals of 15 digits.
    r"\b(dec|dex)\b",
)
#: What we refuse and pylance does in spite of what it does to the values.
REFUSED = (
    r"cannot compare",
    r"gives a number that \w+ does not hold",
    r"do not go together|have no type in common",
    # A text beside a moment in branches, which pylance takes where constants leave only one of them.
    r"case joins",
)


class Tables:
    """The same rows behind all engines."""

    def __init__(self, path: Path, seed: int) -> None:
        rows = rows_of_every_type(seed, ROWS)
        self.theirs: Any = lance.write_dataset(rows, path, data_storage_version="2.2", max_rows_per_file=25)
        self.theirs.delete("id % 13 = 5")
        self.theirs = lance.dataset(path)
        self.ours: Any = lancelet.dataset(path)
        self.database = duckdb.connect()
        self.database.execute("SET timezone='UTC'")
        self.database.register("t", rows.drop_columns(["j"]))

    def duck(self, what: str, condition: str) -> list[Any] | None:
        """What DuckDB says; None where it does not know the words."""
        query = f"SELECT {what} FROM t WHERE id % 13 <> 5 AND ({condition}) ORDER BY id"
        try:
            return [normal(row[0]) for row in self.database.execute(query).fetchall()]
        except duckdb.Error:
            return None


@pytest.fixture(params=SEEDS, ids=lambda seed: f"seed-{seed}")
def tables(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Tables, int]:
    return Tables(tmp_path / "t", request.param), request.param


def normal(value: Any) -> Any:
    """A value in a form that compares as it should; the last digits of functions of floats are not looked at."""
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        return "NaN" if value != value else float(f"{value:.6g}") if math.isfinite(value) else value
    if isinstance(value, list | tuple):
        return [normal(item) for item in value]
    return value


def asked(dataset: Any, **question: Any) -> tuple[list[Any] | None, str]:
    """Values of the last column, or None and what was said."""
    try:
        column = dataset.to_table(**question).columns[-1]
        return [normal(value) for value in column.to_pylist()], str(column.type)
    except (LanceletError, ValueError, OSError, pa.ArrowInvalid) as error:
        return None, str(error)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return None, str(error)


def judge(tables: Tables, text: str, *, condition: bool) -> str | None:
    """Why an answer of ours is wrong; None where it is not."""
    question = {"columns": ["id"], "filter": text} if condition else {"columns": {"id": "id", "v": text}}
    ours, said = asked(tables.ours, **question)
    theirs, told = asked(tables.theirs, **question)
    if ours is None:
        known = theirs is None or any(re.search(reason, said) for reason in REFUSED)
        return None if known else f"we refuse {text!r}: {said}; they say {theirs}"
    if theirs == ours:
        return None
    third = tables.duck("id", text) if condition else tables.duck(text, "true")
    if theirs is None:
        wrong = condition and third is not None and third != ours and not any(re.search(p, text) for p in DIALECT)
        return f"pylance refuses {text!r}, DuckDB says {third}, we {ours}" if wrong else None
    if third == ours or any(re.search(reason, text) for reason in PECULIAR):
        return None
    return f"{text!r}: they say {theirs} ({told}), we {ours} ({said}), DuckDB {third}"


#: Words that mean something else to DuckDB.
DIALECT = (
    r"/",
    r"= ANY",
    r"\bsubstr\b|\bleft\b|\bright\b",
    r"~",
    r"\\",
    r"\[",
    r"CAST\(.* AS VARCHAR\)",
    r"IN\b|BETWEEN",
)


def texts(seed: int, count: int, *, condition: bool) -> Iterator[str]:
    made = Expressions(f"{seed} {condition}")
    for _ in range(count):
        yield made.condition() if condition else made.value()


def check(tables: Tables, seed: int, count: int, *, condition: bool) -> None:
    found = [judge(tables, text, condition=condition) for text in texts(seed, count, condition=condition)]
    assert not [what for what in found if what], f"seed {seed}"


def test_conditions_keep_the_rows_that_those_of_pylance_keep(tables: tuple[Tables, int]) -> None:
    check(*tables, CASES, condition=True)


def test_computed_columns_are_those_of_pylance(tables: tuple[Tables, int]) -> None:
    check(*tables, CASES, condition=False)


def test_conditions_keep_the_rows_that_those_of_duckdb_keep(tables: tuple[Tables, int]) -> None:
    table, seed = tables
    made = Expressions(seed, common=True)
    for _ in range(CASES):
        text = made.condition()
        assert asked(table.ours, columns=["id"], filter=text)[0] == table.duck("id", text), f"seed {seed}: {text}"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 130), ids=lambda seed: f"seed-{seed}")
def test_many_more_conditions_and_columns_agree(tmp_path: Path, seed: int) -> None:
    table = Tables(tmp_path / "t", seed)
    made = Expressions(seed, common=True)
    for _ in range(1500):
        text = made.condition(3)
        assert asked(table.ours, columns=["id"], filter=text)[0] == table.duck("id", text), f"seed {seed}: {text}"
    check(table, seed, 1500, condition=True)
    check(table, seed, 1500, condition=False)


WRONG = [
    ("i33 > 1", "i33", "i32"),
    ("p.z = 1", "p.z", "x"),
    ("lenght(s) = 1", "lenght", "length"),
    ("date_truncate('day', ts) = ts", "date_truncate", "date_trunc"),
    ("array_has(s, 1)", "array_has", "list"),
    ("s + 1 > 2", "string", "cast"),
    ("d > 5", "date32", "cast"),
    ("li = 5", "list", "int64"),
    ("abs(s) = 1", "abs", "number"),
    ("CAST(s AS intt) = 1", "intt", "int"),
    ("i32 +", "i32", ""),
    ("upper() = 'a'", "upper", "argument"),
    ("s", "condition", "string"),
]


@pytest.mark.parametrize(("text", "named", "hint"), WRONG, ids=[text for text, _, _ in WRONG])
def test_what_is_wrong_is_named_with_what_was_probably_meant(tmp_path: Path, text: str, named: str, hint: str) -> None:
    rows = rows_of_every_type(1, 3, documents=False)
    dataset: Any = lancelet.write_dataset(rows, str(tmp_path / "t"), data_storage_version="2.2")
    with pytest.raises(InvalidInput) as caught:
        dataset.to_table(filter=text)
    assert named in str(caught.value)
    assert hint in str(caught.value)
    assert isinstance(caught.value, ValueError)
