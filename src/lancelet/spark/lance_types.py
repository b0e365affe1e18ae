"""Lance types as text, for the metadata of Spark columns: what the Spark type alone does not say.

    uint16   halffloat   fixed_size_list:float:128   large_list<uint8>   map<string, list<struct>>

Leaves are Lance's own logical types. A struct within ends the text, because its fields have metadata of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.format.arrow import field_from_arrow
from lancelet.format.fields import EXTENSION_NAME, Field
from lancelet.format.types import arrow_type

__all__ = ["TypeText", "leaf_type", "parse_type", "type_text"]

_LISTS = ("list", "large_list")


@dataclass(frozen=True, slots=True)
class TypeText:
    """A type taken apart: its name and what it holds.

    >>> str(TypeText("list", (TypeText("int8"),)))
    'list<int8>'
    """

    name: str
    parts: tuple[TypeText, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(str, self.parts))}>" if self.parts else self.name


def type_text(field: pa.Field) -> TypeText:
    """The Lance type of an Arrow field.

    >>> str(type_text(pa.field("a", pa.large_list(pa.list_(pa.float16(), 3)))))
    'large_list<fixed_size_list:halffloat:3>'
    """
    return _text(field_from_arrow(field))


def _text(field: Field) -> TypeText:
    name = field.logical_type.partition(".")[0]
    if name in _LISTS:
        return TypeText(name, (_text(field.children[0]),))
    if name == "map":
        return TypeText(name, tuple(map(_text, field.children[0].children)))
    return TypeText(field.logical_type)


def parse_type(text: str) -> TypeText:
    """The type that a text says; InvalidInput where it says none.

    >>> parse_type("map<string, list<struct>>").parts[1].name
    'list'
    """
    made, rest = _parse(text.strip(), text, 0)
    if rest:
        raise _wrong(text)
    return made


def _parse(rest: str, whole: str, depth: int) -> tuple[TypeText, str]:
    if depth > 30:
        raise _wrong(whole)
    end = next((at for at, letter in enumerate(rest) if letter in "<>,"), len(rest))
    name, rest = rest[:end].strip(), rest[end:]
    if name not in (*_LISTS, "map"):
        if not name:
            raise _wrong(whole)
        return TypeText(name), rest
    parts = []
    before = "<"
    for _ in range(2 if name == "map" else 1):
        if not rest.startswith(before):
            raise _wrong(whole)
        part, rest = _parse(rest[1:].lstrip(), whole, depth + 1)
        parts.append(part)
        before = ","
    if not rest.startswith(">"):
        raise _wrong(whole)
    return TypeText(name, tuple(parts)), rest[1:].lstrip()


def _wrong(text: str) -> InvalidInput:
    hint = "write for example uint16, fixed_size_list:float:128 or list<halffloat>"
    return InvalidInput(f"{text[:80]!r} is no Lance type", hint=hint)


def leaf_type(name: str) -> tuple[pa.DataType, dict[str, str]]:
    """The Arrow type in which values of a leaf are given to a table, and the metadata that the field must have.

    >>> leaf_type("json")
    (DataType(string), {'ARROW:extension:name': 'arrow.json'})
    """
    if name == "json":
        return pa.string(), {EXTENSION_NAME: "arrow.json"}
    return arrow_type(name), {}
