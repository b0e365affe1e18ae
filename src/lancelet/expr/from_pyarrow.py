"""pyarrow expressions as typed trees, whatever pyarrow itself could say of them in Substrait."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lancelet.errors import InvalidInput, Unsupported
from lancelet.expr.arrow_functions import arrow_call
from lancelet.expr.arrow_wire import Step, steps_of
from lancelet.expr.from_substrait import translated_message
from lancelet.expr.names import column_named
from lancelet.expr.tree import Expr, Literal

__all__ = ["translated"]


@dataclass(slots=True)
class _Open:
    """A function whose arguments are being read."""

    name: str
    arguments: list[Expr] = field(default_factory=list)
    options: pa.StructScalar | None = None


def translated(expression: pc.Expression, schema: pa.Schema) -> Expr:
    """A pyarrow expression over the columns of a schema. Of nulls and not-a-number it means what SQL does.

    >>> translated(pc.field("x").isin([1, 2.5]), pa.schema({"x": pa.int8()})).arguments[1].value
    <pyarrow.ListScalar: [1]>
    """
    try:
        steps = list(steps_of(expression))
    except Unsupported:
        return _by_place(expression, schema)
    whole = _Open("")
    waiting = [whole]
    names: list[str] = []
    expected = 0
    for step in steps:
        top = waiting[-1]
        if step.kind == "nested_field_ref":
            expected = int(step.name)
        elif step.kind == "field_ref":
            names.append(step.name)
            if len(names) >= expected:
                top.arguments.append(column_named(names, schema))
                names, expected = [], 0
        elif step.kind == "call":
            waiting.append(_Open(step.name))
        elif step.kind == "end" and len(waiting) > 1:
            waiting.pop()
            waiting[-1].arguments.append(arrow_call(top.name, top.arguments, top.options))
        else:
            _take(top, step)
    if len(whole.arguments) != 1:
        raise InvalidInput(f"a pyarrow expression of {len(whole.arguments)} values, expected one")
    return whole.arguments[0]


def _take(call: _Open, step: Step) -> None:
    if step.kind == "literal":
        call.arguments.append(Literal(step.value))
    elif step.kind == "options":
        call.options = step.value
    else:
        raise Unsupported(f"a step {step.kind!r} of a pyarrow expression is not known to this release")


def _by_place(expression: pc.Expression, schema: pa.Schema) -> Expr:
    """What names columns by their places, which pyarrow writes in Substrait alone."""
    try:
        message = bytes(expression.to_substrait(schema, allow_arrow_extensions=True))
    except pa.ArrowException as error:
        first = str(error).splitlines()[0]
        raise Unsupported(f"the pyarrow expression cannot be read: {first}", hint="name columns, not places") from None
    return translated_message(message, schema)
