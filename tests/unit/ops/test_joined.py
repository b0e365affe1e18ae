"""Rows found by a key: the same whether their values are in memory or on disk, of any type and in any batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lancelet.ops.backfill.backfill import backfill
from lancelet.ops.backfill.joined import Joined, join_rows
from lancelet.ops.write import create
from lancelet.query.scan import scan
from lancelet.storage.memory import MemoryStore
from lancelet.table.snapshot import open_snapshot


def given(rows: int) -> pa.Table:
    draw = np.random.default_rng(rows)
    keys = draw.integers(0, 2 * rows + 1, rows)
    return pa.table(
        {
            "text": [None if key % 7 == 0 else f"t{key}" for key in keys.tolist()],
            "k": pa.array(keys, mask=keys % 11 == 0),
            "list": [[key] * (key % 3) for key in keys.tolist()],
            "struct": [{"a": key, "b": str(key)} for key in keys.tolist()],
            "word": pa.array([f"w{key % 3}" for key in keys.tolist()]).dictionary_encode(),
        }
    )


def _anew(rows: pa.Table) -> pa.Table:
    words = rows["word"].combine_chunks().dictionary_decode().dictionary_encode()
    return rows.set_column(4, "word", words)


@pytest.mark.parametrize("count", [0, 1, 1_000])
@pytest.mark.parametrize("size", [1, 70, 5_000])
def test_values_in_memory_and_on_disk_are_those_of_the_last_row_with_the_key(count: int, size: int) -> None:
    rows = given(count)
    asked = pa.array([None, *np.random.default_rng(1).integers(0, 2 * count + 1, 500).tolist()], pa.int64())
    known = {key: number for number, key in enumerate(rows["k"].to_pylist()) if key is not None}
    values = rows.drop_columns(["k"]).to_pylist()
    nothing = dict.fromkeys(rows.drop_columns(["k"]).column_names)
    expected = [values[known[key]] if key in known else nothing for key in asked.to_pylist()]
    for most in (0, 2**30):
        # Each batch with a dictionary of its own.
        pieces = [rows.slice(start, size) for start in range(0, count, size)]
        pieces = [_anew(piece) for piece in pieces]
        reader = pa.RecordBatchReader.from_batches(
            rows.schema, [batch for item in pieces for batch in item.to_batches()]
        )
        made = join_rows(reader, "k", most=most)
        assert (made.folder is not None) == (most == 0 and count > 0)
        found = made.take(made.find(asked))
        assert found.schema.types == [rows.schema.field(name).type for name in nothing]
        assert found.to_pylist() == expected


def test_what_was_put_aside_goes_with_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = MemoryStore("memory://joined-rows")
    create(store, pa.table({"k": range(100)}))
    rows = join_rows(given(50).to_reader(), "k", most=0)
    assert len(list(tmp_path.iterdir())) == 1
    backfill(open_snapshot(store), Joined(rows, "k"))
    assert scan(open_snapshot(store)).read_all().schema.names == ["k", "text", "list", "struct", "word"]
    del rows
    assert list(tmp_path.iterdir()) == []
