"""Sorting within a budget of memory gives the order that sorting at once gives, and leaves no file behind."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lancelet.index.external_sort import IDS, VALUES, rows_of, sorted_rows
from lancelet.index.sorting import sort_places
from lancelet.testing.index_cases import VALUE_TYPES, values_of


def batches(values: pa.Array, size: int) -> Iterator[pa.RecordBatch]:
    ids = pa.array(np.arange(len(values), dtype=np.uint64))
    for start in range(0, len(values), size):
        yield rows_of(values[start : start + size], ids[start : start + size])


@pytest.fixture
def spill_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("memory", [2**30, 2**15])
@pytest.mark.parametrize("name", VALUE_TYPES)
def test_rows_come_in_order_and_each_once_whether_they_fit_or_not(name: str, memory: int, spill_folder: Path) -> None:
    draw = random.Random(name)
    values = values_of(VALUE_TYPES[name], 6000, draw, distinct=500)
    table = pa.Table.from_batches(list(sorted_rows(batches(values, 700), memory=memory)))
    found, ids = table[VALUES].combine_chunks(), table[IDS].to_numpy()
    expected = values.take(pa.array(sort_places(values)))
    assert sorted(ids.tolist()) == list(range(len(values)))
    # Bit for bit: NaN is like no other value for Python.
    assert found.is_null().equals(expected.is_null())
    assert found.drop_null().equals(expected.drop_null()) or str(found) == str(expected)
    again = values.take(pa.array(ids.astype(np.int64)))
    assert again.equals(found) or str(again) == str(found)
    assert list(spill_folder.iterdir()) == []


def test_files_go_when_the_reader_leaves_early(spill_folder: Path) -> None:
    values = pa.array(np.random.default_rng(1).integers(0, 10**9, 50_000))
    rows = sorted_rows(batches(values, 1000), memory=2**16)
    next(rows)
    assert list(spill_folder.iterdir()) != []
    rows.close()  # type: ignore[attr-defined]
    assert list(spill_folder.iterdir()) == []


def test_an_error_of_the_source_leaves_no_file(spill_folder: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from batches(pa.array(range(50_000)), 1000)
        raise OSError("the source broke")

    with pytest.raises(OSError, match="broke"):
        list(sorted_rows(failing(), memory=2**16))
    assert list(spill_folder.iterdir()) == []


def test_nothing_gives_nothing() -> None:
    assert list(sorted_rows([], memory=2**20)) == []
    assert list(sorted_rows([rows_of(pa.array([], pa.int8()), pa.array([], pa.uint64()))], memory=2**20)) == []
