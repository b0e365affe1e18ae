"""The plainest conditions, read without a parser: columns compared with integers and texts, joined by AND.

    id = 7        a >= 10 AND a < 20        name = 'x'

What they mean is worked out by the same functions; only the cutting of the text is spared, which takes longer than
looking up a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pat

from lancelet.expr.folding import folded
from lancelet.expr.functions.comparisons import compared
from lancelet.expr.functions.logic import all_of
from lancelet.expr.literals import number
from lancelet.expr.tree import Column, Expr, Literal

__all__ = ["quick_condition"]

#: A comparison and what follows it. No escapes in texts, and no more digits than any parser takes for an integer.
_PART = re.compile(
    r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(<=|>=|=|<|>)\s*(?:(-?[0-9]{1,18})|'([^'\\]*)')\s*(?:(\bAND\b)|$)",
    re.ASCII | re.IGNORECASE,
)
_LONGEST = 200


def quick_condition(text: str, schema: pa.Schema, plain_name: Callable[[str], bool] = lambda _: True) -> Expr | None:
    """The condition that a text states, if it is one of the plainest; None for all others, the wrong ones among them.

    ``plain_name`` tells whether the parser takes a word at the beginning of a comparison for a column's name.

    >>> schema = pa.schema({"x": pa.int8()})
    >>> quick_condition("x >= 3", schema).function, quick_condition("x >= 3 OR x = 1", schema)
    ('>=', None)
    """
    if len(text) > _LONGEST:
        return None
    parts = []
    at, more = 0, True
    while more:
        found = _PART.match(text, at)
        if found is None:
            return None
        name, how, digits, words, joined = found.groups()
        place = schema.get_field_index(name)
        if place < 0 or not plain_name(name):
            return None
        left = Column((name,), schema.field(place).type)
        if digits is not None and (pat.is_integer(left.type) or pat.is_floating(left.type)):
            right = number(digits)
        elif words is not None and (pat.is_string(left.type) or pat.is_large_string(left.type)):
            right = Literal(pa.scalar(words, pa.string()))
        else:
            return None
        parts.append(folded(compared(how, left, right)))
        at, more = found.end(), joined is not None
    return parts[0] if len(parts) == 1 else all_of(parts)
