"""The filter language: text, pyarrow expressions and Substrait become typed trees, which Arrow computes."""

from lancelet.expr.evaluate import evaluate, keep
from lancelet.expr.parse import parse_filter, parse_value
from lancelet.expr.to_sql import to_sql
from lancelet.expr.tree import Call, Column, Expr, Literal, columns_of, conjuncts

__all__ = [
    "Call",
    "Column",
    "Expr",
    "Literal",
    "columns_of",
    "conjuncts",
    "evaluate",
    "keep",
    "parse_filter",
    "parse_value",
    "to_sql",
]
