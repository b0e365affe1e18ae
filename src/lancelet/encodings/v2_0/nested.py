"""Nested arrays from their parts: structs from fields, lists from offsets and items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings.chunks import Ints
from lancelet.encodings.values import Bytes
from lancelet.errors import Unsupported

__all__ = ["list_array", "struct_array"]


def struct_array(kind: pa.DataType, children: Sequence[pa.Array]) -> pa.Array:
    """Structs, none of them null."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, struct_array(kind.storage_type, children))
    return pa.Array.from_buffers(kind, len(children[0]), [None], 0, children=list(children))


def list_array(field: pa.Field, offsets: Ints, validity: Bytes | None, items: pa.Array | None) -> pa.Array:
    """Lists from offsets that begin at 0; ``items`` may be None where there are none."""
    kind = field.type
    if items is None:
        items = pa.array([], kind.value_type)
    if pat.is_list(kind):
        if offsets[-1] > np.iinfo(np.int32).max:
            raise Unsupported(
                f"{offsets[-1]:,} items in one array exceed what type {kind} can address",
                hint="read fewer rows at a time, or store the column as large_list",
            )
        offsets = offsets.astype(np.int32)
    mask = None if validity is None else pa.py_buffer(validity)
    nulls = 0 if mask is None else -1
    return pa.Array.from_buffers(kind, len(offsets) - 1, [mask, pa.py_buffer(offsets)], nulls, children=[items])
