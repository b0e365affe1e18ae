"""Which cast goes from a type to another, and casting of what holds other values."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import Unsupported
from lancelet.expr.casting.from_text import parsed
from lancelet.expr.casting.numbers import as_condition, as_number
from lancelet.expr.casting.times import as_time, ticks
from lancelet.expr.casting.to_text import written
from lancelet.expr.list_building import fixed_lists, gathered
from lancelet.expr.types import is_binary, is_list, is_number, is_text, plain
from lancelet.expr.vectors import list_spans, nulls_of

__all__ = ["can_convert", "converted"]

_Cast = Callable[[pa.Array, pa.DataType], pa.Array]


def converted(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values as another type; null where the type has no such value. Unsupported if no value ever has.

    >>> converted(pa.array(["7", "x", "300"]), pa.int8()).to_pylist()
    [7, None, None]
    """
    if array.type == kind:
        return array
    if isinstance(array, pa.ExtensionArray):
        return converted(array.storage, kind)
    if isinstance(array, pa.DictionaryArray):
        return converted(array.dictionary, kind).take(array.indices)
    if pat.is_dictionary(kind):
        return converted(array, kind.value_type).dictionary_encode().cast(kind)
    cast = _cast(array.type, kind)
    if cast is None:
        raise Unsupported(f"{array.type} is not cast to {kind}")
    return cast(array, kind)


def can_convert(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether values of a type can be cast to another.

    >>> can_convert(pa.string(), pa.date32()), can_convert(pa.bool_(), pa.date32())
    (True, False)
    """
    return given == kind or _cast(plain(given), kind.value_type if pat.is_dictionary(kind) else kind) is not None


def _cast(given: pa.DataType, kind: pa.DataType) -> _Cast | None:
    if pat.is_null(given):
        return lambda array, wanted: pa.nulls(len(array), wanted)
    if given == kind:
        return lambda array, _: array
    if pat.is_nested(given) or pat.is_nested(kind):
        return _nested(given, kind)
    if _is_written(kind):
        return _to_text(given)
    if is_binary(kind):
        return _to_bytes if is_text(given) or is_binary(given) else None
    if is_text(given):
        return None if pat.is_interval(kind) else parsed
    if is_binary(given):
        return None
    return _plain_cast(given, kind)


def _is_written(kind: pa.DataType) -> bool:
    return is_text(kind) or bool(pat.is_string_view(kind))


def _to_text(given: pa.DataType) -> _Cast | None:
    return written if not pat.is_interval(given) else None


def _plain_cast(given: pa.DataType, kind: pa.DataType) -> _Cast | None:
    """Casts between conditions, numbers and times."""
    if pat.is_boolean(kind):
        return as_condition if is_number(given) else None
    if is_number(kind):
        if is_number(given) or pat.is_boolean(given):
            return as_number
        counts = pat.is_temporal(given) and not pat.is_interval(given) and pat.is_integer(kind)
        return (lambda array, wanted: as_number(ticks(array), wanted)) if counts else None
    if not pat.is_temporal(kind) or pat.is_interval(kind):
        return None
    return as_time if is_number(given) or (pat.is_temporal(given) and not pat.is_interval(given)) else None


def _to_bytes(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pat.is_fixed_size_binary(kind):
        fits = pc.equal(pc.binary_length(array), kind.byte_width)
        plain_bytes = array.cast(pa.large_binary())
        return pc.if_else(fits, plain_bytes, pa.scalar(None, pa.large_binary())).cast(kind)
    return array.cast(kind)


def _nested(given: pa.DataType, kind: pa.DataType) -> _Cast | None:
    if is_list(given) and is_list(kind):
        return _lists if can_convert(given.value_type, kind.value_type) else None
    if pat.is_struct(given) and pat.is_struct(kind):
        names = [field.name for field in given]
        fits = all(field.name not in names or can_convert(given.field(field.name).type, field.type) for field in kind)
        return _structs if fits and any(field.name in names for field in kind) else None
    if pat.is_map(given) and pat.is_map(kind):
        return lambda array, wanted: array.cast(wanted)
    return written if is_list(given) and _is_written(kind) else None


def _lists(array: pa.Array, kind: pa.DataType) -> pa.Array:
    starts, lengths, items = list_spans(array)
    nulls = nulls_of(array)
    made = converted(items, kind.value_type)
    if pat.is_fixed_size_list(kind):
        return fixed_lists(starts, lengths, made, kind, nulls)
    return gathered(starts, lengths, made, kind, nulls)


def _structs(array: pa.Array, kind: pa.DataType) -> pa.Array:
    names = [field.name for field in array.type]
    children = [
        converted(pc.struct_field(array, [names.index(field.name)]), field.type)
        if field.name in names
        else pa.nulls(len(array), field.type)
        for field in kind
    ]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
