"""Names in expressions: which column or struct field one means, and what was probably meant by one that is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import pyarrow as pa
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr.tree import Column, dotted

__all__ = ["SYSTEM_COLUMNS", "column_named", "field_named", "find_column", "nearest"]

#: What is known of each row without being stored in a column.
SYSTEM_COLUMNS = ("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version")

_MOST_NAMES = 20


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not known.

    >>> nearest("pric", ["price", "size"]), nearest("x", ["price", "size"])
    ("did you mean 'price'?", 'there are price, size')
    """
    names = list(known)
    lower = {each.lower(): each for each in names}
    found = get_close_matches(name.lower(), lower, 1)
    if found:
        return f"did you mean {lower[found[0]]!r}?"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"there are {', '.join(names[:_MOST_NAMES])}{more}" if names else "there are none"


def find_column(path: Sequence[str], schema: pa.Schema) -> Column | None:
    """The column that names from the top down mean; None if the first one is no column.

    A name means the one that is spelled so; failing that, the only one that differs in case alone.
    """
    place = _place(path[0], schema.names)
    if place is None:
        system = path[0].lower()
        return Column((system,), pa.uint64()) if len(path) == 1 and system in SYSTEM_COLUMNS else None
    found = Column((schema.names[place],), schema.field(place).type)
    for name in path[1:]:
        found = field_named(found, name)
    return found


def column_named(path: Sequence[str], schema: pa.Schema) -> Column:
    """The column that names from the top down mean; InvalidInput names the nearest if there is none.

    >>> column_named(["S", "x"], pa.schema({"s": pa.struct({"x": pa.int8()})})).path
    ('s', 'x')
    """
    found = find_column(path, schema)
    if found is None:
        text = dotted(tuple(path))
        raise InvalidInput(f"there is no column {text!r}", column=text, hint=nearest(path[0], schema.names))
    return found


def field_named(column: Column, name: str) -> Column:
    """A field of a struct column; InvalidInput if it has none of that name or is no struct."""
    text = dotted((*column.path, name))
    if not pat.is_struct(column.type):
        owner = dotted(column.path)
        raise InvalidInput(f"there is no column {text!r}: {owner!r} is {column.type}, expected a struct", column=text)
    names = [field.name for field in column.type]
    place = _place(name, names)
    if place is None:
        raise InvalidInput(f"there is no column {text!r}", column=text, hint=nearest(name, names))
    return Column((*column.path, names[place]), column.type.field(place).type)


def _place(name: str, names: Sequence[str]) -> int | None:
    if name in names:
        return names.index(name)
    alike = [place for place, each in enumerate(names) if each.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None
