"""Finding rows by stable id stays fast and small: seconds of one processor, bytes held, ten million rows."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from lancelet.rows.deletions import DeletionVector
from lancelet.rows.row_id_index import RowIdIndex, build_row_id_index
from lancelet.rows.sequences import RowIdSequence

ROWS = 10_000_000
FRAGMENTS = 100
EACH = ROWS // FRAGMENTS


def ranges() -> list[RowIdSequence]:
    """Ids as appends leave them."""
    return [RowIdSequence.from_range(begin, begin + EACH) for begin in range(0, ROWS, EACH)]


def shuffled() -> list[RowIdSequence]:
    """Ids in no order, as a table sorted by something else has them."""
    ids = np.random.default_rng(0).permutation(ROWS).astype(np.uint64)
    return [RowIdSequence.from_ids(part) for part in np.split(ids, FRAGMENTS)]


def seconds(work: Callable[[], object]) -> float:
    """The processor time of the best of three runs."""
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


@pytest.mark.timing
@pytest.mark.parametrize(
    ("made", "deletes", "build_seconds", "most_bytes"),
    [(ranges, 0, 0.1, 2400), (ranges, EACH // 10, 0.5, 4 * ROWS), (shuffled, 0, 2, 16 * ROWS)],
)
def test_an_index_of_ten_million_rows_is_built_and_asked_quickly(
    made: Callable[[], list[RowIdSequence]], deletes: int, build_seconds: float, most_bytes: int
) -> None:
    draw = np.random.default_rng(1)
    deleted = DeletionVector(draw.choice(EACH, deletes, replace=False)) if deletes else None
    parts = [(fragment, sequence, deleted) for fragment, sequence in enumerate(made())]
    index: RowIdIndex = build_row_id_index(parts)
    asked = draw.integers(0, ROWS, 100_000)
    assert seconds(lambda: build_row_id_index(parts)) < build_seconds
    assert seconds(lambda: index.lookup(asked)) < 0.02
    assert index.nbytes <= most_bytes
