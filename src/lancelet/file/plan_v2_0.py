"""Plans for files of 2.0: the first bytes that each page needs, which are all but for lists, strings and the like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lancelet.encodings.shape import Leaf, List, Shape, Struct
from lancelet.encodings.v2_0.buffers import Rows, count_of
from lancelet.encodings.v2_0.steps import Fetch, Steps
from lancelet.file.data_file import DataFile
from lancelet.file.planned import PagePlan
from lancelet.file.reading_v2_0 import leaf_page, list_page, pages_of
from lancelet.format import arrays
from lancelet.format.columns import Range

__all__ = ["plan_pages"]

#: Encodings all of whose bytes can be named from the row numbers alone, if that holds for what is in them.
_DIRECT = (arrays.Flat, arrays.NoNulls, arrays.SomeNulls, arrays.AllNulls, arrays.FixedSizeList, arrays.SimpleStruct)
_DIRECT += (arrays.PackedStruct, arrays.Bitpacked, arrays.BitpackedForNonNeg)  # type: ignore[assignment]


def plan_pages(file: DataFile, shapes: Sequence[Shape], rows: Rows) -> Iterator[PagePlan]:
    """The plan of each page that some rows of the shapes need, as far as row numbers reach."""
    if count_of(rows):
        for shape in shapes:
            yield from _plan(file, shape, rows, shape.field.name)


def _plan(file: DataFile, shape: Shape, rows: Rows, name: str) -> Iterator[PagePlan]:
    match shape:
        case Struct(_, children):
            for child in children:
                yield from _plan(file, child, rows, f"{name}.{child.field.name}")
        case List():
            _, pages = pages_of(file, shape.column, rows, name)
            for number, local in pages:
                first = _first(list_page(file, shape.column, number, local, name))
                yield PagePlan(name, shape.column, number, count_of(local), first, None)
        case Leaf():
            column, pages = pages_of(file, shape.column, rows, name)
            blobs = isinstance(column.encoding, arrays.BlobColumn)
            for number, local in pages:
                first = _first(leaf_page(file, shape, column, number, local, name))
                if blobs or not _is_direct(column.pages[number].describe(file.version)):
                    yield PagePlan(name, shape.column, number, count_of(local), first, None)
                else:
                    yield PagePlan(name, shape.column, number, count_of(local), (), first)


def _first(steps: Steps[object]) -> tuple[Range, ...]:
    """The ranges of the first fetch, if there is one."""
    try:
        step = next(steps)
    except StopIteration:
        return ()
    finally:
        steps.close()
    return tuple(step.ranges) if isinstance(step, Fetch) else ()


def _is_direct(encoding: object) -> bool:
    if isinstance(encoding, arrays.Flat):
        return encoding.compression is None
    if not isinstance(encoding, _DIRECT):
        return False
    inner = [getattr(encoding, name) for name in ("values", "validity", "items") if hasattr(encoding, name)]
    return all(map(_is_direct, (*inner, *getattr(encoding, "inner", ()))))
