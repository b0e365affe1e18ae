"""Errors about indexes: outcomes that users of the reference know by builtins of their own."""

from __future__ import annotations

from lancelet.errors import AlreadyExists, InvalidInput, NotFound, Unsupported

__all__ = ["IndexExists", "NoSuchColumn", "NoSuchIndex", "NotIndexable"]


class IndexExists(AlreadyExists, RuntimeError):
    """There is an index of the name already."""


class NoSuchIndex(NotFound, KeyError, RuntimeError):
    """There is no index of the name."""


class NoSuchColumn(InvalidInput, KeyError):
    """There is no column to be indexed at the path."""


class NotIndexable(Unsupported, TypeError):
    """The type of index does not take values of the column's type."""
