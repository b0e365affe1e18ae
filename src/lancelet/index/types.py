"""Which types of values the indexes take, and whether a question is about such a value."""

from __future__ import annotations

import pyarrow as pa

from lancelet.index.order import orderable
from lancelet.index.queries import Between, Equals, IsIn, IsNull, Query

__all__ = ["fits"]


def fits(query: Query, kind: pa.DataType) -> bool:
    """Whether a query about equality, ranges or nulls asks with values of the type that is indexed.

    >>> fits(Equals(pa.scalar(1)), pa.int64()), fits(Equals(pa.scalar(1)), pa.int8())
    (True, False)
    """
    match query:
        case IsNull():
            return True
        case Equals(value):
            return orderable(kind) and value.type == kind and value.is_valid
        case IsIn(values):
            return orderable(kind) and values.type == kind and not values.null_count
        case Between(low, high):
            bounds = [bound for bound in (low, high) if bound is not None]
            return orderable(kind) and all(bound.type == kind and bound.is_valid for bound in bounds)
    return False
