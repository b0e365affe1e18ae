"""Reading: carries page requests out, all columns together, and puts the leaves back into columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

import numpy as np
import pyarrow as pa

from lancelet.encodings import page as pages
from lancelet.encodings.page import PageIndex, Rows
from lancelet.encodings.shape import Leaf, Shape, leaves, merge, path_to, skeleton_type
from lancelet.encodings.values import Bytes
from lancelet.errors import Corrupt, LanceletError
from lancelet.file import reading_legacy, reading_v2_0
from lancelet.file.data_file import DataFile
from lancelet.file.legacy import LegacyFile
from lancelet.file.requests import PageRequest, requests_for
from lancelet.file.side_by_side import gathered
from lancelet.file.workers import map_tasks
from lancelet.format.columns import Range
from lancelet.format.layouts import BlobLayout
from lancelet.format.versions import FileVersion

__all__ = ["data_ranges", "load_indexes", "located", "read_columns"]

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

# Below this many bytes the hand-over to another thread costs more than it wins.
_WORTH_A_THREAD = 2**20
_UNKNOWN = object()


def read_columns(file: DataFile | LegacyFile, shapes: Sequence[Shape], rows: Rows) -> list[pa.ChunkedArray]:
    """The rows of each shape, one chunked array each, in few rounds of requests: since 2.1 at most two."""
    if isinstance(file, LegacyFile):
        return reading_legacy.read_columns(file, shapes, rows)
    if file.version is FileVersion.V2_0:
        return reading_v2_0.read_columns(file, shapes, rows)
    planned = [requests_for(file, shape, rows) for shape in shapes]
    ready = [_gathered(file, shape, group) for shape, group in zip(shapes, planned, strict=True)]
    requests = [request for group, array in zip(planned, ready, strict=True) if array is None for request in group]
    arrays = iter(_decode(file, requests, load_indexes(file, requests)))
    return [
        _chunked([_target(array, shape.field.type)], shape.field.type)
        if array is not None
        else _assemble(file, shape, [(request, next(arrays)) for request in group])
        for shape, group, array in zip(shapes, planned, ready, strict=True)
    ]


def _gathered(file: DataFile, shape: Shape, group: Sequence[PageRequest]) -> pa.Array | None:
    """The rows of a column that can be had without going through its pages one by one."""
    if file.view is None or len(group) < 2 or not isinstance(shape, Leaf):
        return None
    return located(file, group[0], gathered, file.view, group)


def load_indexes(file: DataFile, requests: Sequence[PageRequest]) -> list[PageIndex]:
    """The index of each page, read where it is not known yet."""
    known = file.page_indexes
    found = [known.get((request.column, request.number), _UNKNOWN) for request in requests]
    missing = [at for at, index in enumerate(found) if index is _UNKNOWN]
    if not missing:
        return found
    ranges = [
        located(file, request, pages.index_ranges, request.page, request.rows)
        for request in (requests[at] for at in missing)
    ]
    buffers = iter(file.read([one for group in ranges for one in group]))
    for at, group in zip(missing, ranges, strict=True):
        request = requests[at]
        mine = [next(buffers) for _ in group]
        index = found[at] = located(file, request, pages.load_index, request.page, request.rows, mine)
        if pages.keeps_index(request.page):
            known[request.column, request.number] = index
    return found


def _decode(file: DataFile, requests: Sequence[PageRequest], indexes: Sequence[PageIndex]) -> list[pa.Array]:
    whole = file.view is not None
    ranges = [data_ranges(file, request, index) for request, index in zip(requests, indexes, strict=True)]
    buffers = iter(file.read([one for group in ranges for one in group]))
    tasks = [
        (request, index, [next(buffers) for _ in group])
        for request, index, group in zip(requests, indexes, ranges, strict=True)
    ]

    def run(task: tuple[PageRequest, PageIndex, list[Bytes]]) -> pa.Array:
        request, index, data = task
        return located(file, request, pages.read, request.page, index, request.rows, data, whole=whole)

    return map_tasks(run, tasks, threads=len(tasks) > 1 and _weight(requests, ranges) >= _WORTH_A_THREAD)


def data_ranges(file: DataFile, request: PageRequest, index: PageIndex) -> list[Range]:
    """The bytes that hold the rows. What metadata says was checked when it was parsed; blobs only now name theirs."""
    whole = file.view is not None
    ranges = located(file, request, pages.data_ranges, request.page, index, request.rows, whole=whole)
    if isinstance(request.page.layout, BlobLayout):
        located(file, request, _check_within, ranges, file.size)
    return ranges


def _check_within(ranges: Sequence[Range], size: int) -> None:
    for start, length in ranges:
        if start + length > size:
            raise Corrupt(f"blob at {start:,}..{start + length:,} ends past the file's {size:,} bytes")


def _weight(requests: Sequence[PageRequest], ranges: Sequence[Sequence[Range]]) -> float:
    """About how many stored bytes the requests are made of: of buffers that serve few rows, those rows' share."""
    weight = 0.0
    for request, group in zip(requests, ranges, strict=True):
        rows = request.rows
        count = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        weight += sum(length for _, length in group) * count / max(request.page.rows, 1)
    return weight


def located(
    file: DataFile,
    request: PageRequest,
    step: Callable[_Given, _Result],
    *given: _Given.args,
    **named: _Given.kwargs,
) -> _Result:
    """Run one step of a request; an error learns where it happened."""
    try:
        return step(*given, **named)
    except LanceletError as error:
        span = file.span_of(request.column, request.page.buffers)
        raise error.where(uri=file.uri, column=request.name, page=request.number, byte_range=span) from None
    except pa.ArrowException as error:
        span = file.span_of(request.column, request.page.buffers)
        found = f"page does not decode: {error}"
        raise Corrupt(found, uri=file.uri, column=request.name, page=request.number, byte_range=span) from None


def _assemble(file: DataFile, shape: Shape, decoded: Sequence[tuple[PageRequest, pa.Array]]) -> pa.ChunkedArray:
    """Merge the leaves' arrays; where their pages end at different rows, cut all of them at each end."""
    if isinstance(shape, Leaf):
        return _chunked([_target(array, shape.field.type) for _, array in decoded], shape.field.type)
    by_column: dict[int, list[pa.Array]] = {leaf.column: [] for leaf in leaves(shape)}
    for request, array in decoded:
        by_column[request.column].append(array)
    kind = shape.field.type
    if len(by_column) == 1:
        ((column, arrays),) = by_column.items()
        return _chunked([_target(merge(shape, {column: array}), kind) for array in arrays], kind)
    ends = {column: np.cumsum([len(array) for array in arrays]) for column, arrays in by_column.items()}
    cuts = np.unique(np.concatenate([[0], *ends.values()])).astype(np.int64)
    if any((end[-1] if len(end) else 0) != cuts[-1] for end in ends.values()):
        raise Corrupt(f"columns of {shape.field.name!r} differ in length", uri=file.uri, column=shape.field.name)
    skeletons = {
        column: pa.chunked_array(arrays, arrays[0].type if arrays else skeleton_type(path_to(shape, column)))
        for column, arrays in by_column.items()
    }
    merged = []
    for start, stop in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        pieces = {column: array.slice(start, stop - start).chunk(0) for column, array in skeletons.items()}
        merged.append(_target(merge(shape, pieces), kind))
    return _chunked(merged, kind)


def _target(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The array under the exact type that the schema gives: nullability and metadata of inner fields included."""
    return array if array.type.equals(kind, check_metadata=True) else array.view(kind)


def _chunked(arrays: list[pa.Array], kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array(arrays, kind)
