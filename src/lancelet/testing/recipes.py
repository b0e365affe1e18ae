"""Recipes: small tables of one column that together meet every page layout and encoding a file version has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

__all__ = ["Recipe", "recipes"]

_ROWS = 3000
_FULL_ZIP = {"lance-encoding:structural-encoding": "fullzip"}
_ALL = ("2.0", "2.1", "2.2")
_SINCE_2_1 = ("2.1", "2.2")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A named column, what its metadata asks for, and the file versions that can hold it."""

    name: str
    array: pa.Array
    metadata: Mapping[str, str] = field(default_factory=dict)
    versions: tuple[str, ...] = _ALL

    def table(self) -> pa.Table:
        """The column, named ``c``."""
        return pa.table([self.array], schema=pa.schema([pa.field("c", self.array.type, metadata=dict(self.metadata))]))

    def __str__(self) -> str:
        return self.name


def recipes() -> list[Recipe]:
    """All of them; the same on every machine."""
    draw = np.random.default_rng(7)
    return [*_numbers(draw), *_words(draw), *_nested(draw), *_wide(draw)]


def _compressed(scheme: str, **others: str) -> dict[str, str]:
    return {"lance-encoding:compression": scheme, **{f"lance-encoding:{key}": value for key, value in others.items()}}


def _holes(draw: np.random.Generator, rows: int, share: float = 0.2) -> np.ndarray:
    return draw.random(rows) < share


def _numbers(draw: np.random.Generator) -> list[Recipe]:
    big = draw.integers(-(2**63), 2**63 - 1, _ROWS)
    small = draw.integers(0, 1000, _ROWS)
    runs = np.repeat(draw.integers(0, 2**30, _ROWS // 60), 60).astype(np.int32)
    waves = np.sin(np.arange(_ROWS) / 50).astype(np.float32)
    few = draw.choice(big[:9], _ROWS)
    sparse = np.ones(_ROWS, bool)
    sparse[::700] = False
    return [
        Recipe("flat", pa.array(big)),
        Recipe("nullable", pa.array(big, mask=_holes(draw, _ROWS))),
        Recipe("sparse", pa.array(big, mask=sparse)),
        Recipe("packed", pa.array(small)),
        Recipe("packed-8", pa.array((small % 7).astype(np.uint8), mask=_holes(draw, _ROWS))),
        Recipe("runs", pa.array(runs)),
        Recipe("split", pa.array(waves), _compressed("zstd", bss="on")),
        Recipe("lz4", pa.array(np.sort(big)), _compressed("lz4")),
        Recipe("few-numbers", pa.array(few, mask=_holes(draw, _ROWS))),
        Recipe("booleans", pa.array(small % 3 == 0, mask=_holes(draw, _ROWS))),
        Recipe("decimals", pa.array(small, pa.int64()).cast(pa.decimal128(20, 0))),
        Recipe("constant", pa.array([7] * _ROWS, pa.int64())),
        Recipe("constant-nullable", pa.array([7] * _ROWS, pa.int64(), mask=_holes(draw, _ROWS))),
        Recipe("nulls", pa.nulls(_ROWS, pa.int32())),
        Recipe("nothing", pa.nulls(_ROWS)),
    ]


def _words(draw: np.random.Generator) -> list[Recipe]:
    words = [f"{at} the quick brown fox {'jumps ' * (at % 5)}" for at in range(_ROWS)]
    few = [f"colour number {at}" for at in draw.integers(0, 12, _ROWS)]
    noise = [draw.bytes(int(size)) for size in draw.integers(0, 40, _ROWS)]
    gaps = _holes(draw, _ROWS)
    return [
        Recipe("words", pa.array(words)),
        Recipe("words-nullable", pa.array(words, pa.string(), mask=gaps)),
        Recipe("words-plain", pa.array(words), _compressed("none")),
        Recipe("words-zstd", pa.array(words), _compressed("zstd")),
        Recipe("words-lz4", pa.array(words, pa.large_string(), mask=gaps), _compressed("lz4")),
        Recipe("words-fsst", pa.array(words), _compressed("fsst")),
        Recipe("few-words", pa.array(few, pa.string(), mask=gaps)),
        Recipe("bytes", pa.array(noise, pa.binary())),
        Recipe("large-bytes", pa.array(noise, pa.large_binary(), mask=gaps)),
        Recipe("constant-word", pa.array(["the same for every row, and longer than 32 bytes"] * _ROWS)),
        Recipe("dictionary", pa.array(few, pa.string(), mask=gaps).dictionary_encode()),
    ]


def _nested(draw: np.random.Generator) -> list[Recipe]:
    rows = 900
    lists = [None if at % 11 == 3 else [at + n if n % 4 else None for n in range(at % 6)] for at in range(rows)]
    long_lists = [list(range(at % 3 * 900)) for at in range(30)]
    deep = [None if at % 7 == 0 else [[f"w{at}"] * (n % 3) for n in range(at % 4)] for at in range(rows)]
    points = [None if at % 9 == 4 else {"x": at, "y": f"p{at}" if at % 4 else None} for at in range(rows)]
    many = [[point] * (at % 3) for at, point in enumerate(points)]
    pairs = [None if at % 13 == 5 else [(f"k{n}", at * n) for n in range(at % 4)] for at in range(rows)]
    point = pa.struct([("x", pa.int64()), ("y", pa.string())])
    plain = pa.StructArray.from_arrays(
        [pa.array(draw.integers(0, 99, rows), pa.int32()), pa.array(draw.random(rows))], names=["a", "b"]
    )
    worded = pa.StructArray.from_arrays([pa.array(range(rows)), pa.array([f"{at}" for at in range(rows)])], ["a", "b"])
    vectors = [None if at % 8 == 1 else [float(at), None if at % 5 == 0 else 1.0, 2.0] for at in range(rows)]
    packed = {"lance-encoding:packed": "true"}
    return [
        Recipe("lists", pa.array(lists, pa.list_(pa.int32()))),
        Recipe("long-lists", pa.array(long_lists, pa.large_list(pa.int64()))),
        Recipe("empty-lists", pa.array([[] if at % 3 else None for at in range(rows)], pa.list_(pa.int8()))),
        Recipe("deep", pa.array(deep, pa.list_(pa.list_(pa.string())))),
        Recipe("structs", pa.array([one or {"x": 0} for one in points], point)),
        Recipe("structs-nullable", pa.array(points, point), versions=_SINCE_2_1),
        Recipe("lists-of-structs", pa.array(many, pa.list_(point)), versions=_SINCE_2_1),
        Recipe("map", pa.array(pairs, pa.map_(pa.string(), pa.int64())), versions=("2.2",)),
        Recipe("vectors-of-structs", pa.FixedSizeListArray.from_arrays(plain, 3), versions=("2.2",)),
        Recipe("packed-struct", plain, packed),
        Recipe("packed-words", worded, packed, versions=("2.2",)),
        Recipe("small-vectors", pa.array(vectors, pa.list_(pa.float32(), 3))),
    ]


def _wide(draw: np.random.Generator) -> list[Recipe]:
    rows = 60
    gaps = _holes(draw, rows)
    table = pa.FixedSizeListArray.from_arrays(pa.array(draw.random(rows * 200, np.float32)), 200)
    holed = pa.FixedSizeListArray.from_arrays(table.values, 200, mask=pa.array(gaps))
    long = [f"{at} " + "lorem ipsum dolor " * 40 for at in range(rows)]
    letters = [None if gap else text for gap, text in zip(gaps.tolist(), long, strict=True)]
    lists = [letters[at : at + at % 4] for at in range(rows)]
    vectors = [[[1.0 * at] * 200] * (at % 3) for at in range(rows)]
    blobs = pa.array([None if at % 7 == 2 else b"x" * (at * 40) for at in range(rows)], pa.large_binary())
    return [
        Recipe("vectors", table),
        Recipe("vectors-nullable", holed),
        Recipe("lists-of-vectors", pa.array(vectors, pa.list_(pa.list_(pa.float32(), 200))), versions=_SINCE_2_1),
        Recipe("long-words", pa.array(letters), _FULL_ZIP),
        Recipe("long-words-plain", pa.array(letters), _FULL_ZIP | _compressed("none")),
        Recipe("long-words-zstd", pa.array(letters, pa.large_string()), _FULL_ZIP | _compressed("zstd")),
        Recipe("lists-of-long-words", pa.array(lists, pa.list_(pa.string())), _FULL_ZIP, versions=_SINCE_2_1),
        Recipe("wide-bytes", pa.array([draw.bytes(300) for _ in range(rows)], pa.binary(300))),
        Recipe("zipped-numbers", pa.array(range(rows), pa.int64(), mask=gaps), _FULL_ZIP),
        Recipe("blobs", blobs, {"lance-encoding:blob": "true"}),
    ]
