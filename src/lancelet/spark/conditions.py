"""Conditions and values in Spark's SQL: which columns they name, and which of them mean the same to Lance."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TypeAlias

import pyarrow as pa
import pyarrow.types as pat
from pyspark.sql import Column
from pyspark.sql.functions import expr

from lancelet.errors import InvalidInput
from lancelet.expr import Call, Expr, Literal
from lancelet.expr import Column as LanceColumn

__all__ = ["Expression", "as_column", "equal_keys", "matching_name", "named_columns", "same_meaning"]

#: What users state conditions and values as: Spark's SQL, or a column of its functions.
Expression: TypeAlias = "str | Column"

_ALL = re.compile(r"[(,]\s*\*|\.\s*\*")
_PLAIN = re.compile(r"\w+")


def as_column(expression: Expression) -> Column:
    """An expression as a column of Spark's functions."""
    return expr(expression) if isinstance(expression, str) else expression


def named_columns(names: Sequence[str], expressions: Iterable[Expression | None]) -> list[str]:
    """Those of a table's columns that expressions may name: all that occur in their texts as words, perhaps more.

    >>> named_columns(["id", "name", "a b", "x"], ["t.ID > 5 and `a b` = 'name'"])
    ['id', 'name', 'a b']
    >>> named_columns(["id", "name"], ["hash(*) = 5"])
    ['id', 'name']
    """
    text = " ".join(str(item) for item in expressions if item is not None).lower()
    if _ALL.search(text):
        return list(names)
    words = set(_PLAIN.findall(text))
    return [name for name in names if (name.lower() in words if _PLAIN.fullmatch(name) else name.lower() in text)]


def matching_name(given: str, names: Sequence[str], alias: str | None = None) -> str:
    """The column that a user means: by name, by letters alone where one fits, perhaps behind the table's alias.

    >>> matching_name("t.ID", ["id", "x"], "t")
    'id'
    """
    name = given.strip()
    if alias is not None and name.lower().startswith(f"{alias.lower()}.") and name not in names:
        name = name[len(alias) + 1 :]
    if len(name) > 2 and name[0] == name[-1] == "`":
        name = name[1:-1].replace("``", "`")
    alike = [name] if name in names else [item for item in names if item.lower() == name.lower()]
    if len(alike) == 1:
        return alike[0]
    if "." in name and name.partition(".")[0] in names:
        hint = "set the whole struct"
        raise InvalidInput(f"{name!r} is part of a column, which cannot be set", column=name, hint=hint)
    raise InvalidInput(f"there is no column {name!r}", column=name, hint=f"there are: {', '.join(names)}")


_NAME = r"(?:(?P<alias>\w+)\s*\.\s*)?(?P<name>[A-Za-z_]\w*)"
_VALUE = r"-?\d+|'[^'\\]*'|date\s*'\d{4}-\d\d-\d\d'|true|false"
_TERM = re.compile(
    rf"{_NAME}\s*(?:(?P<compared>==|=|<=|>=|<|>)\s*(?P<value>{_VALUE})"
    rf"|in\s*\(\s*(?P<values>(?:{_VALUE})(?:\s*,\s*(?:{_VALUE}))*)\s*\)"
    rf"|between\s+(?P<low>{_VALUE})\s+and\s+(?P<high>{_VALUE})"
    r"|is\s+(?P<negated>not\s+)?(?P<null>null))\s*",
    re.IGNORECASE,
)
_AND = re.compile(r"and\b\s*", re.IGNORECASE)


def same_meaning(condition: Expression | None, columns: Mapping[str, pa.DataType], alias: str | None) -> Expr | None:
    """A condition that is true wherever Spark finds the one given true, for Lance to pass rows over; None if unknown.

    Only plain comparisons of columns with constants of their kind, joined by AND, are known to mean the same.

    >>> found = same_meaning("t.id >= 5 and name in ('a', 'b')", {"id": pa.int64(), "name": pa.string()}, "t")
    >>> found.function, [part.function for part in found.arguments]
    ('and', ['>=', 'in'])
    >>> same_meaning("id = 5 or id = 6", {"id": pa.int64()}, None) is None
    True
    """
    if not isinstance(condition, str):
        return None
    text, place, parts = condition.strip(), 0, []
    while True:
        found = _TERM.match(text, place)
        part = None if found is None else _term(found, columns, alias)
        if found is None or part is None:
            return None
        parts.append(part)
        place = found.end()
        if place == len(text):
            return parts[0] if len(parts) == 1 else Call("and", tuple(parts), pa.bool_())
        joint = _AND.match(text, place)
        if joint is None:
            return None
        place = joint.end()


def _term(found: re.Match[str], columns: Mapping[str, pa.DataType], alias: str | None) -> Expr | None:
    name, said = found["name"], found["alias"]
    if name not in columns or (said is not None and said != alias):
        return None
    column = LanceColumn((name,), columns[name])
    if found["null"] is not None:
        return Call("is_not_null" if found["negated"] else "is_null", (column,), pa.bool_())
    if found["compared"] is not None:
        return _compared(column, found["compared"].replace("==", "="), found["value"])
    if found["low"] is not None:
        bounds = _compared(column, ">=", found["low"]), _compared(column, "<=", found["high"])
        return None if None in bounds else Call("and", bounds, pa.bool_())  # type: ignore[arg-type]
    items = [_constant(item, column.type) for item in re.findall(_VALUE, found["values"], re.IGNORECASE)]
    if any(item is None for item in items):
        return None
    values = pa.scalar([item.as_py() for item in items if item is not None], pa.list_(column.type))
    return Call("in", (column, Literal(values)), pa.bool_())


def _compared(column: LanceColumn, function: str, text: str) -> Expr | None:
    value = _constant(text, column.type)
    return None if value is None else Call(function, (column, Literal(value)), pa.bool_())


def _constant(text: str, kind: pa.DataType) -> pa.Scalar | None:
    """A constant of just a column's kind: Spark would cast one of another kind, or the column, by rules of its own."""
    lower = text.lower()
    value: int | str | date | None = None
    if pat.is_integer(kind) and text[-1].isdigit():
        value = int(text)
    elif pat.is_boolean(kind) and lower in ("true", "false"):
        value = lower == "true"
    elif (pat.is_string(kind) or pat.is_large_string(kind)) and text[0] == "'":
        value = text[1:-1]
    elif pat.is_date32(kind) and lower.startswith("date"):
        value = _date(text[-11:-1])
    try:
        return None if value is None else pa.scalar(value, kind)
    except (pa.ArrowException, OverflowError):
        return None


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


_EQUAL = re.compile(r"(\w+)\s*\.\s*(\w+)\s*={1,2}\s*(\w+)\s*\.\s*(\w+)\s*")


def equal_keys(condition: Expression, alias: str) -> tuple[str, ...]:
    """The columns whose equality on both sides is all that a condition asks for; none where it asks for more.

    >>> equal_keys("t.id = s.id and s.day = t.day", "t"), equal_keys("t.id > s.id", "t")
    (('id', 'day'), ())
    """
    if not isinstance(condition, str):
        return ()
    names = []
    for part in re.split(r"\band\b", condition.strip(), flags=re.IGNORECASE):
        found = _EQUAL.fullmatch(part.strip())
        if found is None or found[2] != found[4] or (found[1] == alias) == (found[3] == alias):
            return ()
        names.append(found[2])
    return tuple(names)
