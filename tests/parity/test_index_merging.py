"""Merged segments answer as an index built anew would: rows moved, split, deleted and added, for every type."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from lancelet.format.versions import FileVersion
from lancelet.index.building import Built, Target
from lancelet.index.external_sort import rows_of
from lancelet.index.files import IndexFiles
from lancelet.index.kinds import KINDS
from lancelet.index.merging import Part, keep_fragments
from lancelet.index.queries import Equals
from lancelet.storage import open_store
from lancelet.testing.index_cases import VALUE_TYPES, lists_of, query_about, query_about_lists, true_and_null, values_of

ROWS = 300
#: What makes even small segments interesting.
PARAMETERS: dict[str, dict[str, object]] = {
    "BTREE": {"zone_size": 50},
    "ZONEMAP": {"rows_per_zone": 40},
    "BLOOMFILTER": {"number_of_items": 40, "probability": 0.01},
}
CASES = [
    (name, kind)
    for kind in ("BTREE", "BITMAP", "LABEL_LIST", "ZONEMAP", "BLOOMFILTER")
    for name, type_ in VALUE_TYPES.items()
    if KINDS[kind].takes(pa.list_(type_) if kind == "LABEL_LIST" else type_)
]


@dataclass(frozen=True)
class Moves:
    """What becomes of rows: where those of some fragments went, in the order of the old addresses."""

    old: np.ndarray
    new: np.ndarray

    def __call__(self, names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at = np.minimum(np.searchsorted(self.old, names), len(self.old) - 1)
        return self.new[at], self.old[at] == names


def addresses(fragment: int, count: int) -> np.ndarray:
    return (np.uint64(fragment) << np.uint64(32)) + np.arange(count, dtype=np.uint64)


def batches(values: pa.Array, ids: np.ndarray) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(values), 97):
        yield rows_of(values[start : start + 97], pa.array(ids[start : start + 97]))


def target(name: str, memory: int) -> Target:
    return Target(open_store(f"memory://{name}"), "segment", FileVersion.V2_2, memory)


def part(where: Target, built: Built, remap: object = None) -> Part:
    return Part(IndexFiles(where.store, where.folder), built.details, remap=remap)  # type: ignore[arg-type]


@pytest.mark.parametrize("memory", [2**28, 2**16])
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_merged_index_answers_as_a_look_at_each_row(name: str, kind: str, memory: int) -> None:
    draw = random.Random(f"{name} {kind} {memory}")
    made = lists_of if kind == "LABEL_LIST" else values_of
    values = made(VALUE_TYPES[name], 5 * ROWS, draw)
    ids = np.concatenate([addresses(fragment, ROWS) for fragment in (0, 1, 2, 3, 9)])
    index, parameters = KINDS[kind], PARAMETERS.get(kind, {})

    def built(label: str, first: int, last: int) -> tuple[Target, Built]:
        where = target(f"merging-{kind}-{name}-{memory}-{label}", memory)
        rows = slice(first * ROWS, last * ROWS)
        return where, index.build(batches(values[rows], ids[rows]), values.type, where, parameters)

    # Of the first segment one fragment is not covered any more; rows of the second are deleted, and move to 7 and 8.
    left = np.sort(draw.sample(range(2 * ROWS, 4 * ROWS), ROWS))
    moved = np.concatenate([addresses(7, ROWS // 2), addresses(8, ROWS - ROWS // 2)])
    parts = [
        part(*built("a", 0, 2), keep_fragments([1])),
        part(*built("b", 2, 4), Moves(ids[left], moved)),
    ]
    new = slice(4 * ROWS, 5 * ROWS)
    where = target(f"merging-{kind}-{name}-{memory}-merged", memory)
    merged = index.merge(parts, batches(values[new], ids[new]), values.type, where, {})
    kept = np.concatenate([np.arange(ROWS, 2 * ROWS), left, np.arange(4 * ROWS, 5 * ROWS)])
    names = np.concatenate([ids[ROWS : 2 * ROWS], moved, ids[new]])
    found = index.open(IndexFiles(where.store, where.folder), values.type, parts[0].domain, merged.details)
    now = values.take(pa.array(kept))
    for _ in range(12):
        query = (query_about_lists if kind == "LABEL_LIST" else query_about)(now, draw)
        if not found.answers(query):
            assert kind == "BLOOMFILTER"
            continue
        true, null = true_and_null(now, query)
        answer = found.search(query)
        listed, nulls = (set(rows.to_values().tolist()) for rows in (answer.mask.listed, answer.mask.nulls))
        assert listed == set(names[true].tolist()) if answer.exact else listed >= set(names[true].tolist()), query
        assert nulls == set(names[null].tolist()), query


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
def test_segments_without_rows_and_segments_that_lose_all_are_merged(kind: str) -> None:
    index, nothing = KINDS[kind], pa.array([], pa.int64())
    values, ids = pa.array([3, None, 3, 1]), addresses(5, 4)
    empty, gone = target(f"merging-empty-{kind}", 2**20), target(f"merging-gone-{kind}", 2**20)
    parts = [
        part(empty, index.build(batches(nothing, addresses(0, 0)), pa.int64(), empty, {})),
        part(gone, index.build(batches(values, addresses(1, 4)), pa.int64(), gone, {}), keep_fragments([])),
    ]
    for rows, expected in ((batches(values, ids), {0, 2}), (iter(()), set())):
        where = target(f"merging-left-{kind}-{len(expected)}", 2**20)
        merged = index.merge(parts, rows, pa.int64(), where, {})
        found = index.open(IndexFiles(where.store, where.folder), pa.int64(), parts[0].domain, merged.details)
        answer = found.search(Equals(pa.scalar(3))).mask.listed.to_values() & np.uint64(2**32 - 1)
        assert expected <= set(answer.tolist())
        assert expected or not len(answer)
