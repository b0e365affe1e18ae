"""What has a grammar of its own: lists, structs and maps written out, intervals, functions like ``TRIM(BOTH ...)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from lancelet.errors import Unsupported
from lancelet.expr import syntax
from lancelet.expr.functions.intervals import interval_from_text
from lancelet.expr.tree import Expr, Literal

if TYPE_CHECKING:
    from lancelet.expr.binder import Binder

__all__ = ["GRAMMAR"]

Node: TypeAlias = Any


def _array(self: Binder, node: Node) -> Expr:
    return self.call("make_array", [self.bind(item) for item in node.expressions])


def _struct(self: Binder, node: Node) -> Expr:
    arguments: list[Expr] = []
    for place, item in enumerate(node.expressions):
        named = type(item).__name__ == "PropertyEQ"
        name = item.this.name if named else f"c{place}"
        arguments += [Literal(pa.scalar(name)), self.bind(item.expression if named else item)]
    return self.call("named_struct", arguments)


def _map(self: Binder, node: Node) -> Expr:
    """``MAP {key: value}``."""
    pairs = [(item.this, item.expression) for item in node.this.expressions]
    keys = [Literal(pa.scalar(key.name)) if type(key).__name__ == "Identifier" else self.bind(key) for key, _ in pairs]
    values = [self.bind(value) for _, value in pairs]
    return self.call("map", [self.call("make_array", keys), self.call("make_array", values)])


def _interval(_: Binder, node: Node) -> Expr:
    value, unit = node.this, node.args.get("unit")
    text = str(value.this) if type(value).__name__ == "Literal" else None
    if type(value).__name__ == "Neg" and type(value.this).__name__ == "Literal":
        text = f"-{value.this.this}"
    if text is None or (unit is not None and type(unit).__name__ != "Var"):
        raise Unsupported(f"{syntax.written(node)!r}: an interval is written as a constant of one or more units")
    return Literal(interval_from_text(text, None if unit is None else str(unit.this)))


def _extract(self: Binder, node: Node) -> Expr:
    part = Literal(pa.scalar(str(node.this.name if hasattr(node.this, "name") else node.this).lower()))
    return self.call("date_part", [part, self.bind(node.expression)])


def _trim(self: Binder, node: Node) -> Expr:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "btrim")
    characters = node.args.get("expression")
    return self.call(name, [self.bind(node.this)] + ([] if characters is None else [self.bind(characters)]))


def _substring(self: Binder, node: Node) -> Expr:
    start, length = node.args.get("start"), node.args.get("length")
    arguments = [self.bind(node.this), Literal(pa.scalar(1)) if start is None else self.bind(start)]
    return self.call("substr", arguments + ([] if length is None else [self.bind(length)]))


def _overlay(self: Binder, node: Node) -> Expr:
    given = [node.this, node.expression, node.args.get("from_"), node.args.get("for_")]
    return self.call("overlay", [self.bind(each) for each in given if each is not None])


def _position(self: Binder, node: Node) -> Expr:
    return self.call("strpos", [self.bind(node.this), self.bind(node.args["substr"])])


def _at_time_zone(self: Binder, node: Node) -> Expr:
    return self.call("at_time_zone", [self.bind(node.this), self.bind(node.args["zone"])])


#: By the names of sqlglot's nodes.
GRAMMAR: dict[str, Callable[[Binder, Node], Expr]] = {
    "Array": _array,
    "Struct": _struct,
    "Tuple": _struct,
    "ToMap": _map,
    "Interval": _interval,
    "Extract": _extract,
    "Trim": _trim,
    "Substring": _substring,
    "StrPosition": _position,
    "Overlay": _overlay,
    "AtTimeZone": _at_time_zone,
}
