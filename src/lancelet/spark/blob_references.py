"""Blobs in Spark: a column of references, each telling where the bytes are, and how they are fetched from there.

    struct<uri: string, position: bigint, size: bigint>     size is null where the blob is the rest of its object

A reference stands for itself: whoever may read the object needs neither the table nor its version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.errors import Corrupt, InvalidInput
from lancelet.expr.tree import Column
from lancelet.file.blob_file import BlobFile, BlobLocation
from lancelet.file.blob_plan import BlobPlan, plan_blobs
from lancelet.file.blobs import parse_descriptors
from lancelet.file.location import open_parent
from lancelet.format.blobs import BLOB_KEY, is_blob_v1, is_blob_v2
from lancelet.format.fields import Schema
from lancelet.format.fragments import DataFile
from lancelet.ops.destinations import base_uris
from lancelet.query.request import ScanRequest
from lancelet.rows.addresses import split
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Store
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = [
    "REFERENCE",
    "BlobColumn",
    "blob_columns",
    "fetched",
    "is_reference",
    "open_blob",
    "references_of",
    "windows",
]

REFERENCE = pa.struct([("uri", pa.string()), ("position", pa.int64()), ("size", pa.int64())])
#: Bytes of blobs that are held at once.
_WINDOW = 64 * 2**20


@dataclass(frozen=True, slots=True)
class BlobColumn:
    """A column of a read that holds blobs, and the field that they are stored in."""

    name: str
    field_id: int


def blob_columns(schema: Schema, request: ScanRequest) -> tuple[BlobColumn, ...]:
    """The blob columns among those that a request asks for by themselves, not within a struct."""
    named = request.columns
    paths = (
        [(item.name, (item.name,)) for item in schema.fields]
        if named is None
        else [(name, expr.path) for name, expr in named if isinstance(expr, Column)]
    )
    found = []
    for name, path in paths:
        field = next((item for item in schema.fields if item.name == path[0]), None)
        for step in path[1:]:
            children = () if field is None else field.children
            field = next((item for item in children if item.name == step), None)
        if field is not None and (is_blob_v1(field) or is_blob_v2(field)):
            found.append(BlobColumn(name, field.id))
    return tuple(found)


def is_reference(field: pa.Field) -> bool:
    """Whether a column that Spark hands over holds references to blobs rather than their bytes."""
    return pa.types.is_struct(field.type) and [child.name for child in field.type] == [
        child.name for child in REFERENCE
    ]


def references_of(
    descriptions: pa.Array, addresses: pa.Array, blob: BlobColumn, snapshot: Snapshot, places: Places
) -> pa.StructArray:
    """References in place of descriptions, given the addresses of the rows: a description counts within its file."""
    fragments = split(addresses.to_numpy(zero_copy_only=False).astype(np.uint64))[0]
    pieces, start = [], 0
    while start < len(fragments):
        # Rows of a fragment follow each other, but for the first of a batch that ends one and begins the next.
        stop = start + int(np.argmin(np.append(fragments[start:] == fragments[start], False)))
        file = _file_of(snapshot, int(fragments[start]), blob)
        pieces.append(_referred(descriptions.slice(start, stop - start), file, snapshot, places))
        start = stop
    return pa.concat_arrays(pieces) if pieces else pa.array([], REFERENCE)


def _file_of(snapshot: Snapshot, number: int, blob: BlobColumn) -> DataFile:
    fragments = snapshot.manifest.fragments
    place = fragments.place_of(number)
    files = () if place is None else fragments[place].files
    found = next((item for item in files if blob.field_id in item.fields), None)
    if found is None:
        raise Corrupt("no data file holds the blobs", uri=snapshot.uri, fragment=number, column=blob.name)
    return found


def _referred(descriptions: pa.Array, file: DataFile, snapshot: Snapshot, places: Places) -> pa.StructArray:
    store, path = places.data_file(file)
    bases = base_uris(snapshot.manifest.base_paths)
    plan = plan_blobs(parse_descriptors(descriptions), path, bases)
    names = [
        join_uri(store.uri, item.name)
        if not item.external
        else join_uri(bases[item.base].rstrip("/"), item.name)
        if item.base
        else item.name
        for item in plan.objects
    ]
    missing = plan.number < 0
    uris = pa.array(names, pa.string()).take(pa.array(np.maximum(plan.number, 0)))
    children = [uris, pa.array(plan.position), pa.array(plan.size, mask=plan.size < 0)]
    return pa.StructArray.from_arrays(children, fields=list(REFERENCE), mask=pa.array(missing))


def windows(references: pa.StructArray, most: int = _WINDOW) -> Iterator[slice]:
    """Rows cut into runs whose blobs have at most so many bytes together, or one blob that has more.

    >>> some = pa.array([{"uri": "a", "position": 0, "size": size} for size in (5, 5, 20, 1)], REFERENCE)
    >>> [(run.start, run.stop) for run in windows(some, 10)]
    [(0, 2), (2, 3), (3, 4)]
    """
    size = references.field("size").fill_null(most).to_numpy(zero_copy_only=False).astype(np.int64)
    size = np.where(np.asarray(references.is_valid()), size, 0)
    nothing = np.zeros(len(size), np.int64)
    yield from BlobPlan((), nothing, nothing, size).windows(most)


def fetched(
    references: pa.StructArray, storage_options: Mapping[str, str] | None = None, stores: dict[str, Store] | None = None
) -> pa.LargeBinaryArray:
    """The bytes that references stand for: one call of the store for each object.

    >>> from lancelet.storage import open_store
    >>> open_store("memory://fetched").put("a", b"..hello..")
    >>> fetched(pa.array([{"uri": "memory://fetched/a", "position": 2, "size": 5}, None], REFERENCE)).to_pylist()
    [b'hello', None]
    """
    known = {} if stores is None else stores
    encoded = references.field("uri").dictionary_encode()
    which = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    valid = np.asarray(references.is_valid()) & (which >= 0)
    positions = _numbers(references.field("position"), 0)
    sizes = _numbers(references.field("size"), -1)
    found: list[bytes | memoryview | None] = [None] * len(references)
    for number, uri in enumerate(encoded.dictionary.to_pylist()):
        rows = np.flatnonzero(valid & (which == number))
        if not len(rows):
            continue
        store, path = _opened(uri, storage_options, known)
        wanted = sizes[rows]
        if np.any(wanted < 0):
            wanted = np.where(wanted < 0, store.size(path) - positions[rows], wanted)
        pieces = store.read(path, list(zip(positions[rows].tolist(), wanted.tolist(), strict=True)))
        for row, piece in zip(rows.tolist(), pieces, strict=True):
            found[row] = piece
    return pa.array(found, pa.large_binary())


def _numbers(array: pa.Array, missing: int) -> npt.NDArray[np.int64]:
    return np.asarray(array.fill_null(missing).to_numpy(zero_copy_only=False), np.int64)


def _opened(uri: str, storage_options: Mapping[str, str] | None, known: dict[str, Store]) -> tuple[Store, str]:
    folder, _, name = uri.rpartition("/")
    if folder not in known:
        known[folder] = open_parent(uri, storage_options=storage_options)[0]
    return known[folder], name


def open_blob(reference: Sequence[object], *, storage_options: Mapping[str, str] | None = None) -> BlobFile:
    """A blob as a file that is read lazily: ``reference`` is a value of a column of references, such as a Row.

    >>> from lancelet.storage import open_store
    >>> open_store("memory://opened").put("a", b"..hello..")
    >>> open_blob(("memory://opened/a", 2, 5)).read(3)
    b'hel'
    """
    if reference is None or len(reference) != 3:
        raise InvalidInput(f"{reference!r} is no reference to a blob", hint="expected uri, position and size")
    uri, position, size = reference
    if not isinstance(uri, str) or not isinstance(position, int) or not (size is None or isinstance(size, int)):
        raise InvalidInput(f"{reference!r} is no reference to a blob", hint="expected uri, position and size")
    store, name = open_parent(uri, storage_options=storage_options)
    return BlobFile(BlobLocation(store, name, position, size))


def marked(field: pa.Field) -> dict[str, str]:
    """The metadata of a blob column in Spark, whichever kind of blob the table holds."""
    kept = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
    own = ("lance-encoding:packed", "ARROW:extension:name", "ARROW:extension:metadata")
    return {key: value for key, value in kept.items() if key not in own} | {BLOB_KEY: "true"}
