"""Types of expressions: which kinds there are, and which type two of them have in common."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat

__all__ = [
    "as_decimal",
    "common_type",
    "decimal_of",
    "integer_bounds",
    "is_binary",
    "is_list",
    "is_nested",
    "is_number",
    "is_text",
    "list_item",
    "numeric_type",
    "plain",
]

#: How many digits an integer of so many bits may have, as a decimal.
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
_UNITS = ("s", "ms", "us", "ns")


def plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values: of what a dictionary or an extension type stands for, and of views what they view.

    >>> plain(pa.dictionary(pa.int8(), pa.string()))
    DataType(string)
    """
    while True:
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        elif pat.is_dictionary(kind):
            kind = kind.value_type
        elif pat.is_string_view(kind):
            return pa.string()
        elif pat.is_binary_view(kind):
            return pa.binary()
        else:
            return kind


def is_text(kind: pa.DataType) -> bool:
    """Whether values are text."""
    kind = plain(kind)
    return bool(pat.is_string(kind) or pat.is_large_string(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Whether values are bytes."""
    kind = plain(kind)
    return bool(pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_fixed_size_binary(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether values are integers, floats or decimals."""
    kind = plain(kind)
    return bool(pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind))


def is_list(kind: pa.DataType) -> bool:
    """Whether values are lists, of any kind but maps."""
    return bool(pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind))


def is_nested(kind: pa.DataType) -> bool:
    """Whether values hold other values."""
    return bool(pat.is_nested(kind))


def list_item(kind: pa.DataType) -> pa.DataType:
    """The type of a list's items."""
    return kind.value_type


def integer_bounds(kind: pa.DataType) -> tuple[int, int]:
    """The least and the greatest value of an integer type, or of one that counts in integers.

    >>> integer_bounds(pa.uint8()), integer_bounds(pa.date32())[1]
    ((0, 255), 2147483647)
    """
    if pat.is_unsigned_integer(kind):
        return 0, int(2**kind.bit_width - 1)
    return int(-(2 ** (kind.bit_width - 1))), int(2 ** (kind.bit_width - 1) - 1)


def decimal_of(precision: int, scale: int, *, wide: bool = False) -> pa.DataType:
    """A decimal type of 128 bits, or of 256 where it is asked for, with no more digits than that holds.

    >>> decimal_of(41, 2)
    Decimal128Type(decimal128(38, 2))
    """
    make, most = (pa.decimal256, 76) if wide else (pa.decimal128, 38)
    return make(min(max(precision, 1), most), min(scale, most))


def as_decimal(kind: pa.DataType) -> pa.DataType | None:
    """The decimal type that holds all values of an integer or decimal type.

    >>> as_decimal(pa.int32())
    Decimal128Type(decimal128(10, 0))
    """
    if pat.is_integer(kind):
        return pa.decimal128(_DIGITS[kind.bit_width], 0)
    if pat.is_decimal128(kind) or pat.is_decimal256(kind):
        return kind
    return pa.decimal128(kind.precision, kind.scale) if pat.is_decimal(kind) else None


def numeric_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type in which two numbers are calculated or compared; None if they are not two numbers.

    >>> numeric_type(pa.uint8(), pa.int8()), numeric_type(pa.int64(), pa.float32())
    (DataType(int16), DataType(float))
    """
    left, right = plain(left), plain(right)
    if left == right and is_number(left):
        return left
    if not (is_number(left) and is_number(right)):
        return None
    if pat.is_floating(left) or pat.is_floating(right):
        widths = [kind.bit_width for kind in (left, right) if pat.is_floating(kind)]
        decimals = pat.is_decimal(left) or pat.is_decimal(right)
        return {16: pa.float32() if decimals else pa.float16(), 32: pa.float32(), 64: pa.float64()}[max(widths)]
    if pat.is_decimal(left) or pat.is_decimal(right):
        return _common_decimal(left, right)
    return _common_integer(left, right)


def _common_integer(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    signs = pat.is_signed_integer(left), pat.is_signed_integer(right)
    if signs[0] == signs[1]:
        return left if left.bit_width >= right.bit_width else right
    signed, unsigned = (left, right) if signs[0] else (right, left)
    if signed.bit_width > unsigned.bit_width:
        return signed
    if unsigned.bit_width == 64:
        return pa.decimal128(20, 0)
    return {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}[unsigned.bit_width]


def _common_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    one, two = as_decimal(left), as_decimal(right)
    if one is None or two is None:
        raise ValueError(f"{left} and {right} are not both exact numbers")
    scale = max(one.scale, two.scale)
    digits = max(one.precision - one.scale, two.precision - two.scale)
    wide = pat.is_decimal256(one) or pat.is_decimal256(two)
    return decimal_of(digits + scale, scale, wide=wide)


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both, as ``CASE`` and comparisons want them; None if there is none.

    >>> common_type(pa.string(), pa.large_string()), common_type(pa.date32(), pa.timestamp("ms"))
    (DataType(large_string), TimestampType(timestamp[ms]))
    >>> common_type(pa.int8(), pa.string()) is None
    True
    """
    left, right = plain(left), plain(right)
    if left == right or pat.is_null(right):
        return left
    if pat.is_null(left):
        return right
    numbers = numeric_type(left, right)
    if numbers is not None:
        return numbers
    if is_text(left) and is_text(right):
        return pa.large_string()
    if is_binary(left) and is_binary(right):
        return pa.large_binary() if pat.is_large_binary(left) or pat.is_large_binary(right) else pa.binary()
    if pat.is_temporal(left) and pat.is_temporal(right):
        return _common_time(left, right)
    if is_nested(left) and is_nested(right):
        return _common_nested(left, right)
    return None


def _common_time(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if pat.is_date(left) and pat.is_date(right):
        return pa.date64()
    if pat.is_date(left):
        left, right = right, left
    if pat.is_timestamp(left) and pat.is_date(right):
        # Milliseconds of a 64-bit date would be lost in seconds.
        return pa.timestamp("ms", left.tz) if pat.is_date64(right) and left.unit == "s" else left
    if pat.is_timestamp(left) and pat.is_timestamp(right):
        return pa.timestamp(_finer(left.unit, right.unit), left.tz or right.tz)
    if pat.is_duration(left) and pat.is_duration(right):
        return pa.duration(_finer(left.unit, right.unit))
    if pat.is_time(left) and pat.is_time(right):
        unit = _finer(left.unit, right.unit)
        return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    return None


def _finer(left: str, right: str) -> str:
    return max(left, right, key=_UNITS.index)


def _common_nested(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if is_list(left) and is_list(right):
        item = common_type(left.value_type, right.value_type)
        if item is None:
            return None
        field = pa.field("item", item)
        if pat.is_fixed_size_list(left) and pat.is_fixed_size_list(right) and left.list_size == right.list_size:
            return pa.list_(field, left.list_size)
        return pa.large_list(field) if pat.is_large_list(left) or pat.is_large_list(right) else pa.list_(field)
    if pat.is_struct(left) and pat.is_struct(right):
        names = [field.name for field in left]
        if names != [field.name for field in right]:
            return None
        kinds = [common_type(one.type, two.type) for one, two in zip(left, right, strict=True)]
        return None if None in kinds else pa.struct(list(zip(names, kinds, strict=True)))
    return None
