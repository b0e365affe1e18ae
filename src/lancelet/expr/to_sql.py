"""Typed trees as text that is read back as the same tree."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pat

from lancelet.expr.arrow_names import arrow_name
from lancelet.expr.casting import converted
from lancelet.expr.tree import Call, Column, Expr, Literal
from lancelet.expr.types import as_decimal, is_binary, is_list, is_text, plain

__all__ = ["literal_to_sql", "to_sql"]

_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_WORDS = """
    all and any array as asc at between both by case cast collate convert cross current_date current_time
    current_timestamp date datetime decimal desc distinct div else end escape except exists extract false fetch
    filter for from full glob group having if ilike in inner intersect interval into is isnull join key leading
    left like limit map natural not notnull null numeric offset on or order outer over overlaps overlay partition
    placing position regexp right rlike row select set similar some struct substring table then time timestamp
    timestamptz to trailing trim true try_cast union unknown unnest using values when where window with xor
"""
#: Names that are put between backticks: they mean something else where a column may stand.
_RESERVED = frozenset(_WORDS.split())
#: How tight operators bind; what binds less is put between parentheses.
_LEVELS = {
    "or": 1,
    "and": 2,
    "not": 3,
    "is": 4,
    "compare": 5,
    "match": 6,
    "bits": 7,
    "sum": 8,
    "product": 9,
    "atom": 20,
}
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_IS = {
    "is_null": "IS NULL",
    "is_not_null": "IS NOT NULL",
    "is_true": "IS TRUE",
    "is_not_true": "IS NOT TRUE",
    "is_false": "IS FALSE",
    "is_not_false": "IS NOT FALSE",
}
_BETWEEN = {"is_distinct": ("IS DISTINCT FROM", "is"), "is_not_distinct": ("IS NOT DISTINCT FROM", "is")}
_MATCHES = {"like": "LIKE", "ilike": "ILIKE", "similar_to": "SIMILAR TO"}
_BITS = ("&", "|", "^", "<<", ">>", "div")


def to_sql(expr: Expr) -> str:
    """The text of an expression.

    >>> from lancelet.expr.parse import parse_filter
    >>> to_sql(parse_filter("x in (1,2) and not (y like 'a%')", pa.schema({"x": pa.int8(), "y": pa.string()})))
    "x IN (1, 2) AND NOT y LIKE 'a%'"
    """
    return _written(expr)[0]


def _written(expr: Expr) -> tuple[str, int]:
    """The text, and how tight its operator binds."""
    if isinstance(expr, Column):
        return ".".join(map(_name, expr.path)), _LEVELS["atom"]
    if isinstance(expr, Literal):
        return literal_to_sql(expr.value), _LEVELS["atom"]
    write = _WRITERS.get(expr.function)
    if write is not None:
        return write(expr)
    return f"{expr.function}({', '.join(to_sql(argument) for argument in expr.arguments)})", _LEVELS["atom"]


def _name(name: str) -> str:
    if _SIMPLE.match(name) and name.lower() not in _RESERVED:
        return name
    return f"`{name.replace('`', '``')}`"


def _within(expr: Expr, level: str, *, right: bool = False) -> str:
    """An operand, between parentheses where its operator binds less tight than the one around it."""
    text, own = _written(expr)
    return f"({text})" if own < _LEVELS[level] + right else text


def _joined(call: Call) -> tuple[str, int]:
    level = call.function
    parts = [_within(argument, level, right=True) for argument in call.arguments]
    return f" {level.upper()} ".join(parts), _LEVELS[level]


def _not(call: Call) -> tuple[str, int]:
    return f"NOT {_within(call.arguments[0], 'not')}", _LEVELS["not"]


def _compared(call: Call) -> tuple[str, int]:
    left, right = call.arguments
    name = "<>" if call.function == "!=" else call.function
    return f"{_within(left, 'compare', right=True)} {name} {_beside(right, left)}", _LEVELS["compare"]


def _beside(expr: Expr, other: Expr) -> str:
    """What is compared; a constant is written without its type where it takes that of the other side."""
    if isinstance(expr, Literal) and not isinstance(other, Literal) and plain(other.type) == expr.type:
        short = _short(expr.value)
        if short is not None:
            return short
    return _within(expr, "compare", right=True)


def _short(value: pa.Scalar) -> str | None:
    kind = value.type
    if not value.is_valid:
        return None
    if pat.is_integer(kind):
        return str(value.as_py())
    if pat.is_floating(kind):
        return repr(value.as_py()) if math.isfinite(value.as_py()) else None
    if pat.is_decimal(kind):
        text = format(value.as_py(), "f")
        return text if len(text) <= 38 else None
    if is_text(kind):
        return _quoted(value.as_py())
    return _bytes(value) if is_binary(kind) else None


def _in(call: Call) -> tuple[str, int]:
    value, items = call.arguments
    if not isinstance(items, Literal) or not len(items.value.values):
        return f"({_within(value, 'is', right=True)} IS NULL AND NULL)", _LEVELS["atom"]
    texts = [_short(item) or literal_to_sql(item) for item in items.value.values]
    return f"{_within(value, 'match', right=True)} IN ({', '.join(texts)})", _LEVELS["match"]


def _is(call: Call) -> tuple[str, int]:
    return f"{_within(call.arguments[0], 'is', right=True)} {_IS[call.function]}", _LEVELS["is"]


def _distinct(call: Call) -> tuple[str, int]:
    left, right = (_within(argument, "is", right=True) for argument in call.arguments)
    return f"{left} {_BETWEEN[call.function][0]} {right}", _LEVELS["is"]


def _matched(call: Call) -> tuple[str, int]:
    value, pattern, *escape = (_within(argument, "match", right=True) for argument in call.arguments)
    tail = f" ESCAPE {escape[0]}" if escape else ""
    return f"{value} {_MATCHES[call.function]} {pattern}{tail}", _LEVELS["match"]


def _infix(level: str) -> Callable[[Call], tuple[str, int]]:
    def write(call: Call) -> tuple[str, int]:
        first, *rest = map(_as_given, call.arguments)
        parts = [_within(first, level), *(_within(argument, level, right=True) for argument in rest)]
        return f" {call.function.upper()} ".join(parts), _LEVELS[level]

    return write


def _as_given(operand: Expr) -> Expr:
    """An operand without the cast to a decimal that it gets beside one."""
    if isinstance(operand, Call) and operand.function == "cast":
        inner = operand.arguments[0]
        if pat.is_integer(inner.type) and as_decimal(inner.type) == operand.type:
            return inner
    return operand


def _negative(call: Call) -> tuple[str, int]:
    return f"(- {_within(call.arguments[0], 'atom')})", _LEVELS["atom"]


def _case(call: Call) -> tuple[str, int]:
    *pairs, default = (to_sql(argument) for argument in call.arguments)
    branches = " ".join(f"WHEN {test} THEN {value}" for test, value in zip(pairs[::2], pairs[1::2], strict=True))
    return f"CASE {branches} ELSE {default} END", _LEVELS["atom"]


def _cast(call: Call) -> tuple[str, int]:
    name = "arrow_cast" if call.function == "cast" else "arrow_try_cast"
    return f"{name}({to_sql(call.arguments[0])}, {_quoted(arrow_name(call.type))})", _LEVELS["atom"]


def _struct(call: Call) -> tuple[str, int]:
    parts = [f"{_quoted(field.name)}, {to_sql(value)}" for field, value in zip(call.type, call.arguments, strict=True)]
    return f"named_struct({', '.join(parts)})", _LEVELS["atom"]


_WRITERS: dict[str, Callable[[Call], tuple[str, int]]] = {
    "and": _joined,
    "or": _joined,
    "not": _not,
    "in": _in,
    "case": _case,
    "cast": _cast,
    "try_cast": _cast,
    "struct": _struct,
    "negative": _negative,
    **dict.fromkeys(_COMPARISONS, _compared),
    **dict.fromkeys(_IS, _is),
    **dict.fromkeys(_BETWEEN, _distinct),
    **dict.fromkeys(_MATCHES, _matched),
    **{name: _infix("bits") for name in (*_BITS, "||")},
    **{name: _infix("sum") for name in "+-"},
    **{name: _infix("product") for name in "*/%"},
}


def literal_to_sql(value: pa.Scalar) -> str:
    """A constant with its type, where that is not the one that its plain text has.

    >>> literal_to_sql(pa.scalar(1)), literal_to_sql(pa.scalar(1, pa.int8()))
    ('1', "arrow_cast(1, 'Int8')")
    """
    kind = value.type
    if pat.is_null(kind):
        return "NULL"
    if not value.is_valid:
        return _typed("NULL", kind)
    if isinstance(value, pa.ExtensionScalar):
        return literal_to_sql(value.value)
    if pat.is_dictionary(kind):
        return _typed(literal_to_sql(value.value), kind)
    if pat.is_boolean(kind):
        return "TRUE" if value.as_py() else "FALSE"
    if pat.is_integer(kind):
        own = pa.int64() if -(2**63) <= value.as_py() < 2**63 else pa.uint64()
        return str(value.as_py()) if kind == own else _typed(str(value.as_py()), kind)
    if pat.is_floating(kind):
        number = value.as_py()
        text = repr(number) if math.isfinite(number) else _quoted("NaN" if math.isnan(number) else str(number))
        return text if kind == pa.float64() and text[0] != "'" else _typed(text, kind)
    if is_text(kind) or pat.is_string_view(kind):
        return _quoted(value.as_py()) if kind == pa.string() else _typed(_quoted(value.as_py()), kind)
    if is_binary(kind) or pat.is_binary_view(kind):
        return _bytes(value) if kind == pa.binary() else _typed(_bytes(value), kind)
    if pat.is_decimal(kind):
        return _typed(_quoted(format(value.as_py(), "f")), kind)
    return _time(value) if pat.is_temporal(kind) else _nested(value)


def _typed(text: str, kind: pa.DataType) -> str:
    return f"arrow_cast({text}, {_quoted(arrow_name(kind))})"


def _quoted(text: str) -> str:
    return f"'{text.replace(chr(39), chr(39) * 2)}'"


def _bytes(value: pa.Scalar) -> str:
    return f"X'{value.as_py().hex().upper()}'"


def _time(value: pa.Scalar) -> str:
    kind = value.type
    if pat.is_interval(kind):
        months, days, nanoseconds = value.as_py()
        return f"INTERVAL '{months} months {days} days {nanoseconds} nanoseconds'"
    ticks = value.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    if pat.is_date32(kind) and -719_162 <= ticks.as_py() <= 2_932_896:
        return f"DATE '{value}'"
    if kind == pa.timestamp("us") and abs(ticks.as_py()) < 60_000_000_000_000_000:
        shown = converted(pa.repeat(value, 1), pa.string())[0].as_py()
        return f"TIMESTAMP '{shown}'"
    return _typed(str(ticks.as_py()), kind)


def _nested(value: pa.Scalar) -> str:
    kind = value.type
    if is_list(kind):
        text = f"[{', '.join(literal_to_sql(item) for item in value.values)}]"
        simple = kind == pa.list_(kind.value_type) and kind.value_type in (
            pa.int64(),
            pa.float64(),
            pa.string(),
            pa.bool_(),
        )
        return text if simple and len(value.values) else _typed(text, kind)
    if pat.is_map(kind):
        entries = value.values
        keys, items = (pa.ListArray.from_arrays([0, len(entries)], entries.field(at))[0] for at in (0, 1))
        return f"map({literal_to_sql(keys)}, {literal_to_sql(items)})"
    parts = [f"{_quoted(field.name)}, {literal_to_sql(value[place])}" for place, field in enumerate(kind)]
    return f"named_struct({', '.join(parts)})"
