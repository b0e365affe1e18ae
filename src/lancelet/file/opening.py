"""Opening a data file of any version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from lancelet.errors import Unsupported
from lancelet.file.data_file import DataFile, open_file
from lancelet.file.legacy import LegacyFile, open_legacy
from lancelet.format.fields import Schema
from lancelet.format.footer import LegacyFooter, parse_footer
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Store

__all__ = ["open_any", "open_table_legacy"]

_TAIL = 64 * 2**10


def open_any(store: Store, path: str, *, size: int | None = None) -> DataFile | LegacyFile:
    """Open a data file; one of version 0.1 costs a request more."""
    try:
        return open_file(store, path, size=size)
    except Unsupported:
        tail, size = store.read_tail(path, _TAIL)
        footer = parse_footer(tail, size, uri=join_uri(store.uri, path))
        if not isinstance(footer, LegacyFooter):
            raise
        return open_legacy(store, path, size=size, footer=footer, tail=tail)


def open_table_legacy(
    store: Store,
    path: str,
    *,
    schema: Schema,
    field_ids: Sequence[int],
    dictionaries: Mapping[int, pa.Array] | None = None,
) -> LegacyFile:
    """Open a 0.1 file of a table, whose manifest knows better than the file which schema it has.

    ``field_ids`` are those that the manifest lists for this file; ``dictionaries`` the items of dictionary columns by
    field id, where the manifest holds them.
    """
    tail, size = store.read_tail(path, _TAIL)
    footer = parse_footer(tail, size, uri=join_uri(store.uri, path))
    if not isinstance(footer, LegacyFooter):
        raise Unsupported(f"the file is of version {footer.version.label}, expected 0.1", uri=join_uri(store.uri, path))
    return open_legacy(
        store,
        path,
        size=size,
        footer=footer,
        tail=tail,
        schema=schema,
        field_ids=field_ids,
        dictionaries=dictionaries,
    )
