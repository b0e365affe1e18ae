"""Generated columns: seeded Arrow arrays over types, null patterns and value shapes, for differential tests."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

__all__ = [
    "NULL_PATTERNS",
    "SHAPES",
    "WISHES",
    "Case",
    "cases",
    "late_types",
    "leaf_types",
    "make_array",
    "nested_types",
    "wished",
]

#: How nulls lie among the values.
NULL_PATTERNS = ("none", "few", "half", "most", "all", "runs", "first")
#: How values relate to each other.
SHAPES = ("random", "small", "constant", "runs", "sequence", "few")
#: What a field's metadata may ask of the encodings, without the prefix of the keys; mostly nothing.
WISHES: tuple[dict[str, str], ...] = (
    {},
    {},
    {"compression": "zstd"},
    {"compression": "zstd", "compression-level": "19", "bss": "off"},
    {"compression": "lz4"},
    {"compression": "lz4", "bss": "on"},
    {"compression": "none"},
    {"compression": "fsst"},
    {"structural-encoding": "miniblock"},
    {"minichunk-size": "500"},
    {"dict-divisor": "1000000"},
    {"dict-size-ratio": "1", "dict-values-compression": "zstd"},
    {"rle-threshold": "0"},
)


@dataclass(frozen=True, slots=True)
class Case:
    """One column to write: what it is made from says its name."""

    kind: pa.DataType
    nulls: str
    shape: str
    rows: int
    seed: int

    def array(self) -> pa.Array:
        """The column; the same for the same case on every machine."""
        return make_array(np.random.default_rng(self.seed), self.kind, self.rows, nulls=self.nulls, shape=self.shape)

    def __str__(self) -> str:
        return f"{self.kind}/{self.nulls}/{self.shape}/{self.rows}/seed={self.seed}"


def wished(array: pa.Array, wishes: Mapping[str, str]) -> pa.Table:
    """The array as column ``c`` of a table, its field with wishes for the encodings.

    >>> wished(pa.array([1]), {"compression": "zstd"}).schema.field("c").metadata
    {b'lance-encoding:compression': b'zstd'}
    """
    metadata = {f"lance-encoding:{key}": value for key, value in wishes.items()}
    return pa.table([array], schema=pa.schema([pa.field("c", array.type, metadata=metadata or None)]))


def leaf_types() -> list[pa.DataType]:
    """Every type that is a value by itself."""
    units = ("s", "ms", "us", "ns")
    return [
        pa.bool_(),
        *(getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)),
        pa.float16(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.large_string(),
        pa.large_binary(),
        pa.binary(3),
        pa.binary(16),
        pa.decimal128(20, 4),
        pa.decimal256(50, 6),
        pa.date32(),
        pa.date64(),
        pa.time32("s"),
        pa.time32("ms"),
        pa.time64("us"),
        pa.time64("ns"),
        *(pa.timestamp(unit) for unit in units),
        pa.timestamp("us", "UTC"),
        pa.timestamp("ms", "America/New_York"),
        *(pa.duration(unit) for unit in units),
        pa.list_(pa.float32(), 4),
        pa.list_(pa.int16(), 3),
        pa.list_(pa.bool_(), 5),
        pa.list_(pa.list_(pa.int8(), 2), 3),
        pa.list_(pa.float32(), 96),
        pa.binary(300),
        pa.null(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.dictionary(pa.int8(), pa.int64()),
    ]


def late_types() -> list[pa.DataType]:
    """Types that only files of version 2.2 hold."""
    point = pa.struct([("x", pa.int32()), ("y", pa.string())])
    return [
        pa.map_(pa.string(), pa.int32()),
        pa.map_(pa.int64(), pa.list_(pa.string())),
        pa.list_(point, 3),
        pa.struct([("m", pa.map_(pa.string(), point)), ("n", pa.int8())]),
        pa.struct([("v", pa.list_(point, 2))]),
    ]


def nested_types() -> list[pa.DataType]:
    """Types that hold others, up to three levels deep."""
    point = pa.struct([("x", pa.int32()), ("y", pa.string())])
    return [
        pa.list_(pa.int32()),
        pa.list_(pa.string()),
        pa.large_list(pa.float64()),
        pa.list_(pa.list_(pa.int16())),
        point,
        pa.struct([("a", pa.float64()), ("p", point), ("l", pa.list_(pa.int64()))]),
        pa.list_(point),
        pa.list_(pa.struct([("t", pa.list_(pa.string())), ("n", pa.int8())])),
        pa.list_(pa.list_(pa.float32(), 2)),
        pa.large_list(pa.struct([("b", pa.bool_())])),
    ]


def cases(seed: int, count: int, kinds: list[pa.DataType], *, largest: int = 5000) -> Iterator[Case]:
    """``count`` cases drawn from all combinations; sizes lean to the small and the awkward."""
    draw = np.random.default_rng(seed)
    sizes = (0, 1, 2, 3, 7, 8, 9, 63, 100, 1000, 1023, 1024, 1025, largest)
    for number in range(count):
        yield Case(
            kinds[int(draw.integers(len(kinds)))],
            NULL_PATTERNS[int(draw.integers(len(NULL_PATTERNS)))],
            SHAPES[int(draw.integers(len(SHAPES)))],
            int(sizes[int(draw.integers(len(sizes)))]),
            seed * 1_000_003 + number,
        )


def make_array(
    draw: np.random.Generator, kind: pa.DataType, rows: int, *, nulls: str = "few", shape: str = "random"
) -> pa.Array:
    """An array of any type of :func:`leaf_types` or :func:`nested_types`, or made up from them."""
    mask = _mask(draw, rows, nulls)
    if pat.is_struct(kind):
        children = [
            make_array(draw, field.type, rows, nulls=nulls if nulls != "all" else "half", shape=shape) for field in kind
        ]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=pa.array(mask))
    if pat.is_map(kind):
        offsets = _offsets(draw, rows, mask)
        keys = make_array(draw, kind.key_type, int(offsets[-1]), nulls="none", shape=shape)
        items = make_array(draw, kind.item_type, int(offsets[-1]), nulls=nulls, shape=shape)
        return pa.MapArray.from_arrays(_null_offsets(offsets, mask), keys, items, type=kind)
    if pat.is_list(kind) or pat.is_large_list(kind):
        offsets = _offsets(draw, rows, mask)
        items = make_array(draw, kind.value_type, int(offsets[-1]), nulls=nulls, shape=shape)
        maker = pa.LargeListArray if pat.is_large_list(kind) else pa.ListArray
        return maker.from_arrays(_null_offsets(offsets, mask, large=pat.is_large_list(kind)), items, type=kind)
    if pat.is_fixed_size_list(kind):
        inner = "none" if nulls in ("none", "all") or draw.random() < 0.5 else nulls
        items = make_array(draw, kind.value_type, rows * kind.list_size, nulls=inner, shape=shape)
        return pa.FixedSizeListArray.from_arrays(items, type=kind, mask=pa.array(mask))
    return _leaf(draw, kind, rows, mask, shape)


def _mask(draw: np.random.Generator, rows: int, nulls: str) -> np.ndarray:
    """True where null."""
    share = {"few": 0.05, "half": 0.5, "most": 0.97}.get(nulls)
    if share is not None:
        return draw.random(rows) < share
    mask = np.zeros(rows, bool)
    if nulls == "all":
        mask[:] = True
    elif nulls == "first":
        mask[:1] = True
    elif nulls == "runs" and rows:
        mask = np.repeat(draw.random(rows // 50 + 1) < 0.5, 50)[:rows]
    return mask


def _offsets(draw: np.random.Generator, rows: int, mask: np.ndarray) -> np.ndarray:
    """Lists of 0 to 5 items, null ones with none."""
    lengths = np.where(mask, 0, draw.integers(0, 6, rows))
    return np.concatenate([[0], np.cumsum(lengths)])


def _null_offsets(offsets: np.ndarray, mask: np.ndarray, *, large: bool = False) -> pa.Array:
    kind = pa.int64() if large else pa.int32()
    return pa.array(offsets, kind, mask=np.append(mask, False))


def _leaf(draw: np.random.Generator, kind: pa.DataType, rows: int, mask: np.ndarray, shape: str) -> pa.Array:
    if pat.is_null(kind):
        return pa.nulls(rows)
    if pat.is_dictionary(kind):
        few = make_array(draw, kind.value_type, 20, nulls="none")
        return pa.DictionaryArray.from_arrays(pa.array(draw.integers(0, 20, rows), kind.index_type, mask=mask), few)
    numbers = _numbers(draw, rows, shape)
    if pat.is_boolean(kind):
        return pa.array(numbers % 3 == 0, mask=mask)
    text = _TEXT.get(kind)
    if text is not None:
        values = [text(int(number)) for number in numbers]
        return pa.array(values, kind, mask=mask) if rows else pa.array([], kind)
    width = kind.bit_width // 8
    if pat.is_floating(kind):
        floats = (numbers % 2048 if shape != "random" else draw.standard_normal(rows)).astype(f"f{width}")
        return pa.array(floats, kind, mask=mask)
    raw = _limited(kind, numbers)
    data = np.zeros((rows, width), np.uint8)
    data[:, : min(8, width)] = raw.astype(np.int64).view(np.uint8).reshape(rows, 8)[:, : min(8, width)]
    if width > 8 and not pat.is_decimal(kind):
        data[:, 8:] = data[:, :1]
    array = pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(data.tobytes())])
    return _masked(array, mask)


def _masked(array: pa.Array, mask: np.ndarray) -> pa.Array:
    if not mask.any():
        return array
    validity = np.packbits(~mask, bitorder="little").tobytes()
    return pa.Array.from_buffers(array.type, len(array), [pa.py_buffer(validity), array.buffers()[1]], int(mask.sum()))


def _numbers(draw: np.random.Generator, rows: int, shape: str) -> np.ndarray:
    if shape == "random":
        return draw.integers(0, 2**62, rows)
    if shape == "small":
        return draw.integers(0, 1000, rows)
    if shape == "constant":
        return np.full(rows, int(draw.integers(1, 100)))
    if shape == "runs":
        return np.repeat(draw.integers(0, 2**40, rows // 30 + 1), 30)[:rows]
    if shape == "few":
        return draw.integers(0, 7, rows) * 1_000_003
    return np.arange(rows, dtype=np.int64) * 3


def _limited(kind: pa.DataType, numbers: np.ndarray) -> np.ndarray:
    """Numbers that are valid values of types with a range of their own."""
    day = 86_400
    if pat.is_time(kind):
        return numbers % (day * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit])
    if pat.is_date64(kind):
        return numbers % 40_000 * (day * 1000)
    if pat.is_date32(kind):
        return numbers % 40_000
    if pat.is_timestamp(kind) or pat.is_duration(kind):
        return numbers % (2**50)
    return numbers % 10**9 if pat.is_decimal(kind) else numbers


def _word(number: int) -> str:
    letters = string.ascii_lowercase
    word = []
    while number:
        number, at = divmod(number, 26)
        word.append(letters[at])
    return "".join(word)


_TEXT: dict[pa.DataType, Callable[[int], str | bytes]] = {
    pa.string(): _word,
    pa.large_string(): lambda number: f"item-{number}-é",
    pa.binary(): lambda number: number.to_bytes(8, "little").rstrip(b"\0"),
    pa.large_binary(): lambda number: number.to_bytes(8, "big") * (number % 5),
}
