"""Paths of fields: names with dots between them, and backticks around a name that has odd letters.

point.x      `a.b`.c      `tick``s`
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lancelet.errors import InvalidInput

__all__ = ["format_field_path", "parse_field_path"]

_STEP = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
_PLAIN = re.compile(r"\w*")


def parse_field_path(path: str) -> list[str]:
    """The names that a path goes through, from the top; InvalidInput where it is no path.

    >>> parse_field_path("a.`b.c`"), parse_field_path("a b")
    (['a', 'b.c'], ['a b'])
    """
    names: list[str] = []
    place = 0
    while True:
        found = _STEP.match(path, place)
        if found is None:
            raise InvalidInput(f"{path!r} is no path of a field: expected a name after {path[:place]!r}")
        names.append(found[1].replace("``", "`") if found[2] is None else found[2])
        place = found.end()
        if not names[-1]:
            raise InvalidInput(f"{path!r} is no path of a field: a name is empty")
        if place == len(path):
            return names
        if path[place] != ".":
            raise InvalidInput(f"{path!r} is no path of a field: expected a dot after {path[:place]!r}")
        place += 1


def format_field_path(names: Sequence[str]) -> str:
    """The path through some names, which :func:`parse_field_path` reads back.

    >>> format_field_path(["a", "b.c", "d`e"])
    'a.`b.c`.`d``e`'
    """
    return ".".join(name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`" for name in names)
