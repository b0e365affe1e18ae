"""Generated columns of wide values, which files hold in full-zip, constant, packed and blob pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

__all__ = ["WideCase", "blob_cases", "packed_cases", "wide_cases"]

_FULL_ZIP = {"lance-encoding:structural-encoding": "fullzip"}
_ZSTD = {"lance-encoding:compression": "zstd", **_FULL_ZIP}
_FSST = {"lance-encoding:compression": "fsst", **_FULL_ZIP}
_NONE = {"lance-encoding:compression": "none", **_FULL_ZIP}
PACKED = {"lance-encoding:packed": "true"}
BLOB = {"lance-encoding:blob": "true"}


@dataclass(frozen=True, slots=True)
class WideCase:
    """A named column and what its metadata asks for."""

    name: str
    array: pa.Array
    metadata: Mapping[str, str] = field(default_factory=dict)

    def table(self) -> pa.Table:
        """The column, named ``c``, as a table."""
        return pa.table([self.array], schema=pa.schema([pa.field("c", self.array.type, metadata=dict(self.metadata))]))

    def __str__(self) -> str:
        return self.name


def wide_cases(seed: int) -> Iterator[WideCase]:
    """Columns that are full-zip by their width or on request, bare, in lists and in structs, with and without nulls."""
    draw = np.random.default_rng(seed)
    rows = int(draw.choice([1, 2, 3, 7, 64, 300]))
    for nulls in (0.0, 0.2, 0.9):
        leaves = {
            "vector": (_vectors(draw, rows, 80, nulls), {}),
            "vector of nullable items": (_vectors(draw, rows, 81, nulls, item_nulls=0.3), {}),
            "vector of nulls": (_vectors(draw, rows, 70, nulls, item_nulls=1.1), {}),
            "vector of vectors": (_vectors_of_vectors(draw, rows, nulls), _FULL_ZIP),
            "long words": (_words(draw, rows, 700, nulls, pa.string()), {}),
            "large words": (_words(draw, rows, 600, nulls, pa.large_string()), {}),
            "bytes": (_words(draw, rows, 900, nulls, pa.binary()), _NONE),
            "huge bytes": (_words(draw, min(rows, 20), 90_000, nulls, pa.large_binary()), {}),
            "zipped words": (_words(draw, rows, 900, nulls, pa.string()), _ZSTD),
            "coded words": (_words(draw, rows, 300, nulls, pa.large_string()), _FSST),
            "wide bytes": (_fixed(draw, rows, 300, nulls), {}),
            "odd bytes": (_fixed(draw, rows, 3, nulls), _FULL_ZIP),
            "booleans": (pa.array(draw.random(rows) < 0.5, mask=draw.random(rows) < nulls), _FULL_ZIP),
            "integers": (
                pa.array(draw.integers(0, 99, rows).astype(np.int32), mask=draw.random(rows) < nulls),
                _FULL_ZIP,
            ),
        }
        for name, (array, metadata) in leaves.items():
            for shape, nested in (("", array), ("list of ", _lists(draw, array)), ("struct of ", _struct(draw, array))):
                yield WideCase(f"{shape}{name}, {nulls:.0%} null, {len(array)} values, seed {seed}", nested, metadata)
        words = leaves["long words"][0]
        yield WideCase(f"list of list of long words, seed {seed}", _lists(draw, _lists(draw, words)))
        yield WideCase(f"list of struct of vector, seed {seed}", _lists(draw, _struct(draw, leaves["vector"][0])))


def packed_cases(seed: int) -> Iterator[WideCase]:
    """Packed structs with a field of varying length, or a list."""
    draw = np.random.default_rng(seed)
    rows = int(draw.choice([1, 5, 200, 1500]))
    fields = {
        "number": pa.array(draw.integers(0, 2**40, rows)),
        "word": _words(draw, rows, 60, 0, pa.string()),
        "large": _words(draw, rows, 60, 0, pa.large_binary()),
        "vector": _vectors(draw, rows, 5, 0),
        "nullable items": _vectors(draw, rows, 5, 0, item_nulls=0.2),
        "small": pa.array(draw.integers(0, 9, rows).astype(np.int8)),
    }
    for names in (("number", "word"), ("word", "large"), ("vector", "number"), tuple(fields)):
        for nulls in (0.0, 0.3):
            children = [fields[name] for name in names]
            mask = pa.array(draw.random(rows) < nulls) if nulls else None
            array = pa.StructArray.from_arrays(children, names, mask=mask)
            yield WideCase(f"packed {', '.join(names)}, {nulls:.0%} null, {rows} rows, seed {seed}", array, PACKED)


def blob_cases(seed: int) -> Iterator[WideCase]:
    """Blobs of the first kind: none, small and large ones."""
    draw = np.random.default_rng(seed)
    for nulls in (0.0, 0.3, 1.1):
        for largest in (0, 90, 200_000):
            blobs = [draw.bytes(int(draw.integers(0, largest + 1))) for _ in range(int(draw.integers(1, 30)))]
            array = pa.array([None if draw.random() < nulls else blob for blob in blobs], pa.large_binary())
            yield WideCase(f"blobs up to {largest} bytes, {nulls:.0%} null, seed {seed}", array, BLOB)


def _words(draw: np.random.Generator, rows: int, longest: int, nulls: float, kind: pa.DataType) -> pa.Array:
    """Texts of few letters, so that codes and compressors find something; every tenth empty, no two long ones alike."""
    values = []
    for row in range(rows):
        length = 0 if draw.random() < 0.1 else int(draw.integers(0, longest))
        text = draw.choice(np.frombuffer(b"abc d", np.uint8), length).tobytes()
        values.append(None if draw.random() < nulls else (b"%d" % row + text)[:length])
    array = pa.array(values, pa.binary())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return array.cast(pa.string()).cast(kind)
    return array.cast(kind)


def _fixed(draw: np.random.Generator, rows: int, width: int, nulls: float) -> pa.Array:
    return pa.array([None if draw.random() < nulls else draw.bytes(width) for _ in range(rows)], pa.binary(width))


def _vectors(
    draw: np.random.Generator, rows: int, dimension: int, nulls: float, *, item_nulls: float = 0.0
) -> pa.Array:
    count = rows * dimension
    items = pa.array(draw.standard_normal(count).astype(np.float32), mask=draw.random(count) < item_nulls)
    return pa.FixedSizeListArray.from_arrays(items, dimension, mask=pa.array(draw.random(rows) < nulls))


def _vectors_of_vectors(draw: np.random.Generator, rows: int, nulls: float) -> pa.Array:
    inner = _vectors(draw, rows * 3, 5, nulls, item_nulls=nulls / 2)
    return pa.FixedSizeListArray.from_arrays(inner, 3, mask=pa.array(draw.random(rows) < nulls))


def _lists(draw: np.random.Generator, items: pa.Array) -> pa.Array:
    """The items spread over lists, of which some are empty and some null."""
    rows = len(items) // 2 + 2
    inner = np.sort(draw.integers(0, len(items) + 1, rows - 1))
    offsets = np.concatenate([[0], inner, [len(items)]]).astype(np.int32)
    absent = (np.diff(offsets) == 0) & (draw.random(rows) < 0.5)
    return pa.ListArray.from_arrays(pa.array(offsets, mask=np.append(absent, False)), items)


def _struct(draw: np.random.Generator, child: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([child], ["inner"], mask=pa.array(draw.random(len(child)) < 0.1))
