"""Data frames of scans: blobs in them are files that are read lazily, their bytes, or descriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lancelet.dataset.blob_rows import BlobRows
from lancelet.errors import InvalidInput
from lancelet.expr import Column
from lancelet.file.blob_file import DEFAULT_BLOB_BUFFER_SIZE, BlobFile
from lancelet.format.fields import Field
from lancelet.query.blob_outputs import is_blob
from lancelet.query.request import ROW_ADDRESS

if TYPE_CHECKING:
    from lancelet.dataset.scanner import LanceScanner

__all__ = ["to_frame"]

_MODES = ("lazy", "bytes", "descriptions")


@dataclass(frozen=True, slots=True)
class _BlobOutput:
    """A blob among the outputs of a scan: the output's name, the way to the blob in it, and the stored field."""

    name: str
    steps: tuple[str, ...]
    field: Field


def to_frame(scanner: LanceScanner, mode: str, options: Mapping[str, object]) -> Any:
    """The rows of a scan as a pandas data frame."""
    if mode not in _MODES:
        raise InvalidInput(f"blob_mode is {mode!r}, expected one of {', '.join(map(repr, _MODES))}")
    blobs = list(_blob_outputs(scanner))
    if not blobs or mode == "descriptions":
        return scanner.to_table().to_pandas(**options)
    if mode == "bytes":
        return scanner.again(blob_handling="all_binary").to_table().to_pandas(**options)
    names = scanner.projected_schema.names
    table = scanner.again(with_row_address=True, blob_handling="blobs_descriptions").to_table()
    columns = {blob: _files(scanner, table, blob) for blob in blobs}
    whole = {blob.name for blob in blobs if not blob.steps}
    # The addresses stay until the end: a table without any column has no rows as a frame.
    frame = table.drop_columns([name for name in whole if name in table.schema.names]).to_pandas(**options)
    for place, name in enumerate(names):
        for blob, files in columns.items():
            if blob.name == name and not blob.steps:
                frame.insert(place, name, files)
            elif blob.name == name:
                frame[name] = [_placed(row, blob.steps, file) for row, file in zip(frame[name], files, strict=True)]
    return frame if ROW_ADDRESS in names else frame.drop(columns=[ROW_ADDRESS])


def _blob_outputs(scanner: LanceScanner) -> Iterator[_BlobOutput]:
    schema = scanner.snapshot.schema
    for name, expr in scanner.plan.outputs:
        if not isinstance(expr, Column):
            continue
        fields: Sequence[Field] = schema.fields
        found: Field | None = None
        for step in expr.path:
            found = next((item for item in fields if item.name == step), None)
            fields = () if found is None else found.children
        if found is not None:
            yield from _below(name, (), found)


def _below(name: str, steps: tuple[str, ...], field: Field) -> Iterator[_BlobOutput]:
    if is_blob(field):
        yield _BlobOutput(name, steps, field)
    elif field.logical_type == "struct":
        for child in field.children:
            yield from _below(name, (*steps, child.name), child)


def _files(scanner: LanceScanner, table: pa.Table, blob: _BlobOutput) -> list[BlobFile | None]:
    column = table[blob.name]
    found = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    for step in blob.steps:
        found = found.flatten()[found.type.get_field_index(step)]
    addresses = np.asarray(table[ROW_ADDRESS].combine_chunks().fill_null(0)).astype(np.uint64)
    return BlobRows(scanner.dataset, blob.field, addresses, found).open(DEFAULT_BLOB_BUFFER_SIZE)


def _placed(row: Any, steps: tuple[str, ...], file: BlobFile | None) -> Any:
    """A row's struct with a file in the place of a description."""
    if row is None:
        return None
    inner = file if len(steps) == 1 else _placed(row[steps[0]], steps[1:], file)
    return {**row, steps[0]: inner}
