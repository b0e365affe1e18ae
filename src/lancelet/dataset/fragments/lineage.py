"""Row ids and row versions of a fragment as a manifest holds them: stored inline, or in a column of a data file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from lancelet.errors import InvalidInput

__all__ = ["RowDatasetVersionMeta", "RowIdMeta"]


@dataclass(frozen=True, slots=True)
class RowIdMeta:
    """The stable ids of a fragment's rows: a stored sequence, or None where a column of a data file holds them.

    >>> RowIdMeta.from_json('{"Inline":[10,0]}').inline
    b'\\n\\x00'
    """

    inline: bytes | None

    def asdict(self) -> dict[str, list[int]] | str:
        """The sequence's bytes as numbers, or the word ``Column``."""
        return "Column" if self.inline is None else {"Inline": list(self.inline)}

    def json(self) -> str:
        """The same as JSON text."""
        return _text(self.asdict())

    @staticmethod
    def from_dict(dict: object) -> RowIdMeta:
        """What :meth:`asdict` gave."""
        if dict == "Column":
            return RowIdMeta(None)
        return RowIdMeta(_bytes(dict, "Inline", "row ids of a fragment"))

    @staticmethod
    def from_json(json: str) -> RowIdMeta:
        """What :meth:`json` gave."""
        return RowIdMeta.from_dict(_tree(json))


@dataclass(frozen=True, slots=True)
class RowDatasetVersionMeta:
    """In which versions a fragment's rows were made or last changed: stored runs, or None where a column holds them.

    >>> RowDatasetVersionMeta(None).json()
    '{"column":{}}'
    """

    inline: bytes | None

    def asdict(self) -> dict[str, object]:
        """The runs' bytes as numbers, or that a column holds them."""
        return {"column": {}} if self.inline is None else {"inline": list(self.inline)}

    def json(self) -> str:
        """The same as JSON text."""
        return _text(self.asdict())

    @staticmethod
    def from_dict(dict: object) -> RowDatasetVersionMeta:
        """What :meth:`asdict` gave."""
        if isinstance(dict, Mapping) and [*dict] == ["column"]:
            return RowDatasetVersionMeta(None)
        return RowDatasetVersionMeta(_bytes(dict, "inline", "row versions of a fragment"))

    @staticmethod
    def from_json(json: str) -> RowDatasetVersionMeta:
        """What :meth:`json` gave."""
        return RowDatasetVersionMeta.from_dict(_tree(json))


def _bytes(tree: object, name: str, what: str) -> bytes:
    try:
        if isinstance(tree, Mapping) and [*tree] == [name]:
            return bytes(tree[name])
    except (TypeError, ValueError):
        pass
    raise InvalidInput(f"the {what} are {str(tree)[:80]}, expected {name!r} with a list of bytes")


def _text(tree: object) -> str:
    return json.dumps(tree, separators=(",", ":"))


def _tree(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"{text[:80]!r} is no JSON: {error}") from None
