"""Casts between the Arrow types that Lance holds and those that Spark knows: exact, or refused by the column's name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.encodings.json import holds_json, json_from_text, json_to_text
from lancelet.errors import InvalidInput, LanceletError, Unsupported
from lancelet.format.extensions import stored_field
from lancelet.format.fields import EXTENSION_NAME
from lancelet.format.types import BFLOAT16
from lancelet.spark.nested_casts import is_listlike, list_cast, map_cast, struct_cast

__all__ = ["Cast", "cast_batch", "cast_for"]

#: Makes an array of the other type; None where the array is of that type already.
Cast = Callable[[pa.Array], pa.Array]

_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}


@dataclass(frozen=True, slots=True)
class _How:
    truncate: bool
    narrow: bool


def cast_for(source: pa.Field, target: pa.Field, *, truncate: bool = False, narrow: bool = False) -> Cast | None:
    """What makes arrays of one field's type into arrays of another's; None if nothing need be done.

    Values stay what they are, or the cast raises InvalidInput with the column's name. Two exceptions: floats become
    16-bit ones by rounding, because Spark has no such type to round them itself, and ``truncate`` lets digits beyond
    microseconds go. With ``narrow`` fields of structs may be left out. Unsupported where no cast between the types
    keeps all values.

    >>> cast_for(pa.field("a", pa.uint8()), pa.field("a", pa.int16()))(pa.array([255], pa.uint8())).type
    DataType(int16)
    >>> cast_for(pa.field("a", pa.float64()), pa.field("a", pa.float32()))
    Traceback (most recent call last):
    lancelet.errors.Unsupported: double cannot become float without loss [column=a]; cast the column first
    """
    return _named(_cast(source, target, source.name, _How(truncate, narrow)), source.name)


def cast_batch(batch: pa.RecordBatch, casts: list[Cast | None], schema: pa.Schema) -> pa.RecordBatch:
    """A batch with each column cast, under a schema of as many columns."""
    columns = [column if cast is None else cast(column) for column, cast in zip(batch.columns, casts, strict=True)]
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * batch.num_rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _named(cast: Cast | None, column: str) -> Cast | None:
    if cast is None:
        return None

    def named(array: pa.Array) -> pa.Array:
        try:
            return cast(array)
        except LanceletError as error:
            raise error.where(column=column) from None
        except pa.ArrowException as error:
            raise InvalidInput(f"a value does not fit: {error}", column=column) from None

    return named


def _cast(source: pa.Field, target: pa.Field, path: str, how: _How) -> Cast | None:
    """The cast between two fields, and the check for nulls where the target has none."""
    extended = isinstance(source.type, pa.BaseExtensionType)
    source, target = stored_field(source), stored_field(target)
    made = _values_cast(source, target, path, how)
    steps: list[Cast] = []
    if extended:
        steps.append(lambda array: array.storage)
    if source.nullable and not target.nullable:
        steps.append(_without_nulls(path))
    if made is not None:
        steps.append(made)
    return _chain(steps)


def _chain(steps: list[Cast]) -> Cast | None:
    if len(steps) < 2:
        return steps[0] if steps else None

    def chained(array: pa.Array) -> pa.Array:
        for step in steps:
            array = step(array)
        return array

    return chained


def _without_nulls(path: str) -> Cast:
    def check(array: pa.Array) -> pa.Array:
        if array.null_count:
            raise InvalidInput(f"{array.null_count:,} values are null, and the column may not be", column=path)
        return array

    return check


def _values_cast(source: pa.Field, target: pa.Field, path: str, how: _How) -> Cast | None:
    found, wanted = source.type, target.type
    if _is_bfloat16(source) != _is_bfloat16(target):
        return _bfloat16_cast(found, wanted, path)
    if _kind(wanted) == "text" and holds_json(source):
        return _chain([json_to_text, *_some(_leaf_cast(pa.string(), wanted, path, how))])
    if _kind(found) == "text" and holds_json(target):
        return json_from_text
    if found == wanted and not pat.is_nested(found):
        return None

    def inner(one: pa.Field, other: pa.Field, name: str) -> Cast | None:
        return _cast(one, other, f"{path}.{name}", how)

    if is_listlike(found) and is_listlike(wanted):
        return list_cast(found, wanted, path, inner(found.value_field, wanted.value_field, "item"))
    if pat.is_map(found) and pat.is_map(wanted):
        keys = inner(found.key_field, wanted.key_field, "key")
        return map_cast(found, wanted, keys, inner(found.item_field, wanted.item_field, "value"))
    if pat.is_struct(found) and pat.is_struct(wanted):
        return struct_cast(found, wanted, path, inner, narrow=how.narrow)
    return _leaf_cast(found, wanted, path, how)


def _leaf_cast(found: pa.DataType, wanted: pa.DataType, path: str, how: _How) -> Cast | None:
    if pat.is_null(found):
        return lambda array: pa.nulls(len(array), wanted)
    if pat.is_dictionary(found):
        return _chain(
            [lambda array: array.dictionary_decode(), *_some(_leaf_cast(found.value_type, wanted, path, how))]
        )
    if pat.is_dictionary(wanted):
        return _chain([*_some(_leaf_cast(found, wanted.value_type, path, how)), _encoder(wanted)])
    if found == wanted:
        return None
    if pat.is_time(found) and pat.is_int64(wanted):
        return lambda array: _counted(array, found)
    if pat.is_int64(found) and pat.is_time(wanted):
        return lambda array: _timed(array, wanted)
    if _kind(found) is None or (_kind(found), _kind(wanted)) not in _EXACT:
        raise Unsupported(f"{found} cannot become {wanted} without loss", column=path, hint="cast the column first")
    if pat.is_floating(wanted) and not _holds_all(found, wanted):
        if not pat.is_float16(wanted) or not pat.is_float32(found):
            raise Unsupported(f"{found} cannot become {wanted} without loss", column=path, hint="cast the column first")
        return lambda array: _halved(array, path)
    safe = not (how.truncate and _finer(found, wanted))
    return lambda array: array.cast(wanted, safe=safe)


def _some(cast: Cast | None) -> list[Cast]:
    return [] if cast is None else [cast]


def _finer(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether both count units of time, and the first counts smaller ones."""
    units = ("s", "ms", "us", "ns")
    counted = _kind(one) == _kind(other) and pat.is_temporal(one) and not pat.is_date(one)
    return counted and units.index(one.unit) > units.index(other.unit)


_KINDS: tuple[tuple[str, Callable[[pa.DataType], bool]], ...] = (
    ("bool", pat.is_boolean),
    ("integer", pat.is_integer),
    ("float", pat.is_floating),
    ("decimal", pat.is_decimal),
    ("text", lambda kind: pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind)),
    (
        "bytes",
        lambda kind: (
            pat.is_binary(kind)
            or pat.is_large_binary(kind)
            or pat.is_fixed_size_binary(kind)
            or pat.is_binary_view(kind)
        ),
    ),
    ("date", pat.is_date),
    ("time", pat.is_time),
    ("timestamp", lambda kind: pat.is_timestamp(kind) and kind.tz is not None),
    ("local timestamp", lambda kind: pat.is_timestamp(kind) and kind.tz is None),
    ("duration", pat.is_duration),
)
#: Pairs of kinds between which Arrow's checked cast keeps every value or raises.
_EXACT = frozenset(
    {(name, name) for name, _ in _KINDS}
    | {("integer", "decimal"), ("decimal", "integer"), ("decimal", "text"), ("text", "decimal")}
    | {("local timestamp", "integer"), ("integer", "local timestamp")}
    | {("timestamp", "integer"), ("integer", "timestamp")}
    | {("duration", "integer"), ("integer", "duration"), ("time", "text")}
)


def _kind(kind: pa.DataType) -> str | None:
    return next((name for name, test in _KINDS if test(kind)), None)


def _holds_all(found: pa.DataType, wanted: pa.DataType) -> bool:
    return bool(pat.is_floating(found) and found.bit_width <= wanted.bit_width)


def _encoder(wanted: pa.DictionaryType) -> Cast:
    return lambda array: array.dictionary_encode().cast(wanted)


def _counted(array: pa.Array, found: pa.DataType) -> pa.Array:
    """Times of day as the number of their units since midnight."""
    return array.cast(pa.int32()).cast(pa.int64()) if pat.is_time32(found) else array.cast(pa.int64())


def _timed(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Numbers of units since midnight as times of day."""
    limits = pc.min_max(array).as_py()
    for number in (limits["min"], limits["max"]):
        if number is not None and not 0 <= number < _DAY[wanted.unit]:
            raise InvalidInput(f"{number} {wanted.unit} are no time of day")
    return array.cast(pa.int32()).cast(wanted) if pat.is_time32(wanted) else array.cast(wanted)


def _halved(array: pa.Array, path: str) -> pa.Array:
    """Floats rounded to the nearest of 16 bits; one too large for them is refused."""
    made = array.cast(pa.float16())
    beyond = pc.and_(pc.is_inf(made.cast(pa.float32())), pc.is_finite(array))
    _refuse_beyond(array, beyond, pa.float16(), path)
    return made


def _refuse_beyond(array: pa.Array, beyond: pa.Array, wanted: object, path: str) -> None:
    if pc.any(beyond).as_py():
        value = array.filter(beyond)[0].as_py()
        raise InvalidInput(f"{value} is beyond what {wanted} can hold", column=path)


def _is_bfloat16(field: pa.Field) -> bool:
    metadata = field.metadata or {}
    return metadata.get(EXTENSION_NAME.encode()) == BFLOAT16.encode() and field.type == pa.binary(2)


def _bfloat16_cast(found: pa.DataType, wanted: pa.DataType, path: str) -> Cast | None:
    if pat.is_float32(wanted):
        return _widened
    if pat.is_float32(found):
        return lambda array: _shortened(array, path)
    if pat.is_fixed_size_binary(found) and pat.is_fixed_size_binary(wanted):
        return None
    raise Unsupported(f"{found} and {wanted} cannot stand for each other", column=path, hint="cast the column to float")


def _widened(array: pa.Array) -> pa.Array:
    """Brain floats, which are the upper halves of floats."""
    halves = np.frombuffer(array.buffers()[1], np.uint16, len(array), array.offset * 2)
    return _with_nulls_of(array, pa.float32(), halves.astype(np.uint32) << 16)


def _shortened(array: pa.Array, path: str) -> pa.Array:
    """Floats rounded to the nearest brain float, ties to even; one too large is refused, NaN stays NaN."""
    bits = np.frombuffer(array.buffers()[1], np.uint32, len(array), array.offset * 4)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    made = np.where(is_nan, (bits >> 16) | 0x40, rounded >> 16).astype(np.uint16)
    beyond = ((made & 0x7FFF) == 0x7F80) & ((bits & 0x7FFFFFFF) < 0x7F800000) & np.asarray(array.is_valid())
    _refuse_beyond(array, pa.array(beyond), "bfloat16", path)
    return _with_nulls_of(array, pa.binary(2), made)


def _with_nulls_of(array: pa.Array, kind: pa.DataType, values: npt.NDArray[np.generic]) -> pa.Array:
    validity = pa.py_buffer(np.packbits(array.is_valid(), bitorder="little")) if array.null_count else None
    return pa.Array.from_buffers(kind, len(array), [validity, pa.py_buffer(values)], array.null_count)
