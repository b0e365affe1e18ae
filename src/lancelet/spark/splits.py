"""Splits: a read dealt out to tasks, fragments in order, large ones cut and small ones put together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.format.fragment_list import Fragments

__all__ = ["Split", "row_bytes", "splits_of"]

#: What a value of no fixed width takes at least, with what says where it ends.
_VARIABLE = 16
#: Fragments whose files are looked at to tell what a row takes.
_SAMPLE = 32


@dataclass(frozen=True, slots=True)
class Split:
    """What one task reads: fragments, some of them in part."""

    fragments: tuple[int, ...]
    #: Physical rows of fragments that are read in part: from the first up to but not including the second.
    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict, hash=False)
    offset: int = 0
    limit: int | None = None


def splits_of(
    fragments: Fragments,
    target: int,
    bytes_of_a_row: float,
    *,
    ids: Sequence[int] | None = None,
    offset: int = 0,
    limit: int | None = None,
    counted: bool = True,
) -> list[Split]:
    """Splits of about ``target`` bytes. With a limit or offset, and rows that manifests count, only of rows wanted.

    >>> from lancelet.format.fragments import Fragment
    >>> some = Fragments([Fragment(0, physical_rows=10), Fragment(1, physical_rows=100), Fragment(2, physical_rows=5)])
    >>> [(item.fragments, dict(item.ranges)) for item in splits_of(some, 50, 1.0)]
    [((0,), {}), ((1,), {1: (0, 50)}), ((1,), {1: (50, 100)}), ((2,), {})]
    """
    limited = limit is not None or offset > 0
    numbers = fragments.ids()
    rows = fragments.physical_rows()
    places = np.arange(len(numbers)) if ids is None else _places(numbers, ids)
    unknown = set(fragments.without_counts())
    if limited and (not counted or unknown.intersection(places.tolist())):
        # Which rows are left is known only to whoever reads them, in order.
        wanted = () if limit == 0 else tuple(numbers[places].tolist())
        return [Split(wanted, {}, offset, limit)] if wanted else []
    parts = _parts(places, numbers, rows, max(target / max(bytes_of_a_row, 1e-9), 1.0))
    if not limited:
        return list(_packed(parts))
    live = (rows - fragments.deleted_rows())[places]
    return list(_limited(numbers[places], rows[places], live, offset, limit, target / max(bytes_of_a_row, 1e-9)))


def _places(numbers: npt.NDArray[np.uint64], ids: Sequence[int]) -> npt.NDArray[np.int64]:
    known = {number: place for place, number in enumerate(numbers.tolist())}
    missing = [number for number in ids if number not in known]
    if missing:
        raise InvalidInput(f"there is no fragment {missing[0]}", fragment=missing[0])
    return np.array([known[number] for number in ids], np.int64)


@dataclass(frozen=True, slots=True)
class _Part:
    fragment: int
    #: None for the whole fragment.
    rows: tuple[int, int] | None
    #: In units of the target.
    weight: float


def _parts(
    places: npt.NDArray[np.int64], numbers: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64], most: float
) -> Iterator[_Part]:
    for number, count in zip(numbers[places].tolist(), rows[places].tolist(), strict=True):
        weight = count / most
        if weight <= 1.5:
            yield _Part(number, None, weight)
            continue
        cuts = np.linspace(0, count, round(weight) + 1).astype(np.int64).tolist()
        for start, stop in pairwise(cuts):
            yield _Part(number, (start, stop), 1.0)


def _packed(parts: Iterable[_Part]) -> Iterator[Split]:
    """Parts in order, as many in a split as weigh no more than one; parts of a fragment stay alone."""
    held: list[int] = []
    weight = 0.0
    for part in parts:
        if held and (part.rows is not None or weight + part.weight > 1.0):
            yield Split(tuple(held))
            held, weight = [], 0.0
        if part.rows is not None:
            yield Split((part.fragment,), {part.fragment: part.rows})
        else:
            held.append(part.fragment)
            weight += part.weight
    if held:
        yield Split(tuple(held))


def _limited(
    numbers: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.int64],
    live: npt.NDArray[np.int64],
    offset: int,
    limit: int | None,
    most: float,
) -> Iterator[Split]:
    """The fragments between offset and limit: whole ones packed, those at both ends with limits of their own."""
    ends = np.cumsum(live)
    last = int(ends[-1]) if len(ends) else 0
    stop = last if limit is None else min(offset + limit, last)
    whole: list[_Part] = []
    for number, count, kept, end in zip(numbers.tolist(), rows.tolist(), live.tolist(), ends.tolist(), strict=True):
        begin = end - kept
        skip, take = max(offset - begin, 0), min(stop, end) - max(begin, offset)
        if take <= 0:
            continue
        if take == kept:
            whole.extend(_parts(np.zeros(1, np.int64), np.array([number], np.uint64), np.array([count]), most))
            continue
        yield from _packed(whole)
        whole = []
        yield Split((number,), {}, skip, take)
    yield from _packed(whole)


def row_bytes(fragments: Fragments, stored: pa.Schema, read: pa.Schema) -> float:
    """About how many bytes a row takes once it is read: fixed widths, and for the others what files take on average.

    >>> row_bytes(Fragments([]), pa.schema({"a": pa.int32()}), pa.schema({"a": pa.int32()}))
    4.0
    """
    width, variable = _widths(field.type for field in read)
    if not variable:
        return max(width, 0.125)
    places = np.unique(np.linspace(0, len(fragments) - 1, _SAMPLE).astype(np.int64)) if len(fragments) else ()
    size = rows = 0
    for place in places:
        fragment = fragments[int(place)]
        if fragment.physical_rows and all(item.file_size for item in fragment.files):
            rows += fragment.physical_rows
            size += sum(item.file_size or 0 for item in fragment.files)
    all_widths, all_variable = _widths(field.type for field in stored)
    share = (size / rows - all_widths) / max(all_variable, 1) if rows else 0
    return width + variable * max(share, _VARIABLE)


def _widths(kinds: Iterable[pa.DataType]) -> tuple[float, int]:
    """Bytes of the values of fixed width, and how many leaves have none."""
    fixed, variable = 0.0, 0
    for kind in kinds:
        if pat.is_struct(kind):
            inner = _widths(kind.field(at).type for at in range(kind.num_fields))
            fixed, variable = fixed + inner[0], variable + inner[1]
        elif pat.is_fixed_size_list(kind):
            item, loose = _widths([kind.value_type])
            fixed, variable = fixed + item * kind.list_size, variable + loose
        elif isinstance(kind, pa.BaseExtensionType):
            inner = _widths([kind.storage_type])
            fixed, variable = fixed + inner[0], variable + inner[1]
        elif pat.is_primitive(kind) or pat.is_fixed_size_binary(kind) or pat.is_decimal(kind):
            fixed += kind.bit_width / 8
        elif not pat.is_null(kind):
            variable += 1
    return fixed, variable
