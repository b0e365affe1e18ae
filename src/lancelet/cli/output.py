"""What commands write, and how they understand ``NAME=VALUE``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pyarrow as pa

from lancelet.errors import InvalidInput

__all__ = ["pairs", "rows_text", "say"]

_WIDEST = 60


def say(text: object) -> None:
    """Write a line, or several."""
    sys.stdout.write(f"{text}\n")


def pairs(given: Sequence[str]) -> dict[str, str]:
    """Options that were given as ``NAME=VALUE``.

    >>> pairs(["region=eu", "key=a=b"])
    {'region': 'eu', 'key': 'a=b'}
    """
    for item in given:
        if "=" not in item:
            raise InvalidInput(f"{item!r} is no option", hint="write NAME=VALUE")
    return {name: value for name, _, value in (item.partition("=") for item in given)}


def rows_text(table: pa.Table) -> list[list[str]]:
    """The values of rows as short texts.

    >>> rows_text(pa.table({"a": [1, None], "b": ["x", "line\\n" * 50]}))[1][1]
    'line line line line line line line line line line line li...'
    """
    return [[_short(value) for value in row.values()] for row in table.to_pylist()]


def _short(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, list) and len(value) > 4:
        return f"[{', '.join(_short(item) for item in value[:3])}, ...]"
    text = f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."
