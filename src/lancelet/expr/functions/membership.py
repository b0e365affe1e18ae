"""Membership in long lists of constants, fitted to the value's type in one go."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr.casting import converted
from lancelet.expr.functions.comparisons import one_of
from lancelet.expr.functions.define import cast_to
from lancelet.expr.tree import Call, Expr, Literal
from lancelet.expr.types import is_text, plain

__all__ = ["one_of_list"]


def one_of_list(value: Expr, items: pa.Array) -> Expr:
    """Whether a value is one of many constants of one type.

    >>> from lancelet.expr.tree import Column
    >>> one_of_list(Column(("x",), pa.int8()), pa.array([1, 2, 300])).arguments[1].value
    <pyarrow.ListScalar: [1, 2]>
    """
    kind = plain(value.type)
    made = _fitted(items.drop_null(), kind)
    if made is None:
        return one_of(value, [Literal(item) for item in items])
    if items.null_count:
        made = pa.concat_arrays([made, pa.nulls(1, made.type)])
    lists = pa.ListArray.from_arrays(pa.array([0, len(made)], pa.int32()), made)
    return Call("in", (cast_to(value, kind), Literal(lists[0])), pa.bool_())


def _fitted(items: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """The items as values of a type, without those that are none; None where each has to be looked at."""
    given = items.type
    if given == kind:
        return items
    if is_text(given) and is_text(kind):
        return items.cast(kind)
    if pat.is_integer(given) and pat.is_integer(kind):
        return converted(items, kind).drop_null()
    if pat.is_integer(given) and kind in (pa.float32(), pa.float64()):
        return items.cast(kind, safe=False)
    if pat.is_floating(given) and pat.is_floating(kind) and not pat.is_float16(kind):
        return items.cast(kind, safe=False)
    if pat.is_floating(given) and pat.is_integer(kind):
        made = converted(items, kind)
        whole = pc.equal(made.cast(given, safe=False), items)
        return made.filter(whole)
    if is_text(given) and pat.is_temporal(kind):
        finest = pa.timestamp("us") if pat.is_date(kind) else kind
        made = converted(items, finest)
        if made.null_count:
            odd = items.filter(made.is_null())[0].as_py()
            raise InvalidInput(f"{odd!r} is no {kind}")
        small = converted(made, kind)
        return small.filter(pc.equal(converted(small, finest), made))
    return None
