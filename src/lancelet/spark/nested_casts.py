"""Casts of lists, maps and structs: the skeleton is kept or laid out anew, the values within are cast by their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput, Unsupported

__all__ = ["is_listlike", "list_cast", "map_cast", "struct_cast"]

_LARGEST_OFFSET = 2**31 - 1

Cast = Callable[[pa.Array], pa.Array]
#: The cast between two inner fields, the second called so within the first.
Inner = Callable[[pa.Field, pa.Field, str], Cast | None]


def is_listlike(kind: pa.DataType) -> bool:
    """Whether values are sequences of items: lists of either width and those of fixed size."""
    return bool(pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind))


def list_cast(found: pa.DataType, wanted: pa.DataType, path: str, items: Cast | None) -> Cast | None:
    """From one kind of list to another; lists that are to have a fixed size are looked at, one by one."""
    if found.id == wanted.id and items is None and (not pat.is_fixed_size_list(wanted) or found == wanted):
        return _relabelled(found, wanted)
    if pat.is_fixed_size_list(wanted):
        if pat.is_fixed_size_list(found) and found.list_size != wanted.list_size:
            lost = f"lists of {found.list_size} items cannot become lists of {wanted.list_size}"
            raise Unsupported(lost, column=path)
        return lambda array: _fixed(array, wanted, path, items)
    return lambda array: _with_offsets(array, wanted, items)


def _relabelled(found: pa.DataType, wanted: pa.DataType) -> Cast | None:
    """Only what the inner fields are called, or whether they may be null, is different, if anything is."""
    if found == wanted and _nullable_within(found) == _nullable_within(wanted):
        return None
    return lambda array: _rebuilt(array, wanted)


def _nullable_within(kind: pa.DataType) -> list[bool]:
    return [kind.field(at).nullable for at in range(kind.num_fields)]


def _rebuilt(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    buffers = array.buffers()[: 1 if pat.is_fixed_size_list(wanted) else 2]
    return pa.Array.from_buffers(wanted, len(array), buffers, array.null_count, array.offset, [array.values])


def _validity(array: pa.Array) -> pa.Buffer | None:
    return pa.py_buffer(np.packbits(array.is_valid(), bitorder="little")) if array.null_count else None


def _limits(array: pa.Array) -> npt.NDArray[np.int64]:
    """Where each list begins in the values, and where the last one ends."""
    count = len(array) + 1
    limits: npt.NDArray[np.int64] = np.zeros(1, np.int64)
    if pat.is_fixed_size_list(array.type):
        limits = np.arange(array.offset, array.offset + count) * array.type.list_size
    elif pat.is_large_list(array.type) and len(array):
        limits = np.frombuffer(array.buffers()[1], np.int64, count, array.offset * 8)
    elif len(array):
        limits = np.frombuffer(array.buffers()[1], np.int32, count, array.offset * 4).astype(np.int64)
    return limits


def _with_offsets(array: pa.Array, wanted: pa.DataType, items: Cast | None) -> pa.Array:
    limits = _limits(array)
    values = array.values.slice(int(limits[0]), int(limits[-1] - limits[0]))
    if pat.is_fixed_size_list(array.type) and array.null_count:
        # What a null list of fixed size hides is nobody's: a list of any size holds nothing there.
        lengths = np.where(array.is_valid(), array.type.list_size, 0)
        values = values.filter(pa.array(np.repeat(array.is_valid(), array.type.list_size)))
        limits = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    large = pat.is_large_list(wanted)
    if not large and int(limits[-1] - limits[0]) > _LARGEST_OFFSET:
        hint = "read in smaller batches: set batch_size"
        raise InvalidInput(f"{int(limits[-1] - limits[0]):,} items are too many for one batch", hint=hint)
    offsets = (limits - limits[0]).astype(np.int64 if large else np.int32, copy=False)
    made = values if items is None else items(values)
    buffers = [_validity(array), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(wanted, len(array), buffers, array.null_count, children=[made])


def _fixed(array: pa.Array, wanted: pa.DataType, path: str, items: Cast | None) -> pa.Array:
    size, limits = wanted.list_size, _limits(array)
    values = array.values.slice(int(limits[0]), int(limits[-1] - limits[0]))
    if not pat.is_fixed_size_list(array.type):
        valid = np.asarray(array.is_valid())
        lengths = np.diff(limits)
        wrong = valid & (lengths != size)
        if wrong.any():
            found = int(lengths[np.argmax(wrong)])
            raise InvalidInput(f"a list has {found} items, the column holds lists of {size}", column=path)
        if array.null_count:
            values = _spread(values, valid, lengths, size)
    made = values if items is None else items(values)
    return pa.Array.from_buffers(wanted, len(array), [_validity(array)], array.null_count, children=[made])


def _spread(values: pa.Array, valid: npt.NDArray[np.bool_], lengths: npt.NDArray[np.int64], size: int) -> pa.Array:
    """The items of the lists that are there, with room between them for those that are null."""
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])[:-1]
    places = starts[:, None] + np.arange(size)
    # Any value fills the room of a null list, so that items which may not be null are not.
    places[~valid] = 0
    if not len(values):
        return pa.nulls(len(valid) * size, values.type)
    return pc.take(values, pa.array(places.ravel()))


def map_cast(found: pa.DataType, wanted: pa.DataType, keys: Cast | None, items: Cast | None) -> Cast | None:
    """From map to map; entries stay in order."""
    if keys is None and items is None and found == wanted:
        return None

    def cast(array: pa.Array) -> pa.Array:
        limits = np.zeros(1, np.int32)
        if len(array):
            limits = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4)
        start, count = int(limits[0]), int(limits[-1] - limits[0])
        columns = [
            part.slice(start, count) if made is None else made(part.slice(start, count))
            for part, made in ((array.keys, keys), (array.items, items))
        ]
        entries = pa.StructArray.from_arrays(columns, fields=[wanted.key_field, wanted.item_field])
        offsets = pa.py_buffer((limits - limits[0]).astype(np.int32))
        return pa.Array.from_buffers(
            wanted, len(array), [_validity(array), offsets], array.null_count, children=[entries]
        )

    return cast


def struct_cast(
    found: pa.DataType, wanted: pa.DataType, path: str, inner: Inner, *, narrow: bool = False
) -> Cast | None:
    """From struct to struct, field by name: one that is missing is null; with ``narrow`` one may be too much."""
    names, targets = [field.name for field in found], [field.name for field in wanted]
    for given in (names, targets):
        if len(set(given)) < len(given):
            raise Unsupported(f"a struct has two fields of one name: {given}", column=path)
    extra = sorted(set(names) - set(targets))
    if extra and not narrow:
        raise InvalidInput(f"there is no field {extra[0]!r}, only {targets}", column=path)
    casts = {}
    for target in wanted:
        if target.name in names:
            casts[target.name] = inner(found.field(names.index(target.name)), target, target.name)
        elif not target.nullable:
            raise InvalidInput(f"field {target.name!r} is missing and may not be null", column=path)
    if found == wanted and not any(casts.values()):
        return None
    places = {name: at for at, name in enumerate(names)}

    def cast(array: pa.Array) -> pa.Array:
        children = []
        for target in wanted:
            if target.name not in places:
                children.append(pa.nulls(len(array), target.type))
                continue
            # What a null struct hides must not be taken for a null within one that is there.
            child, made = array.field(places[target.name]), casts[target.name]
            children.append(child if made is None else _within(array, child, target, made))
        return pa.Array.from_buffers(wanted, len(array), [_validity(array)], array.null_count, children=children)

    return cast


def _within(array: pa.Array, child: pa.Array, target: pa.Field, cast: Cast) -> pa.Array:
    if target.nullable or not array.null_count:
        return cast(child)
    # Any value that is there may stand where the struct is null.
    valid = np.asarray(array.is_valid())
    if not valid.any():
        return pa.nulls(len(array), target.type)
    there = cast(child.filter(pa.array(valid)))
    return pc.take(there, pa.array(np.maximum(np.cumsum(valid) - 1, 0)))
