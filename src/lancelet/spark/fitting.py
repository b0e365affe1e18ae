"""Fitting: rows as Spark hands them to a task made into those that the writer of a table's files takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lancelet.errors import InvalidInput, Unsupported
from lancelet.format.arrow import schema_to_arrow
from lancelet.format.blobs import BLOB_KEY, is_blob_v2
from lancelet.format.fields import Schema
from lancelet.spark.blob_references import REFERENCE, fetched, is_reference, windows
from lancelet.spark.casts import Cast, cast_batch, cast_for
from lancelet.table.snapshot import Snapshot

__all__ = ["Fit", "check_fit", "fitted", "stored_columns"]


@dataclass(frozen=True, slots=True)
class Fit:
    """Which columns of the rows become which columns of the table. It pickles."""

    #: What the writer takes: columns of the table, blobs as bytes.
    target: pa.Schema
    #: For each of them the place of the rows' column.
    places: tuple[int, ...]
    #: For blobs that come as references.
    storage_options: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    #: Whether values may be of types of which not all values fit: those that do not are errors then.
    converts: bool = False


def stored_columns(snapshot: Snapshot, names: Sequence[str]) -> pa.Schema:
    """Columns of a table, by name, as the writer of its files takes them: blobs as bytes."""
    known = {item.name: item for item in snapshot.schema.fields}
    kept = Schema(tuple(known[name] for name in names), snapshot.schema.metadata)
    arrow = schema_to_arrow(kept)
    fields = [_as_bytes(arrow.field(item.name)) if is_blob_v2(item) else arrow.field(item.name) for item in kept.fields]
    return pa.schema(fields, arrow.metadata)


def _as_bytes(field_of: pa.Field) -> pa.Field:
    return pa.field(field_of.name, pa.large_binary(), field_of.nullable, metadata={BLOB_KEY: "true"})


def check_fit(source: pa.Schema, fit: Fit) -> None:
    """Raise where the types of rows do not fit; whether their values do is seen when they come."""
    _casts(source, fit)


def _casts(source: pa.Schema, fit: Fit) -> list[Cast | None]:
    casts: list[Cast | None] = []
    for place, target in zip(fit.places, fit.target, strict=True):
        field_of = source.field(place).with_name(target.name)
        casts.append(None if _fetches(field_of, target) else _cast(field_of, target, fit))
    return casts


def _cast(source: pa.Field, target: pa.Field, fit: Fit) -> Cast | None:
    try:
        return cast_for(source, target)
    except Unsupported:
        if not fit.converts or pa.types.is_nested(source.type) or isinstance(target.type, pa.BaseExtensionType):
            raise

    def converted(array: pa.Array) -> pa.Array:
        try:
            return array.cast(target.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            hint = f"the column is of type {target.type}"
            raise InvalidInput(f"a new value does not fit: {error}", column=target.name, hint=hint) from None

    # Types between which there is no conversion at all are told here.
    converted(pa.array([], source.type))
    return converted


def _fetches(source: pa.Field, target: pa.Field) -> bool:
    """Whether references are given where the table holds blobs."""
    return is_reference(source) and pa.types.is_large_binary(target.type)


def fitted(fit: Fit, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows as the writer takes them, under the target's schema."""
    casts: list[Cast | None] | None = None
    blobs: list[int] = []
    for batch in batches:
        if casts is None:
            # What Spark hands over has the session's time zone, and large types where the session asks for them.
            casts = _casts(batch.schema, fit)
            blobs = [
                at
                for at, (place, target) in enumerate(zip(fit.places, fit.target, strict=True))
                if _fetches(batch.schema.field(place), target)
            ]
        chosen = pa.RecordBatch.from_arrays([batch.column(place) for place in fit.places], names=fit.target.names)
        for piece in _with_bytes(chosen, blobs, fit):
            yield cast_batch(piece, casts, fit.target)


def _with_bytes(batch: pa.RecordBatch, blobs: Sequence[int], fit: Fit) -> Iterator[pa.RecordBatch]:
    """The batch with the bytes of blobs in place of references to them, in pieces of bounded size."""
    if not blobs:
        yield batch
        return
    place = blobs[0]
    references = batch.column(place).cast(REFERENCE)
    for run in windows(references):
        count = run.stop - run.start
        made = fetched(references.slice(run.start, count), fit.storage_options)
        piece = batch.slice(run.start, count).set_column(place, fit.target.field(place), made)
        yield from _with_bytes(piece, blobs[1:], fit)
