"""Where a single file lies: the store of its directory and its name there."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lancelet.errors import InvalidInput, Unsupported
from lancelet.storage import Store, open_store

__all__ = ["open_parent", "refuse_namespace"]


def open_parent(path: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> tuple[Store, str]:
    """The store that holds a file, and the file's name in it.

    >>> store, name = open_parent("memory://bucket/a/b.lance")
    >>> store.uri, name
    ('memory://bucket/a', 'b.lance')
    """
    text = os.fspath(path)
    parent, slash, name = text.rpartition("/")
    if not name:
        raise InvalidInput(f"{text!r} names no file", uri=text)
    if not slash:
        parent = "."
    return open_store(parent or "/", storage_options=storage_options), name


def refuse_namespace(client: object | None, table_id: object | None, managed: bool = False) -> None:
    """Raise Unsupported where a table or file is to be found by a namespace.

    >>> refuse_namespace(None, ["a"])
    Traceback (most recent call last):
    lancelet.errors.Unsupported: namespaces are not supported; give the URI
    """
    if client is not None or table_id is not None or managed:
        raise Unsupported("namespaces are not supported", hint="give the URI")
