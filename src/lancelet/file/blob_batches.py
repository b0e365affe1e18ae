"""Batches with blob v2 columns, at any depth: each is replaced by descriptors as its payloads are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import LanceletError, Unsupported
from lancelet.file.blob_columns import BlobColumnWriter, BlobLimits
from lancelet.file.blob_sidecars import Sidecars
from lancelet.format.blobs import is_blob_v2
from lancelet.format.fields import Field, Schema
from lancelet.storage.store import Writer

__all__ = ["BlobBatches"]


@dataclass(frozen=True, slots=True)
class _Above:
    """A field with blobs somewhere below it, by name."""

    below: Mapping[str, BlobColumnWriter | _Above]


class BlobBatches:
    """Places the payloads of all blob columns of one data file."""

    def __init__(
        self, schema: Schema, output: Writer, sidecars: Sidecars, *, bases: Mapping[int, str] | None = None
    ) -> None:
        def node(field: Field) -> BlobColumnWriter | _Above | None:
            if is_blob_v2(field):
                return BlobColumnWriter(BlobLimits.of(field.metadata), output, sidecars, bases=bases)
            below = {child.name: found for child in field.children if (found := node(child)) is not None}
            if below and field.logical_type == "map":
                raise Unsupported("blobs inside maps", column=field.name)
            return _Above(below) if below else None

        self._nodes = {field.name: found for field in schema.fields if (found := node(field)) is not None}

    def stored(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch as the data file holds it."""
        for at, field in enumerate(batch.schema):
            found = self._nodes.get(field.name)
            if found is None:
                continue
            try:
                array = _replaced(found, batch.column(at))
            except LanceletError as error:
                raise error.where(column=field.name) from None
            batch = batch.set_column(at, pa.field(field.name, array.type, field.nullable), array)
        return batch


def _replaced(node: BlobColumnWriter | _Above, array: pa.Array) -> pa.Array:
    if isinstance(node, BlobColumnWriter):
        return node.store(array)
    kind = array.type
    if pat.is_struct(kind):
        # Flattened children are null where the struct is.
        children = array.flatten()
        for name, below in node.below.items():
            at = kind.get_field_index(name)
            if at >= 0:
                children[at] = _replaced(below, children[at])
        fields = [field.with_type(child.type) for field, child in zip(kind, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=_mask(array))
    (below,) = node.below.values()
    if pat.is_fixed_size_list(kind):
        size = kind.list_size
        items = _replaced(below, array.values.slice(array.offset * size, len(array) * size))
        made = pa.list_(kind.value_field.with_type(items.type), size)
        return pa.FixedSizeListArray.from_arrays(items, type=made, mask=_mask(array))
    if not (pat.is_list(kind) or pat.is_large_list(kind)):
        return array
    # What lies behind null lists is left out.
    items = _replaced(below, array.flatten())
    lengths = np.asarray(pc.list_value_length(array).fill_null(0), np.int64)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    item = kind.value_field.with_type(items.type)
    if pat.is_large_list(kind):
        return pa.LargeListArray.from_arrays(offsets, items, type=pa.large_list(item), mask=_mask(array))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, type=pa.list_(item), mask=_mask(array))


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
