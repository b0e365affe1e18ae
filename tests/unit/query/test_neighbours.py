"""Small fragments side by side are read as one, and nobody can tell."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelet
from lancelet.errors import Corrupt
from lancelet.query import scan
from lancelet.query.neighbours import JoinedFragments
from lancelet.testing.requests import questions, sample_table

KINDS = [
    pa.string(),
    pa.float32(),
    pa.bool_(),
    pa.list_(pa.int32()),
    pa.struct([("x", pa.int32()), ("y", pa.string())]),
    pa.list_(pa.float32(), 4),
    pa.dictionary(pa.int8(), pa.string()),
    pa.large_binary(),
    pa.null(),
]


def made(path: Path, seed: int) -> Any:
    """Twenty-five fragments, some of them with deleted rows, one of them with other files than the others."""
    draw = Random(seed)
    sizes = [draw.choice([1, 7, 60, 200]) for _ in range(25)]
    first = 0
    for number, size in enumerate(sizes):
        rows = sample_table(seed * 100 + number % 3, size, KINDS, first=first)
        lancelet.write_dataset(rows, str(path), mode="append" if number else "create")
        first += size
    dataset: Any = lancelet.dataset(str(path))
    dataset.delete("key % 11 = 3 AND key > 200")
    return lancelet.dataset(str(path))


def apart(monkeypatch: pytest.MonkeyPatch, dataset: Any, **question: Any) -> pa.Table:
    """The answer of each fragment read by itself."""
    with monkeypatch.context() as patch:
        patch.setattr(scan, "joined", lambda opened, places: opened)
        found: pa.Table = dataset.to_table(**question)
        return found


@pytest.mark.parametrize("seed", range(2), ids=lambda seed: f"seed-{seed}")
def test_fragments_read_as_one_give_the_rows_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    dataset = made(tmp_path / "t", seed)
    seen: list[int] = []
    before = JoinedFragments.__init__
    monkeypatch.setattr(
        JoinedFragments, "__init__", lambda self, places, members: seen.append(1) or before(self, places, members)
    )
    for question in questions(seed, 15, dataset.schema, dataset.count_rows()):
        columns = list(question.columns or dataset.schema.names)
        asked = {"columns": columns, "filter": question.filter, "limit": question.limit, "offset": question.offset}
        assert dataset.to_table(**asked).to_pylist() == apart(monkeypatch, dataset, **asked).to_pylist(), question
        batches = list(dataset.to_batches(**asked, batch_size=50))
        assert all(0 < batch.num_rows <= 50 for batch in batches)
        if question.filter is not None:
            whole = apart(monkeypatch, dataset, columns=["key"], filter=question.filter)
            assert dataset.count_rows(filter=question.filter) == whole.num_rows, question
    assert seen


def test_of_a_damaged_file_among_others_the_name_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for number in range(20):
        rows = pa.table({"x": np.random.default_rng(number).integers(0, 2**60, 1000)})
        lancelet.write_dataset(rows, str(path), mode="append" if number else "create")
    damaged = sorted((path / "data").iterdir())[7]
    content = bytearray(damaged.read_bytes())
    content[-100:-60] = bytes(40)
    damaged.unlink()
    damaged.write_bytes(content)
    dataset: Any = lancelet.dataset(str(path))
    with pytest.raises(Corrupt, match=damaged.name):
        dataset.to_table()
    cut = sorted((path / "data").iterdir())[3]
    whole = cut.read_bytes()
    cut.unlink()
    cut.write_bytes(whole[:-8])
    with pytest.raises(Corrupt, match="lance"):
        lancelet.dataset(str(path)).to_table()


@pytest.mark.parametrize(("condition", "sizes"), [(None, [3, 3, 3, 1]), ("x % 3 = 1", [1, 1, 1]), ("x > 4", [1, 3, 1])])
def test_batches_end_where_fragments_do(tmp_path: Path, condition: str | None, sizes: list[int]) -> None:
    made = lancelet.write_dataset(pa.table({"x": range(10)}), str(tmp_path / "t"), max_rows_per_file=3)
    assert [batch.num_rows for batch in made.to_batches(filter=condition)] == sizes
    assert [batch.num_rows for batch in made.scanner(filter=condition, batch_size=2).to_batches()] == [
        piece for size in sizes for piece in [2] * (size // 2) + [1] * (size % 2)
    ]
    strict = made.scanner(filter=condition, batch_size=4, strict_batch_size=True).to_batches()
    assert [batch.num_rows for batch in strict][:-1] == [4] * ((sum(sizes) - 1) // 4)
