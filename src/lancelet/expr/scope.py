"""What names and statements within an expression mean: the columns of a table, and no statements in filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Protocol

import pyarrow as pa

from lancelet.errors import Unsupported
from lancelet.expr.names import column_named, find_column
from lancelet.expr.syntax import Name, written
from lancelet.expr.tree import Expr

__all__ = ["Scope", "TableScope"]


class Scope(Protocol):
    """What surrounds an expression."""

    @property
    def statement(self) -> bool:
        """Whether the expression is part of a statement."""

    def column(self, names: Sequence[Name]) -> Expr | None:
        """What names from the top down mean; None if the first of them means nothing."""

    def unknown(self, names: Sequence[Name]) -> NoReturn:
        """Say that names mean nothing."""

    def function(self, _node: Any) -> Expr | None:
        """What a function means here other than everywhere."""

    def subquery(self, node: Any, _value: Expr | None) -> Expr:
        """What a statement within the expression means."""

    def window(self, node: Any) -> Expr:
        """What a function over a window means."""

    def filtered(self, node: Any) -> Expr:
        """What a function with a filter of its own means."""


class TableScope:
    """The columns of one table.

    >>> TableScope(pa.schema({"x": pa.int8()})).column([Name("X", False)]).path
    ('x',)
    """

    statement = False

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def column(self, names: Sequence[Name]) -> Expr | None:
        """The column or struct field of these names."""
        return find_column([name.text for name in names], self._schema)

    def unknown(self, names: Sequence[Name]) -> NoReturn:
        """InvalidInput with the nearest name."""
        column_named([name.text for name in names], self._schema)
        raise AssertionError

    def function(self, _node: Any) -> Expr | None:
        """Functions mean here what they mean everywhere."""
        return None

    def subquery(self, node: Any, _value: Expr | None) -> Expr:
        """No statements in filters."""
        raise Unsupported(f"{written(node)!r}: statements are offered by sql(), not in filters")

    def window(self, node: Any) -> Expr:
        """No windows in filters."""
        raise Unsupported(f"{written(node)!r}: windows are offered by sql(), not in filters")

    def filtered(self, node: Any) -> Expr:
        """No aggregates in filters."""
        raise Unsupported(f"{written(node)!r}: aggregates are offered by sql(), not in filters")
