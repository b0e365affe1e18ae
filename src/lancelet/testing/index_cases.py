"""Cases for indexes: columns of every type with awkward values, questions about them, and the truth row by row."""

from __future__ import annotations

import math
import random
import struct
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as pat

from lancelet.index.queries import Between, Equals, HasAll, HasAny, IsIn, IsNull, Query

__all__ = [
    "VALUE_TYPES",
    "lists_of",
    "order_key",
    "query_about",
    "query_about_lists",
    "sql_of",
    "true_and_null",
    "values_of",
]

#: Every type that BTREE and BITMAP indexes take, by a short name.
VALUE_TYPES: dict[str, pa.DataType] = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "fixed_binary": pa.binary(3),
    "decimal128": pa.decimal128(20, 3),
    "decimal256": pa.decimal256(50, 3),
    "date32": pa.date32(),
    "date64": pa.date64(),
    "time32_s": pa.time32("s"),
    "time32_ms": pa.time32("ms"),
    "time64_us": pa.time64("us"),
    "time64_ns": pa.time64("ns"),
    "timestamp_s": pa.timestamp("s"),
    "timestamp_ms_utc": pa.timestamp("ms", "UTC"),
    "timestamp_us": pa.timestamp("us"),
    "timestamp_ns_rome": pa.timestamp("ns", "Europe/Rome"),
    "duration_s": pa.duration("s"),
    "duration_ns": pa.duration("ns"),
}

_TEXTS = ["", "a", "ab", "abc", "b", "é", "Ü", "straße", "日本", "\U0001f600", "zz", "a\x00b", " ", "A"]
#: NaN of both signs: what divides zero by zero makes the negative one.
_FLOATS = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, -math.nan, 2.0**-14, 100.0]


def values_of(
    kind: pa.DataType,
    count: int,
    draw: random.Random,
    *,
    distinct: int = 40,
    nulls: float = 0.1,
    negative_nan: bool = True,
) -> pa.Array:
    """Values of a type, many of them alike, the awkward ones of the type among them.

    pylance takes a NaN with a minus sign for a value of its own, so that tests of it may want none.
    """
    pool = [_value(kind, draw) for _ in range(distinct)]
    if not negative_nan:
        pool = [math.nan if isinstance(value, float) and math.isnan(value) else value for value in pool]
    listed = [None if draw.random() < nulls else draw.choice(pool) for _ in range(count)]
    if pat.is_time(kind) or pat.is_timestamp(kind) or pat.is_duration(kind) or pat.is_date(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(listed, width).view(kind)
    return pa.array(listed, kind)


def _value(kind: pa.DataType, draw: random.Random) -> object:
    if pat.is_boolean(kind):
        return draw.random() < 0.5
    if pat.is_floating(kind):
        return draw.choice(_FLOATS) if draw.random() < 0.4 else round(draw.uniform(-50, 50), 2)
    if pat.is_string(kind) or pat.is_large_string(kind):
        return draw.choice(_TEXTS) + draw.choice(["", "", "x", str(draw.randrange(30))])
    if pat.is_fixed_size_binary(kind):
        return draw.randbytes(kind.byte_width)
    if pat.is_binary(kind) or pat.is_large_binary(kind):
        return draw.choice([b"", b"\x00", b"\xff", b"a", draw.randbytes(4)])
    if pat.is_decimal(kind):
        return Decimal(draw.randrange(-5000, 5000)).scaleb(-kind.scale)
    if pat.is_date64(kind):
        return draw.randrange(-50, 50) * 86_400_000
    if pat.is_time(kind):
        return draw.randrange(0, 86_400)
    signed = not pat.is_unsigned_integer(kind)
    width = kind.bit_width
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    if pat.is_temporal(kind):
        # Nothing that would overflow when somebody makes a calendar date of it.
        low, high = -(2**31), 2**31 - 1
    return draw.choice([low, high, 0, 1, draw.randrange(max(low, -60), min(high, 60) + 1)])


def lists_of(kind: pa.DataType, count: int, draw: random.Random, *, negative_nan: bool = True) -> pa.Array:
    """Lists of values of a type: some null, some empty, some with nulls and repetitions in them."""
    items = values_of(kind, 4 * count + 8, draw, distinct=12, negative_nan=negative_nan)
    starts, missing, start = [], [], 0
    for _ in range(count):
        starts.append(start)
        missing.append(draw.random() < 0.1)
        start = min(start + draw.choice([0, 1, 1, 2, 3, 6]), len(items))
    offsets = pa.array([*starts, start], pa.int32())
    return pa.ListArray.from_arrays(offsets, items[:start], mask=pa.array(missing))


def query_about_lists(lists: pa.Array, draw: random.Random) -> Query:
    """A question about lists, mostly about items that occur."""
    items = lists.flatten().unique()
    picked = [items[draw.randrange(len(items))] for _ in range(draw.randrange(1, 4))]
    if draw.random() < 0.2:
        picked = [*picked, values_of(items.type, 1, draw, nulls=0)[0]]
    values = _joined(picked, items.type)
    match draw.randrange(5):
        case 0:
            return IsNull()
        case 1 | 2:
            return HasAny(values)
        case _:
            return HasAll(values)


def _joined(scalars: list[pa.Scalar], kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays([pa.array([], kind), *(pa.repeat(one, 1) for one in scalars)])


def query_about(values: pa.Array, draw: random.Random) -> Query:
    """A question about values, mostly those that occur."""
    kind = values.type
    present = values.drop_null()

    def one() -> pa.Scalar:
        if len(present) and draw.random() < 0.8:
            return present[draw.randrange(len(present))]
        return values_of(kind, 1, draw, nulls=0)[0]

    match draw.randrange(6):
        case 0:
            return IsNull()
        case 1 | 2:
            return Equals(one())
        case 3:
            return IsIn(_joined([one() for _ in range(draw.randrange(0, 6))], kind))
        case _:
            low, high = (one() if draw.random() < 0.8 else None for _ in range(2))
            return Between(low, high, draw.random() < 0.5, draw.random() < 0.5)


def order_key(value: object) -> object:
    """What Python compares by as conditions do: one NaN above all numbers, one zero, all else as it is."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def _plain(values: pa.Array) -> list[object]:
    """Values as Python has them; times as the numbers that are stored."""
    kind = values.type
    if pat.is_temporal(kind):
        return list(values.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist())
    if pat.is_float16(kind):
        stored = values.buffers()[1].to_pybytes()
        found = struct.unpack_from(f"<{len(values)}e", stored, 2 * values.offset)
        return [None if missing else one for one, missing in zip(found, values.is_null().to_pylist(), strict=True)]
    return list(values.to_pylist())


#: What DataFusion calls types that are no plain SQL.
_SQL_TYPES = {
    pa.string(): "Utf8",
    pa.large_string(): "LargeUtf8",
    pa.binary(): "Binary",
    pa.large_binary(): "LargeBinary",
    pa.float16(): "Float16",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.bool_(): "Boolean",
    pa.date32(): "Date32",
    pa.date64(): "Date64",
}
_SQL_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}


def _sql_type(kind: pa.DataType) -> str:
    if kind in _SQL_TYPES:
        return _SQL_TYPES[kind]
    if pat.is_integer(kind):
        return f"{'UInt' if pat.is_unsigned_integer(kind) else 'Int'}{kind.bit_width}"
    if pat.is_fixed_size_binary(kind) and not pat.is_decimal(kind):
        return f"FixedSizeBinary({kind.byte_width})"
    if pat.is_decimal(kind):
        return f"Decimal{kind.bit_width}({kind.precision}, {kind.scale})"
    unit = _SQL_UNITS[kind.unit]
    if pat.is_timestamp(kind):
        zone = "None" if kind.tz is None else f'Some("{kind.tz}")'
        return f"Timestamp({unit}, {zone})"
    return f"{'Duration' if pat.is_duration(kind) else f'Time{kind.bit_width}'}({unit})"


def _sql(value: pa.Scalar) -> str:
    """A value as a literal of exactly its type."""
    found = _plain(pa.repeat(value, 1))[0]
    if found is None:
        text = "NULL"
    elif isinstance(found, bytes):
        text = f"X'{found.hex()}'"
    elif isinstance(found, bool) or (isinstance(found, int) and abs(found) < 2**62):
        text = str(found)
    else:
        text = f"'{found}'"
    return f"arrow_cast({text}, '{_sql_type(value.type)}')"


def _list(values: pa.Array) -> str:
    return f"make_array({', '.join(_sql(value) for value in values)})"


def sql_of(query: Query, column: str) -> str | None:
    """A query as text that pylance and we take; None for one that says nothing."""
    match query:
        case HasAny(values):
            return f"array_has_any({column}, {_list(values)})"
        case HasAll(values):
            return f"array_has_all({column}, {_list(values)})"
        case IsNull():
            return f"{column} IS NULL"
        case Equals(value):
            return f"{column} = {_sql(value)}"
        case IsIn(values) if len(values):
            return f"{column} IN ({', '.join(map(_sql, values))})"
        case Between(low, high, low_inclusive, high_inclusive):
            parts = []
            if low is not None:
                parts.append(f"{column} {'>=' if low_inclusive else '>'} {_sql(low)}")
            if high is not None:
                parts.append(f"{column} {'<=' if high_inclusive else '<'} {_sql(high)}")
            return " AND ".join(parts) or None
    return None


def _true_of_lists(lists: pa.Array, query: HasAny | HasAll) -> tuple[list[int], list[int]]:
    wanted = {order_key(value) for value in _plain(query.values)}
    missing = [at for at, one in enumerate(lists) if not one.is_valid]
    true = []
    for at, one in enumerate(lists):
        if one.is_valid:
            held = {order_key(value) for value in _plain(one.values)}
            if wanted & held if isinstance(query, HasAny) else wanted <= held:
                true.append(at)
    return true, missing


def true_and_null(values: pa.Array, query: Query) -> tuple[list[int], list[int]]:
    """The places for which a query is true, and those for which it is null: row by row, as SQL has it."""
    if isinstance(query, HasAny | HasAll):
        return _true_of_lists(values, query)
    missing = [at for at, gone in enumerate(values.is_null().to_pylist()) if gone]
    if isinstance(query, IsNull):
        return missing, []
    listed = _plain(values)
    present = [(at, order_key(value)) for at, value in enumerate(listed) if value is not None]

    def key(scalar: pa.Scalar) -> object:
        return order_key(_plain(pa.repeat(scalar, 1))[0])

    match query:
        case Equals(value):
            wanted = key(value)
            return [at for at, one in present if one == wanted], missing
        case IsIn(several):
            keys = [key(value) for value in several]
            return [at for at, one in present if one in keys], missing
        case Between(low, high, low_inclusive, high_inclusive):
            lowest, highest = (None if bound is None else key(bound) for bound in (low, high))
            return [
                at
                for at, one in present
                if (lowest is None or one > lowest or (low_inclusive and one == lowest))  # type: ignore[operator]
                and (highest is None or one < highest or (high_inclusive and one == highest))  # type: ignore[operator]
            ], missing
    raise TypeError(f"no truth is known of {query}")
