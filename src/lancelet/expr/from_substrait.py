"""Substrait messages as typed trees: its functions, and those that its producers call by names of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.types as pat

from lancelet.errors import InvalidInput, Unsupported
from lancelet.expr.arrow_functions import arrow_call, offered
from lancelet.expr.building import call, constant, known_finite, known_infinite
from lancelet.expr.folding import folded
from lancelet.expr.functions import function_names, known
from lancelet.expr.functions.casts import cast
from lancelet.expr.functions.comparisons import one_of
from lancelet.expr.functions.conditional import case
from lancelet.expr.names import column_named, nearest
from lancelet.expr.tree import Expr, Literal
from lancelet.expr.types import is_list, plain
from lancelet.format.substrait import Branches, Conversion, Field, Invoke, Item, Node, OneOf, expressions_of

__all__ = ["invoked", "translated_message", "translated_node"]

#: Its names, and ours where they are others.
_RENAMED = {
    "equal": "=",
    "not_equal": "!=",
    "lt": "<",
    "lte": "<=",
    "gt": ">",
    "gte": ">=",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "modulus": "%",
    "modulo": "%",
    "negate": "negative",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "bitwise_not": "~",
    "shift_left": "<<",
    "shift_right": ">>",
    "is_nan": "isnan",
    "is_not_distinct_from": "is_not_distinct",
    "is_distinct_from": "is_distinct",
    "regexp_match_substring": "regexp_match",
    "regexp_count_substring": "regexp_count",
    "string_split": "string_to_array",
    "extract": "date_part",
}


def _between(value: Expr, low: Expr, high: Expr) -> Expr:
    return call("and", call(">=", value, low), call("<=", value, high))


def _xor(left: Expr, right: Expr) -> Expr:
    return call("!=", left, right)


def _logb(value: Expr, base: Expr) -> Expr:
    return call("log", base, value)


_BUILT: dict[str, Callable[..., Expr]] = {
    "between": _between,
    "xor": _xor,
    "logb": _logb,
    "is_finite": known_finite,
    "is_infinite": known_infinite,
}


def translated_message(message: bytes, schema: pa.Schema) -> Expr:
    """The one expression of a message, over the columns of a schema, which its names mean.

    >>> import pyarrow.compute as pc
    >>> schema = pa.schema({"x": pa.int8()})
    >>> translated_message(bytes((pc.field("x") > 3).to_substrait(schema)), schema).function
    '>'
    """
    nodes = expressions_of(message)
    if len(nodes) != 1:
        raise InvalidInput(f"the Substrait message holds {len(nodes)} expressions, expected one")
    return translated_node(nodes[0], schema)


def translated_node(node: Node, schema: pa.Schema) -> Expr:
    """One expression of a message."""

    def inner(part: Node) -> Expr:
        return translated_node(part, schema)

    match node:
        case Field(path):
            return column_named(path, schema)
        case Item(of, key):
            return _item(inner(of), key)
        case Invoke(function, arguments):
            return invoked(function, [inner(each) for each in arguments])
        case Branches(pairs, default):
            made = [(inner(test), inner(value)) for test, value in pairs]
            return folded(case(made, None if default is None else inner(default)))
        case OneOf(value, options):
            return folded(one_of(inner(value), [inner(each) for each in options]))
        case Conversion(value, kind, attempt):
            return folded(cast(inner(value), kind, attempt=attempt))
        case _:
            return Literal(node)


def invoked(name: str, arguments: Sequence[Expr]) -> Expr:
    """A function that a message calls; InvalidInput names the nearest of ours if there is none."""
    name = name.lower()
    build = _BUILT.get(name)
    if build is not None:
        try:
            return build(*arguments)
        except TypeError:
            raise InvalidInput(f"{name} with {len(arguments)} arguments is not what Substrait calls so") from None
    ours = _RENAMED.get(name, name)
    if known(ours) is None and offered(name):
        # pyarrow writes its own names where Substrait has none.
        return arrow_call(name, arguments, None)
    if known(ours) is None:
        raise Unsupported(
            f"Substrait function {name!r} is not offered", hint=nearest(name, [*_RENAMED, *function_names()])
        )
    if ours in ("+", "*") and len(arguments) > 2:
        return invoked(name, [invoked(name, arguments[:2]), *arguments[2:]])
    return call(ours, *arguments)


def _item(of: Expr, key: pa.Scalar) -> Expr:
    kind = plain(of.type)
    if pat.is_struct(kind):
        place = key.as_py()
        if pat.is_integer(key.type):
            if not 0 <= place < kind.num_fields:
                raise InvalidInput(f"there is no field {place} in {kind}")
            place = kind.field(place).name
        return call("get_field", of, constant(place))
    if is_list(kind):
        # Substrait counts from 0.
        return call("array_element", of, constant(key.as_py() + 1))
    if pat.is_map(kind):
        return call("map_value", of, Literal(key))
    raise InvalidInput(f"{of.type} has no items")
