"""Parts of a condition: cut where ``and`` joins it, but for the two ends of a range, which are one question."""

from __future__ import annotations

import pyarrow as pa

from lancelet.expr import Call, Expr, conjuncts
from lancelet.index.queries import Between
from lancelet.query.terms import Term, terms_of

__all__ = ["parts_of"]


def parts_of(condition: Expr) -> tuple[Expr, ...]:
    """The parts that must all hold; a lower and an upper bound of one column stay together.

    Asked apart, each end of a narrow range would list half of the table.

    >>> from lancelet.expr import Column, Literal
    >>> x, five = Column(("x",), pa.int8()), Literal(pa.scalar(5, pa.int8()))
    >>> bounds = [Call(end, (x, five), pa.bool_()) for end in (">=", "<", "is_null")]
    >>> [part.function for part in parts_of(Call("and", tuple(bounds), pa.bool_()))]
    ['and', 'is_null']
    """
    found: list[Expr] = []
    waiting: dict[tuple[tuple[str, ...], bool], int] = {}
    for part in conjuncts(condition):
        end = _end(part)
        if end is None:
            found.append(part)
            continue
        other = waiting.pop((end[0], not end[1]), None)
        if other is None:
            waiting[end] = len(found)
            found.append(part)
        else:
            found[other] = Call("and", (found[other], part), pa.bool_())
    return tuple(found)


def _end(part: Expr) -> tuple[tuple[str, ...], bool] | None:
    """The column that a part bounds at one end, and whether it is the upper end; None for other parts."""
    term = terms_of(part)
    if not isinstance(term, Term) or not isinstance(term.query, Between):
        return None
    query = term.query
    return None if query.low is not None and query.high is not None else (term.path, query.high is not None)
