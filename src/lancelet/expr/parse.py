"""Text to typed trees: sqlglot reads the syntax, the schema says what names and types mean."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput, Unsupported
from lancelet.expr.tree import Call, Column, Expr, Literal, literal

__all__ = ["parse_filter", "parse_value"]

_COMPARISONS = {"EQ": "=", "NEQ": "!=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def parse_filter(text: str, schema: pa.Schema) -> Expr:
    """The condition that a text states of rows of a schema.

    >>> parse_filter("x >= 3", pa.schema({"x": pa.int8()})).function
    '>='
    """
    expr = parse_value(text, schema)
    if not pat.is_boolean(expr.type):
        raise InvalidInput(f"the filter {text!r} gives {expr.type}, expected a condition")
    return expr


def parse_value(text: str, schema: pa.Schema) -> Expr:
    """The value that a text computes from rows of a schema.

    >>> parse_value("x + 3", pa.schema({"x": pa.int64()})).type
    DataType(int64)
    """
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(text)
    except (SqlglotError, RecursionError) as error:
        raise InvalidInput(f"cannot read {text!r}: {str(error).splitlines()[0]}") from None
    return _bound(tree, schema)


def _bound(node: Any, schema: pa.Schema) -> Expr:
    bind = _BINDERS.get(type(node).__name__)
    if bind is None:
        raise Unsupported(f"{node.sql()!r} is not offered in filters")
    return bind(node, schema)


def _column(node: Any, schema: pa.Schema) -> Expr:
    path = tuple(part.name for part in node.parts)
    field, kind = None, pa.struct(list(schema))
    for name in path:
        names = [kind.field(at).name for at in range(kind.num_fields)] if pat.is_struct(kind) else []
        if name not in names:
            near = get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names[:20])}"
            raise InvalidInput(f"there is no column {'.'.join(path)!r}", column=".".join(path), hint=hint)
        field = kind.field(names.index(name))
        kind = field.type
    return Column(path, kind)


def _literal(node: Any, _schema: pa.Schema) -> Expr:
    if node.is_string:
        return literal(node.this)
    text = node.this
    return literal(int(text), pa.int64()) if text.isdigit() else literal(float(text))


def _negative(node: Any, schema: pa.Schema) -> Expr:
    inner = _bound(node.this, schema)
    if isinstance(inner, Literal):
        return Literal(pc.negate_checked(inner.value))
    return Call("-", (literal(0, inner.type), inner), inner.type)


def _comparison(node: Any, schema: pa.Schema) -> Expr:
    left, right = _bound(node.left, schema), _bound(node.right, schema)
    return _compared(_COMPARISONS[type(node).__name__], left, right)


def _compared(name: str, left: Expr, right: Expr) -> Expr:
    if isinstance(left, Literal) and not isinstance(right, Literal):
        name, left, right = _MIRRORED[name], right, left
    left, right = _alike(left, right)
    return Call(name, (left, right), pa.bool_())


def _alike(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Both sides of one type: the constant takes the other's type where that loses nothing."""
    if left.type == right.type:
        return left, right
    if isinstance(right, Literal) and (cast := _exactly(right, left.type)) is not None:
        return left, cast
    if isinstance(left, Literal) and (cast := _exactly(left, right.type)) is not None:
        return cast, right
    numbers = pat.is_integer, pat.is_floating
    if any(test(left.type) for test in numbers) and any(test(right.type) for test in numbers):
        wide = pa.float64() if pat.is_floating(left.type) or pat.is_floating(right.type) else pa.int64()
        return _cast(left, wide), _cast(right, wide)
    raise InvalidInput(f"cannot compare {left.type} with {right.type}")


def _exactly(constant: Literal, kind: pa.DataType) -> Literal | None:
    if not constant.value.is_valid:
        return literal(None, kind)
    try:
        made = constant.value.cast(kind)
        same = made.cast(constant.type).equals(constant.value) or pat.is_temporal(kind)
    except pa.ArrowException:
        return None
    return Literal(made) if same else None


def _cast(expr: Expr, kind: pa.DataType) -> Expr:
    return expr if expr.type == kind else Call("cast", (expr,), kind)


def _arithmetic(node: Any, schema: pa.Schema) -> Expr:
    left, right = _alike(_bound(node.left, schema), _bound(node.right, schema))
    return Call(_ARITHMETIC[type(node).__name__], (left, right), left.type)


def _joined(name: str) -> Callable[[Any, pa.Schema], Expr]:
    def bind(node: Any, schema: pa.Schema) -> Expr:
        parts = [_bound(part, schema) for part in node.flatten()]
        flat = [
            inner
            for part in parts
            for inner in (part.arguments if isinstance(part, Call) and part.function == name else (part,))
        ]
        return Call(name, tuple(flat), pa.bool_())

    return bind


def _in(node: Any, schema: pa.Schema) -> Expr:
    value = _bound(node.this, schema)
    found = [_bound(item, schema) for item in node.expressions]
    constants = [item for item in found if isinstance(item, Literal)]
    if len(constants) == len(found):
        items = [_exactly(item, value.type) for item in constants]
        if None not in items:
            values = pa.array([item.value.as_py() for item in items if item is not None], value.type)
            return Call("in", (value, Literal(pa.scalar(values, pa.list_(value.type)))), pa.bool_())
    return Call("or", tuple(_compared("=", value, item) for item in found), pa.bool_())


def _between(node: Any, schema: pa.Schema) -> Expr:
    value = _bound(node.this, schema)
    low, high = _bound(node.args["low"], schema), _bound(node.args["high"], schema)
    return Call("and", (_compared(">=", value, low), _compared("<=", value, high)), pa.bool_())


def _is(node: Any, schema: pa.Schema) -> Expr:
    value, what = _bound(node.this, schema), type(node.expression).__name__
    if what == "Null":
        return Call("is_null", (value,), pa.bool_())
    raise Unsupported(f"{node.sql()!r} is not offered in filters")


def _not(node: Any, schema: pa.Schema) -> Expr:
    inner = _bound(node.this, schema)
    if isinstance(inner, Call) and inner.function == "is_null":
        return Call("is_not_null", inner.arguments, pa.bool_())
    return Call("not", (inner,), pa.bool_())


_BINDERS: dict[str, Callable[[Any, pa.Schema], Expr]] = {
    "Column": _column,
    "Dot": _column,
    "Literal": _literal,
    "Boolean": lambda node, _: literal(bool(node.this)),
    "Null": lambda _node, _schema: literal(None),
    "Neg": _negative,
    "Paren": lambda node, schema: _bound(node.this, schema),
    "And": _joined("and"),
    "Or": _joined("or"),
    "Not": _not,
    "In": _in,
    "Between": _between,
    "Is": _is,
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
}
