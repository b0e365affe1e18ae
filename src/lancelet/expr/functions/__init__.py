"""The functions of expressions, by name: one module for each family."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from lancelet.errors import InvalidInput
from lancelet.expr.functions.define import Function
from lancelet.expr.names import nearest

__all__ = ["function_names", "known", "lookup"]


def _families() -> tuple[ModuleType, ...]:
    from lancelet.expr.functions import (
        arithmetic,
        bits,
        calendar,
        casts,
        clock,
        comparisons,
        conditional,
        json,
        list_changes,
        list_tests,
        list_values,
        logic,
        math,
        patterns,
        structs,
        text,
        text_values,
    )

    return (
        logic,
        comparisons,
        arithmetic,
        bits,
        conditional,
        casts,
        math,
        text,
        text_values,
        patterns,
        calendar,
        clock,
        list_tests,
        list_changes,
        list_values,
        structs,
        json,
    )


@cache
def _table() -> dict[str, Function]:
    table: dict[str, Function] = {}
    for family in _families():
        for function in family.FUNCTIONS:
            for name in (function.name, *function.aliases):
                table[name] = function
    return table


def known(name: str) -> Function | None:
    """The function of a name, in any case; None if there is none."""
    return _table().get(name.lower())


def lookup(name: str) -> Function:
    """The function of a name; InvalidInput names the nearest if there is none.

    >>> lookup("is_valid").name
    'is_not_null'
    """
    found = known(name)
    if found is None:
        raise InvalidInput(f"there is no function {name!r}", hint=nearest(name, function_names()))
    return found


def function_names() -> list[str]:
    """All names that are written as functions, with their aliases."""
    return sorted(name for name in _table() if name[0].isalpha())
