"""Generated expressions over rows of every type: for tests that ask several implementations for the same values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

__all__ = ["COLUMNS", "Expressions", "rows_of_every_type"]

_WORDS = ("", "a", "A", "ab", "abc", "Abc", "a b", "x_y", "50%", "é", "straße", "日本", "it's", "zz", "-7", "3", "2.5")
_MOMENTS = (
    datetime(1970, 1, 1),
    datetime(2024, 2, 29, 12, 30, 15, 123456),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(2026, 11, 19, 1, 2, 3),
    datetime(1900, 3, 1, 6),
)
_DOCUMENTS: tuple[Any, ...] = ({"a": 1, "b": "x"}, {"a": None}, [1, 2, 3], {"a": {"c": [1, "y"]}}, 5, "t", {})


def _zoned(moments: Sequence[datetime]) -> list[datetime]:
    return [moment.replace(tzinfo=UTC) for moment in moments]


#: Each column: its type, and what its values are drawn from.
COLUMNS: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "i8": (pa.int8(), (-128, 127, 0, 1, -1, 5, 7)),
    "i16": (pa.int16(), (-300, 0, 1, 2, 300)),
    "i32": (pa.int32(), (-5, 0, 1, 2, 3, 100000)),
    "i64": (pa.int64(), (-3, 0, 1, 2, 3, 7, 2**40)),
    "u8": (pa.uint8(), (0, 1, 2, 200, 255)),
    "u64": (pa.uint64(), (0, 1, 2, 3, 2**40)),
    "f32": (pa.float32(), (0.0, -0.0, 1.5, -2.25, math.nan, math.inf, 3.0)),
    "f64": (pa.float64(), (0.0, -0.0, 1.5, -2.25, math.nan, math.inf, -math.inf, 3.0, 2.0)),
    "s": (pa.string(), _WORDS),
    "t": (pa.string(), _WORDS),
    "ls": (pa.large_string(), _WORDS),
    "bin": (pa.binary(), (b"", b"\x00", b"ab", b"\xff\x00")),
    "b": (pa.bool_(), (True, False)),
    "c": (pa.bool_(), (True, False)),
    "d": (pa.date32(), [moment.date() for moment in _MOMENTS]),
    "e": (pa.date32(), [date(2024, 2, 29), date(1970, 1, 1), date(1999, 12, 31)]),
    "ts": (pa.timestamp("us"), _MOMENTS),
    "tn": (pa.timestamp("ns"), _MOMENTS),
    "tz": (pa.timestamp("us", "UTC"), _zoned(_MOMENTS)),
    "ny": (pa.timestamp("ms", "America/New_York"), _zoned([item.replace(microsecond=0) for item in _MOMENTS])),
    "du": (pa.duration("us"), (timedelta(0), timedelta(days=1), timedelta(microseconds=-5))),
    "dec": (pa.decimal128(12, 2), (Decimal("0.00"), Decimal("1.50"), Decimal("-2.25"), Decimal("12345.67"))),
    "dex": (pa.decimal128(20, 4), (Decimal("1.5000"), Decimal("-2.2501"), Decimal("3.0000"))),
    "p": (
        pa.struct([("x", pa.int32()), ("y", pa.string())]),
        ({"x": 1, "y": "a"}, {"x": None, "y": "ab"}, {"x": 3, "y": None}, {"x": 7, "y": ""}),
    ),
    "li": (pa.list_(pa.int64()), ([], [1], [1, 2, None], [3, 2, 1], [None], [2, 2])),
    "lt": (pa.list_(pa.string()), ([], ["a"], ["a", None, "b"], ["zz", ""])),
    "m": (pa.map_(pa.string(), pa.int32()), ([], [("a", 1)], [("a", 2), ("b", None)])),
}


def rows_of_every_type(seed: int, count: int, *, documents: bool = True) -> pa.Table:
    """Rows of a number ``id`` and of every column of :data:`COLUMNS`, a sixth of the values null.

    >>> rows_of_every_type(1, 3).num_columns == len(COLUMNS) + 2
    True
    """
    draw = Random(seed)

    def values(choices: Sequence[Any]) -> list[Any]:
        return [None if draw.random() < 1 / 6 else draw.choice(choices) for _ in range(count)]

    made: dict[str, pa.Array] = {"id": pa.array(range(count), pa.int64())}
    for name, (kind, choices) in COLUMNS.items():
        made[name] = pa.array(values(choices), kind)
    if documents:
        texts = pa.array(values([json.dumps(item) for item in _DOCUMENTS]), pa.string())
        made["j"] = pa.ExtensionArray.from_storage(pa.json_(pa.string()), texts)
    return pa.table(made)


#: Columns and literals of a kind of value. Literals of ``common`` mean the same to every engine.
_INTEGERS = ("i8", "i16", "i32", "i64", "u8", "p.x")
_FLOATS = ("f32", "f64")
_TEXTS = ("s", "t", "ls", "p.y")
_DATES = ("d", "e")
_TIMES = ("ts", "tn", "tz", "ny")
_KINDS = ("integer", "double", "text", "date", "time", "zoned", "decimal", "truth")


class Expressions:
    """A stream of expressions. Those that are ``common`` mean the same in the SQL of DuckDB."""

    def __init__(self, seed: int | str, *, common: bool = False) -> None:
        self._draw = Random(seed)
        self._common = common

    def condition(self, depth: int = 2) -> str:
        """A condition: simple ones, joined and turned around."""
        draw = self._draw
        if depth > 0 and draw.random() < 0.6:
            shape = draw.randrange(6)
            if shape == 0:
                return f"NOT ({self.condition(depth - 1)})"
            if shape == 1:
                tail = draw.choice(["IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS NULL", "IS NOT NULL"])
                return f"({self.condition(depth - 1)}) {tail}"
            joint = draw.choice(["AND", "OR"])
            parts = [f"({self.condition(depth - 1)})" for _ in range(draw.choice([2, 2, 3]))]
            return f" {joint} ".join(parts)
        return self._simple(depth)

    def value(self, depth: int = 2) -> str:
        """A value of any type."""
        if self._draw.random() < 0.15:
            return self.condition(depth)
        if not self._common and self._draw.random() < 0.25:
            return self._draw.choice([self.numbers, self.texts])(depth)
        return self._of(self._draw.choice(_KINDS), depth)

    def _simple(self, depth: int) -> str:
        draw = self._draw
        makers: list[Callable[[int], str]] = [*[self._compared] * 5, *[self._between, self._among] * 2]
        makers += [self._null_test, self._pattern, self._truth_column, self._nothing]
        if not self._common:
            makers += [self._list_test] * 2 + [self._text_test, self._odd_comparison]
        return draw.choice(makers)(depth)

    def _compared(self, depth: int) -> str:
        kind = self._draw.choice(_KINDS)
        operator = self._draw.choice(["=", "!=", "<>", "<", "<=", ">", ">="])
        if self._draw.random() < 0.1:
            operator = self._draw.choice(["IS DISTINCT FROM", "IS NOT DISTINCT FROM"])
        return f"{self._of(kind, depth)} {operator} {self._of(kind, depth - 1)}"

    def _odd_comparison(self, _: int) -> str:
        """Sides of different types, of which some do not go together."""
        one, other = self._draw.choice(_KINDS), self._draw.choice(_KINDS)
        return f"{self._of(one, 0)} {self._draw.choice(['=', '<', '>='])} {self._of(other, 0)}"

    def _between(self, depth: int) -> str:
        kind = self._draw.choice(_KINDS[:-1])
        word = self._draw.choice(["BETWEEN", "NOT BETWEEN"])
        low, high = self._of(kind, depth - 1), self._of(kind, 0)
        return f"{self._of(kind, depth - 1)} {word} {low} AND {high}"

    def _among(self, depth: int) -> str:
        kind = self._draw.choice(_KINDS[:-1])
        items = [self._literal(kind) for _ in range(self._draw.randrange(1, 5))]
        if self._draw.random() < 0.25:
            items.append("NULL")
        return f"{self._of(kind, depth - 1)} {self._draw.choice(['IN', 'NOT IN'])} ({', '.join(items)})"

    def _null_test(self, _: int) -> str:
        name = self._draw.choice([*COLUMNS, "p.x", "p.y"])
        return f"{name} IS {self._draw.choice(['', 'NOT '])}NULL"

    def _pattern(self, depth: int) -> str:
        draw = self._draw
        word = draw.choice(["LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE"])
        pattern = draw.choice(["a%", "%b", "%b%", "_", "", "%", "A_c", "x\\_y", "%é%", "50\\%", "a_%", "ab"])
        if self._common and "\\" in pattern:
            pattern = "a%c"
        return f"{self._of('text', depth - 1)} {word} '{pattern}'"

    def _truth_column(self, _: int) -> str:
        return self._draw.choice(["b", "c", "NOT b", "NOT c", "b AND c", "b OR c", "b = c"])

    def _nothing(self, _: int) -> str:
        kind = self._draw.choice(_KINDS[:-1])
        return self._draw.choice(
            [f"{self._column(kind)} = NULL", f"NOT ({self._column(kind)} > NULL)", "true", "false"]
        )

    def _list_test(self, depth: int) -> str:
        number, word = self._draw.randrange(4), self._literal("text")
        return self._draw.choice(
            [
                f"array_has(li, {number})",
                f"array_has_any(li, [{number}, 7])",
                f"array_has_all(li, [{number}, 2])",
                f"array_has(lt, {word})",
                f"array_length(li) > {number}",
                f"li[{number}] = 2",
                f"array_position(li, {number}) = 1",
                "empty(lt)",
                f"array_contains(lt, {self._of('text', depth - 1)})",
                f"array_sort(li)[1] < {number}",
                f"m['a'] = {number}",
                f"array_to_string(lt, '-') = {word}",
                f"cardinality(m) = {number}",
                f"array_max(li) >= {number}",
                f"{number} = ANY(li)",
            ]
        )

    def _text_test(self, depth: int) -> str:
        text = self._of("text", depth - 1)
        return self._draw.choice(
            [
                f"regexp_like({text}, '^[a-c]+')",
                f"{text} ~ 'b$'",
                f"{text} ~* 'AB'",
                f"{text} !~ '[0-9]'",
                f"starts_with({text}, {self._literal('text')})",
                f"contains({text}, 'b')",
                f"ends_with({text}, 'c')",
                f"regexp_like({text}, 'A.', 'i')",
            ]
        )

    def _column(self, kind: str) -> str:
        choices: Mapping[str, Sequence[str]] = {
            "integer": _INTEGERS if self._common else (*_INTEGERS, "u64", "id"),
            "double": _FLOATS,
            "text": _TEXTS,
            "date": _DATES,
            "time": _TIMES[:2],
            "zoned": _TIMES[2:],
            "decimal": ("dec", "dex"),
            "truth": ("b", "c"),
        }
        return self._draw.choice(choices[kind])

    def _literal(self, kind: str) -> str:
        draw = self._draw
        if kind == "integer":
            return str(draw.choice([-1, 0, 1, 2, 3, 5, 100, 255]))
        if kind == "double":
            return draw.choice(["0.0", "1.5", "-2.25", "3", "2.0", "1e2", "CAST('NaN' AS DOUBLE)"])
        if kind == "text":
            return "'" + draw.choice(_WORDS).replace("'", "''") + "'"
        if kind == "date":
            return f"DATE '{draw.choice(_MOMENTS).date()}'"
        if kind == "time":
            return f"TIMESTAMP '{draw.choice(_MOMENTS)}'"
        if kind == "zoned":
            # A moment of no zone beside one of a zone is of that zone; only that of UTC is the same to all.
            text = f"{draw.choice(_MOMENTS)}+00:00"
            return f"CAST('{text}' AS TIMESTAMP WITH TIME ZONE)" if self._common else f"'{text}'"
        if kind == "decimal":
            return draw.choice(["0", "1.5", "-2.25", "12345.67", "CAST(1.5 AS DECIMAL(12, 2))"])
        return draw.choice(["true", "false", "NULL"])

    def _of(self, kind: str, depth: int) -> str:
        draw = self._draw
        if depth <= 0 or draw.random() < 0.35:
            return self._literal(kind) if draw.random() < 0.3 else self._column(kind)
        if draw.random() < 0.25:
            return self._chosen(kind, depth - 1)
        made = {"integer": self._integer, "double": self._double, "text": self._text, "date": self._date}.get(kind)
        return made(depth - 1) if made is not None else self._column(kind)

    def _chosen(self, kind: str, depth: int) -> str:
        """A value that depends on conditions."""
        one, other = self._of(kind, depth), self._of(kind, 0)
        test = self._simple(0)
        return self._draw.choice(
            [
                f"CASE WHEN {test} THEN {one} ELSE {other} END",
                f"CASE WHEN {test} THEN {one} END",
                f"CASE {self._column('integer')} WHEN 1 THEN {one} WHEN 2 THEN {other} END",
                f"coalesce({one}, {other})",
                f"nullif({self._column(kind)}, {self._literal(kind)})",
            ]
        )

    def _integer(self, depth: int) -> str:
        draw = self._draw
        text = self._of("text", depth)
        # Of small columns and small numbers: what overflows is another matter.
        small = [draw.choice(["i16", "p.x", "i32", "1", "2", "3"]) for _ in range(2)]
        common = [
            f"({small[0]} {draw.choice('+-*')} {small[1]})",
            f"{small[0]} % {draw.choice([2, 3, 7])}",
            f"abs({small[0]})",
            f"length({text})",
            f"CAST({small[0]} AS BIGINT)",
            f"date_part('{draw.choice(['year', 'month', 'day', 'hour', 'minute'])}', {self._column('time')})",
            f"-{draw.choice(['i16', 'i32', 'i64'])}",
        ]
        other = [
            f"({small[0]} / {draw.choice([1, 2, -3])})",
            f"octet_length({text})",
            f"strpos({text}, 'b')",
            f"ascii({text})",
            f"array_length({draw.choice(['li', 'lt'])})",
            f"CAST({self._column('double')} AS BIGINT)",
            f"TRY_CAST({text} AS INT)",
            f"CAST({self._column('truth')} AS INT)",
            f"date_part('{draw.choice(['dow', 'doy', 'week', 'quarter', 'second'])}', {self._column('date')})",
            f"extract(year FROM {self._column('zoned')})",
            f"({small[0]} & {small[1]})",
            f"levenshtein({text}, 'ab')",
            f"li[{draw.choice([1, 2, -1, 0])}]",
            f"signum({small[0]})",
            f"{draw.choice(['i8', 'u8', 'i64', 'u64'])} {draw.choice('+-*')} {draw.choice(['i8', 'i64', '1', '1.5'])}",
        ]
        return draw.choice(common if self._common else common + other)

    def _double(self, depth: int) -> str:
        draw = self._draw
        one, other = self._of("double", depth), self._of("double", 0)
        common = [f"({one} {draw.choice('+-*')} {other})", f"abs({one})", f"CAST({self._column('integer')} AS DOUBLE)"]
        more = [
            f"{name}({one})"
            for name in ("floor", "ceil", "round", "trunc", "signum", "sqrt", "exp", "ln", "cbrt", "sin", "isnan")
            if name != "isnan"
        ]
        more += [f"({one} / {other})", f"round({one}, 1)", f"nanvl({one}, {other})", f"power({one}, 2)"]
        more += [f"CAST({self._column('decimal')} AS DOUBLE)", f"TRY_CAST({self._column('text')} AS DOUBLE)"]
        more += [f"atan2({one}, {other})", f"greatest({one}, {other})", f"least({one}, {other})"]
        return draw.choice(common if self._common else common + more)

    def _text(self, depth: int) -> str:
        draw = self._draw
        text, number = self._of("text", depth), draw.choice([-1, 0, 1, 2, 5])
        common = [
            f"lower({text})",
            f"concat({text}, '!')",
            f"({text} || {self._of('text', 0)})",
            f"replace({text}, 'b', 'x')",
            f"CAST({draw.choice(['i8', 'i64', 'u8', 'b', 'd'])} AS VARCHAR)",
        ]
        return draw.choice(common if self._common else [*common, *self._more_texts(text, number)])

    def _more_texts(self, text: str, number: int) -> list[str]:
        draw = self._draw
        return [
            f"upper({text})",
            f"substr({text}, {number})",
            f"substr({text}, {number}, {draw.choice([0, 1, 3])})",
            f"left({text}, {number})",
            f"right({text}, {number})",
            f"trim({text})",
            f"lpad({text}, {max(number, 0)}, '*')",
            f"repeat({text}, {number})",
            f"reverse({text})",
            f"split_part({text}, ' ', {draw.choice([1, 2, -1])})",
            f"initcap({text})",
            f"translate({text}, 'abc', 'xy')",
            f"regexp_replace({text}, '[a-b]+', '<&>', 'g')",
            f"concat_ws('-', {text}, {self._column('text')})",
            f"CAST({draw.choice(['f64', 'ts', 'tz', 'dec', 'e', 'tn'])} AS VARCHAR)",
            f"array_to_string({draw.choice(['li', 'lt'])}, ',')",
            f"lt[{draw.choice([1, 2])}]",
            "md5(s)",
            "encode(bin, 'hex')",
        ]

    def _date(self, _: int) -> str:
        column = self._column("date")
        if self._common:
            return f"CAST({self._column('time')} AS DATE)"
        return self._draw.choice(
            [
                f"CAST({self._column('time')} AS DATE)",
                f"({column} + INTERVAL '{self._draw.choice(['1 day', '1 month', '-2 days'])}')",
                f"date_trunc('{self._draw.choice(['year', 'month', 'week', 'quarter'])}', {column})",
                f"make_date({self._draw.choice([1970, 2024])}, {self._draw.choice([1, 2, 12])}, 1)",
                f"to_date('{self._draw.choice(_MOMENTS).date()}')",
            ]
        )

    def numbers(self, depth: int) -> str:
        """A value of other number and time functions than those that conditions are made of."""
        return self._integer(depth) if self._draw.random() < 0.5 else self._double(depth)

    def texts(self, depth: int) -> str:
        """A value made of texts."""
        return self._text(depth)
