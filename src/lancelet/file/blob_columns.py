"""Blob v2 columns on their way into a data file: every payload finds its place, descriptors remain.

A column comes *logical* (struct<data, uri[, position, size]>) or *prepared* (see ``blob_descriptors``). Payloads up to
the inline threshold go into the data file, each at a multiple of 64; larger ones share packed sidecars; those above
the dedicated threshold get a sidecar each. URIs are kept as references.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelet.errors import InvalidInput
from lancelet.file.blob_descriptors import PREPARED
from lancelet.file.blob_external import external_places
from lancelet.file.blob_sidecars import Sidecars, Sizes, binary_parts, runs
from lancelet.file.blobs import BlobKind, Descriptors
from lancelet.format.columns import ALIGNMENT
from lancelet.kernels import packed_rows
from lancelet.storage.store import Writer

__all__ = ["LOGICAL", "BlobColumnWriter", "BlobLimits"]

#: The column as users write it; the last two fields may be missing.
LOGICAL = pa.struct({"data": pa.large_binary(), "uri": pa.string(), "position": pa.uint64(), "size": pa.uint64()})
_NAMES = [field.name for field in LOGICAL]
# Inline payloads are brought together in pieces of about this size.
_PIECE = 8 * 2**20
_FARTHEST = 2**62
_KEYS = {
    "inline": ("lance-encoding:blob-inline-size-threshold", 0),
    "dedicated": ("lance-encoding:blob-dedicated-size-threshold", 1),
    "pack_file": ("lance-encoding:blob-pack-file-size-threshold", 1),
}


@dataclass(frozen=True, slots=True)
class BlobLimits:
    """Up to which size in bytes a payload stays in the data file, one shares a sidecar, and a shared sidecar grows."""

    inline: int = 64 * 2**10
    dedicated: int = 4 * 2**20
    pack_file: int = 2**30

    @staticmethod
    def of(metadata: Mapping[str, str]) -> BlobLimits:
        """What a field's metadata asks for.

        >>> BlobLimits.of({"lance-encoding:blob-inline-size-threshold": "0"}).inline
        0
        """
        limits = BlobLimits()
        for name, (key, least) in _KEYS.items():
            text = metadata.get(key)
            if text is None:
                continue
            if not (text.isascii() and text.isdigit()) or not least <= int(text) < 2**64:
                raise InvalidInput(f"{key} is {text!r}, expected a number from {least} on")
            limits = replace(limits, **{name: int(text)})
        return limits


class BlobColumnWriter:
    """Places the payloads of one column. What it holds besides the rows at hand is one piece of inline payloads."""

    def __init__(
        self, limits: BlobLimits, output: Writer, sidecars: Sidecars, *, bases: Mapping[int, str] | None = None
    ) -> None:
        self._limits, self._output, self._sidecars = limits, output, sidecars
        self._bases = dict(bases or {})
        self._packed: tuple[int, Writer] | None = None

    def store(self, array: pa.Array, visible: npt.NDArray[np.bool_] | None = None) -> pa.StructArray:
        """The descriptors of a column's rows, whose payloads are written now; rows not ``visible`` become null."""
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        valid = np.asarray(array.is_valid())
        if visible is not None:
            valid = valid & visible
        kind = array.type
        if kind == PREPARED:
            return self._prepared(array, valid).to_arrow()
        if pa.types.is_struct(kind) and kind.num_fields in (2, 4) and list(kind) == list(LOGICAL)[: kind.num_fields]:
            return self._logical(array, valid).to_arrow()
        raise InvalidInput(f"a blob column has type {kind}, expected {LOGICAL} or {PREPARED}")

    def _logical(self, array: pa.StructArray, valid: npt.NDArray[np.bool_]) -> Descriptors:
        columns = dict(zip(_NAMES, array.flatten(), strict=False))
        has_data, has_uri = (np.asarray(columns[name].is_valid()) & valid for name in ("data", "uri"))
        _refuse(valid & (has_data == has_uri), "must set exactly one of data and uri")
        position, size = _range_of(columns, valid, has_uri)
        data, starts, sizes = binary_parts(columns["data"])
        sizes = np.where(has_data, sizes, 0)
        kind = np.where(has_uri, np.uint8(BlobKind.EXTERNAL), self._kinds(sizes))
        place, blob_id = self._place(kind, data, starts, sizes)
        external_id, uri = external_places(columns["uri"], has_uri, self._bases)
        return Descriptors(
            valid,
            kind,
            np.where(has_uri, position, place),
            np.where(has_uri, size, sizes.astype(np.uint64)),
            np.where(has_uri, external_id, blob_id),
            uri,
        )

    def _kinds(self, sizes: Sizes) -> npt.NDArray[np.uint8]:
        kinds = np.where(sizes > min(self._limits.inline, _FARTHEST), np.uint8(BlobKind.PACKED), np.uint8(0))
        return np.where(sizes > min(self._limits.dedicated, _FARTHEST), np.uint8(BlobKind.DEDICATED), kinds)

    def _prepared(self, array: pa.StructArray, valid: npt.NDArray[np.bool_]) -> Descriptors:
        columns = dict(zip((field.name for field in PREPARED), array.flatten(), strict=True))
        _refuse(valid & np.asarray(columns["kind"].is_null()), "has no kind")
        kind, blob_id, size, position = (
            np.where(valid, np.asarray(columns[name].fill_null(0)), PREPARED.field(name).type.to_pandas_dtype()(0))
            for name in ("kind", "blob_id", "blob_size", "position")
        )
        _refuse(kind > max(BlobKind), "is of an unknown kind")
        inline = valid & (kind == BlobKind.INLINE)
        _refuse(inline & np.asarray(columns["data"].is_null()), "is inline but has no data")
        aside = (kind == BlobKind.PACKED) | (kind == BlobKind.DEDICATED)
        _refuse(aside & (blob_id == 0), "lies in sidecar 0, which is reserved")
        named = kind >= BlobKind.EXTERNAL
        _refuse(named & np.asarray(columns["uri"].is_null()), "has no URI")
        data, starts, sizes = binary_parts(columns["data"])
        sizes = np.where(inline, sizes, 0)
        place = self._inline(data, starts, sizes)
        uri = pc.if_else(pa.array(named), columns["uri"], "").fill_null("")
        return Descriptors(
            valid,
            kind,
            np.where(inline, place, position),
            np.where(inline, sizes.astype(np.uint64), size),
            np.where(inline, np.uint32(0), blob_id),
            uri,
        )

    def _place(
        self, kind: npt.NDArray[np.uint8], data: npt.NDArray[np.uint8], starts: Sizes, sizes: Sizes
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
        """Write every payload where its kind wants it; the positions and sidecar ids."""
        position = self._inline(data, starts, np.where(kind == BlobKind.INLINE, sizes, 0))
        blob_id = np.zeros(len(kind), np.uint32)
        aside = np.flatnonzero((kind == BlobKind.PACKED) | (kind == BlobKind.DEDICATED))
        dedicated = kind[aside] == BlobKind.DEDICATED
        # Ids follow the order of rows: packed rows between two dedicated ones are written together.
        ends = np.flatnonzero(dedicated[1:] | dedicated[:-1]) + 1
        for rows in np.split(aside, ends):
            if len(rows) and kind[rows[0]] == BlobKind.DEDICATED:
                blob_id[rows], output = self._sidecars.start()
                _write(output, data, starts[rows], sizes[rows])
                self._sidecars.finish(int(blob_id[rows[0]]))
            else:
                self._pack(rows, data, starts, sizes, position, blob_id)
        return position, blob_id

    def _pack(
        self,
        rows: npt.NDArray[np.int64],
        data: npt.NDArray[np.uint8],
        starts: Sizes,
        sizes: Sizes,
        position: npt.NDArray[np.uint64],
        blob_id: npt.NDArray[np.uint32],
    ) -> None:
        """Write rows into packed sidecars, a new one each time the next payload would not fit."""
        ends = np.cumsum(sizes[rows])
        at = 0
        while at < len(rows):
            used = 0 if self._packed is None else self._packed[1].position
            before = int(ends[at - 1]) if at else 0
            stop = int(np.searchsorted(ends, before + min(self._limits.pack_file, _FARTHEST) - used, "right"))
            if stop <= at and self._packed is not None and used:
                self._sidecars.finish(self._packed[0])
                self._packed = None
                continue
            # A payload larger than the limit has a packed sidecar alone.
            stop = max(stop, at + 1)
            if self._packed is None:
                self._packed = self._sidecars.start()
            number, output = self._packed
            now = rows[at:stop]
            position[now] = (ends[at:stop] - sizes[now] - before + used).astype(np.uint64)
            blob_id[now] = number
            _write(output, data, starts[now], sizes[now])
            at = stop

    def _inline(self, data: npt.NDArray[np.uint8], starts: Sizes, sizes: Sizes) -> npt.NDArray[np.uint64]:
        """Write payloads into the data file, each at a multiple of the alignment; those without bytes are nowhere."""
        position = np.zeros(len(sizes), np.uint64)
        rows = np.flatnonzero(sizes)
        if not len(rows):
            return position
        starts, sizes = starts[rows], sizes[rows]
        padded = (sizes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        ends = np.cumsum(padded)
        self._output.write(bytes(-self._output.position % ALIGNMENT))
        position[rows] = (self._output.position + ends - padded).astype(np.uint64)
        at = 0
        while at < len(rows):
            before = int(ends[at - 1]) if at else 0
            stop = max(at + 1, int(np.searchsorted(ends, before + _PIECE, "right")))
            if stop == at + 1:
                self._output.write(data[starts[at] : starts[at] + sizes[at]].data)
                self._output.write(bytes(int(padded[at] - sizes[at])))
            else:
                piece = np.zeros(int(ends[stop - 1]) - before, np.uint8)
                places = ends[at:stop] - padded[at:stop] - before
                packed_rows.scatter_pieces(data, starts[at:stop], sizes[at:stop], piece, places)
                self._output.write(piece.data)
            at = stop
        return position


def _write(output: Writer, data: npt.NDArray[np.uint8], starts: Sizes, sizes: Sizes) -> None:
    for start, size in runs(starts, sizes):
        output.write(data[start : start + size].data)


def _range_of(
    columns: Mapping[str, pa.Array], valid: npt.NDArray[np.bool_], has_uri: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Which part of an external object each row means; zeros for all of it."""
    if "size" not in columns:
        nothing = np.zeros(len(valid), np.uint64)
        return nothing, nothing
    has_position, has_size = (np.asarray(columns[name].is_valid()) & valid for name in ("position", "size"))
    _refuse(has_position != has_size, "must set both position and size, or neither")
    _refuse(has_size & ~has_uri, "sets position and size but no uri")
    position, size = (np.asarray(columns[name].fill_null(0)) for name in ("position", "size"))
    _refuse(has_size & (size == 0), "has an external range of size 0, expected more")
    return position, size


def _refuse(wrong: npt.NDArray[np.bool_], what: str) -> None:
    if wrong.any():
        raise InvalidInput(f"the blob of row {int(np.argmax(wrong)):,} {what}")
