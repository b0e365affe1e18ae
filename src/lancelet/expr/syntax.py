"""Questions about the nodes that sqlglot's parser makes, by names of classes and arguments alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from lancelet.expr.literal_lists import list_name

__all__ = ["WITHOUT_PARENTHESES", "Name", "digits_of", "field_name", "is_cut_list", "names_of", "unwrapped", "written"]

Node: TypeAlias = Any

#: Functions that are written like columns.
WITHOUT_PARENTHESES = ("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp")
_LONGEST = 80


@dataclass(frozen=True, slots=True)
class Name:
    """A name, and whether it was quoted."""

    text: str
    quoted: bool


def written(node: Node) -> str:
    """A node as text, for messages."""
    text = str(node.sql())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def unwrapped(node: Node) -> Node:
    """A node without the parentheses around it."""
    while type(node).__name__ == "Paren":
        node = node.this
    return node


def names_of(node: Node) -> list[Name] | None:
    """The names of a column from the top down; None if it is a field of something that is no column."""
    names: list[Name] = []
    while type(node).__name__ == "Dot":
        if type(node.expression).__name__ not in ("Identifier", "Var"):
            return None
        names.insert(0, _name(node.expression))
        node = node.this
    if type(node).__name__ == "Identifier":
        return [_name(node), *names]
    return [*map(_name, node.parts), *names] if type(node).__name__ == "Column" else None


def _name(identifier: Node) -> Name:
    return Name(identifier.name, bool(identifier.args.get("quoted")))


def field_name(node: Node) -> str:
    """The field that is named behind a dot."""
    return str(node.expression.name)


def digits_of(node: Node) -> str | None:
    """The digits of a number as they are written; None if the node is no number."""
    node = unwrapped(node)
    if type(node).__name__ == "Neg":
        inner = digits_of(node.this)
        return None if inner is None else f"-{inner}"
    return str(node.this) if type(node).__name__ == "Literal" and not node.is_string else None


def is_cut_list(node: Node) -> bool:
    """Whether a node stands for a list that was cut out of the text."""
    names = names_of(node) if type(node).__name__ in ("Column", "Identifier") else None
    return names is not None and len(names) == 1 and list_name(names[0].text) is not None
