"""Values as text: floats with a point, times as ISO 8601, as DataFusion shows them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.expr.types import is_binary, is_list, is_text
from lancelet.expr.vectors import by_value, list_spans, nulls_of, raw_values

__all__ = ["written"]


def written(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values as text of a type.

    >>> written(pa.array([1.0, 1e20, None]), pa.string()).to_pylist()
    ['1.0', '1e20', None]
    """
    given = array.type
    if pat.is_string_view(kind):
        return written(array, pa.string()).cast(kind)
    if is_text(given) or is_binary(given):
        return array.cast(pa.binary()).cast(kind) if pat.is_fixed_size_binary(given) else array.cast(kind)
    if pat.is_floating(given):
        return _floats(array).cast(kind)
    if pat.is_timestamp(given):
        return _points(array).cast(kind)
    if pat.is_time(given):
        return _trimmed(array.cast(pa.string())).cast(kind)
    if pat.is_date(given):
        return array.cast(pa.date32()).cast(pa.string()).cast(kind)
    if pat.is_duration(given):
        return _durations(array).cast(kind)
    if is_list(given):
        return _lists(array).cast(kind)
    return array.cast(kind)


def _floats(array: pa.Array) -> pa.Array:
    """The fewest digits that mean the float, with a point; with an exponent where there would be many zeros."""
    narrow = not pat.is_float64(array.type)
    if pat.is_float16(array.type):
        array = array.cast(pa.float32())
    texts = array.cast(pa.string())
    texts = pc.replace_substring_regex(texts, r"^(-?[0-9]+)$", r"\1.0")
    texts = pc.replace_substring_regex(texts, r"e\+?(-?)0*([0-9]+)$", r"e\1\2")
    texts = pc.replace_substring(texts, "nan", "NaN")
    # Between these bounds Arrow and DataFusion disagree on whether to write an exponent.
    sizes = np.abs(raw_values(array))
    with np.errstate(invalid="ignore"):
        odd = (sizes >= 1e13) & (sizes < 1e15) if narrow else (sizes >= 1e15) & (sizes < 1e16)
    if odd.any():
        places = pa.array(odd)
        texts = pc.replace_with_mask(texts, places, _odd(array.filter(places), narrow))
    return texts


def _odd(array: pa.Array, narrow: bool) -> pa.Array:
    if not narrow:
        return by_value(repr, [array], len(array), pa.string())
    # Thirteen digits before the point and more: digits and an exponent.
    texts = array.cast(pa.string())
    digits = pc.replace_substring_regex(texts, r"^(-?[0-9])([0-9]*?)0*$", r"\1.\2e")
    power = pc.subtract(pc.utf8_length(pc.utf8_ltrim(texts, characters="-")), 1).cast(pa.string())
    return pc.replace_substring(pc.binary_join_element_wise(digits, power, ""), ".e", "e")


def _trimmed(texts: pa.Array) -> pa.Array:
    """Fractions of seconds in groups of three digits, none where there are no such parts."""
    texts = pc.replace_substring_regex(texts, r"(\.[0-9]{6})000$", r"\1")
    texts = pc.replace_substring_regex(texts, r"(\.[0-9]{3})000$", r"\1")
    return pc.replace_substring_regex(texts, r"\.000$", "")


def _points(array: pa.Array) -> pa.Array:
    zone = array.type.tz
    local = pc.local_timestamp(array) if zone else array
    texts = pc.replace_substring(_trimmed(local.cast(pa.string())), " ", "T", max_replacements=1)
    if zone is None:
        return texts
    if zone in ("UTC", "+00:00", "Z"):
        return pc.binary_join_element_wise(texts, "Z", "")
    offsets = pc.divide(pc.subtract(local.cast(pa.int64()), array.cast(pa.int64())), _per_minute(array.type.unit))
    return pc.binary_join_element_wise(texts, _offsets(offsets), "")


def _per_minute(unit: str) -> int:
    return 60 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]


def _offsets(minutes: pa.Array) -> pa.Array:
    """Minutes east of Greenwich as +hh:mm."""
    size = pc.abs(minutes)
    sign = pc.if_else(pc.less(minutes, 0), "-", "+")
    hours, rest = pc.divide(size, 60), pc.subtract(size, pc.multiply(pc.divide(size, 60), 60))
    two = [pc.utf8_lpad(each.cast(pa.string()), width=2, padding="0") for each in (hours, rest)]
    return pc.binary_join_element_wise(sign, two[0], ":", two[1], "")


def _durations(array: pa.Array) -> pa.Array:
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[array.type.unit]

    def spelled(count: int) -> str:
        sign = "-" if count < 0 else ""
        whole, part = divmod(abs(count), 10**digits)
        days, left = divmod(whole, 86_400)
        fraction = f".{part:0{digits}d}" if digits else ""
        clock = f"{sign}{left // 3600} hours {sign}{left // 60 % 60} mins {sign}{left % 60}{fraction} secs"
        return f"{sign}{days} days {clock}"

    return by_value(spelled, [array.cast(pa.int64())], len(array), pa.string())


def _lists(array: pa.Array) -> pa.Array:
    _, lengths, _ = list_spans(array)
    nulls = nulls_of(array)
    plain = array.cast(pa.large_list(array.type.value_type)) if pat.is_fixed_size_list(array.type) else array
    items = pc.fill_null(written(plain.flatten(), pa.string()), "")
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    parts = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), items)
    joined = pc.binary_join(parts, ", ")
    texts = pc.binary_join_element_wise("[", joined, "]", "")
    return texts if nulls is None else pc.if_else(pa.array(nulls), pa.scalar(None, texts.type), texts)
