"""One dataset used by many threads and forked processes at once: the same answers, and no change is lost."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lancelet
from lancelet.errors import Conflict

ROWS = 3_000


@pytest.fixture
def path(tmp_path: Path) -> str:
    place = str(tmp_path / "t")
    draw = np.random.default_rng(5)
    rows = pa.table(
        {
            "k": np.arange(ROWS),
            "x": draw.random(ROWS),
            "s": pa.array([f"text {number % 97}" for number in range(ROWS)]),
            "v": pa.FixedSizeListArray.from_arrays(draw.random(ROWS * 8, np.float32), 8),
        }
    )
    dataset: Any = lancelet.write_dataset(rows, place, max_rows_per_file=170)
    dataset.create_scalar_index("k", "BTREE")
    dataset.delete("k % 100 = 3")
    return place


def questions(dataset: Any) -> list[Callable[[], object]]:
    """Of every kind, with their answers in a form that compares."""
    query = np.zeros(8, np.float32)
    return [
        lambda: dataset.to_table().to_pydict()["k"],
        lambda: dataset.to_table(columns=["s"], filter="x < 0.3").num_rows,
        lambda: dataset.to_table(columns=["k"], filter="k BETWEEN 100 AND 250")["k"].to_pylist(),
        lambda: dataset.count_rows(filter="s = 'text 5' OR x > 0.99"),
        lambda: dataset.take([5, 900, 17, 2500])["k"].to_pylist(),
        lambda: sum(batch.num_rows for batch in dataset.to_batches(batch_size=64)),
        lambda: dataset.to_table(columns=["k"], nearest={"column": "v", "q": query, "k": 5})["k"].to_pylist(),
        lambda: [fragment.count_rows() for fragment in dataset.get_fragments()],
        lambda: (dataset.version, dataset.schema.names),
        lambda: dataset.to_table(columns=["k"], limit=7, offset=400)["k"].to_pylist(),
    ]


def test_threads_that_share_a_dataset_get_the_answers_of_one(path: str) -> None:
    expected = [ask() for ask in questions(lancelet.dataset(path))]
    shared = questions(lancelet.dataset(path))
    with ThreadPoolExecutor(8) as threads:
        asked = [(number, threads.submit(shared[number])) for _ in range(4) for number in range(len(shared))]
        for number, answer in asked:
            assert answer.result() == expected[number], number


def again(change: Callable[[], object]) -> None:
    """Carry a change out, anew where another was first and it says so."""
    for _ in range(40):
        try:
            change()
            return
        except Conflict:
            continue
    raise AssertionError("never carried out")


def test_threads_that_change_a_table_at_once_lose_nothing(path: str) -> None:
    def worker(number: int) -> None:
        first = 10_000 + 100 * number
        rows = pa.table({"k": np.arange(first, first + 20)})
        again(lambda: lancelet.dataset(path).insert(rows))
        again(lambda: lancelet.dataset(path).update({"s": f"'changed {number}'"}, where=f"k = {210 + number}"))
        again(lambda: lancelet.dataset(path).delete(f"k = {410 + number}"))
        source = pa.table({"k": [first, first + 50], "s": ["merged", "merged"]})
        again(
            lambda: (
                lancelet.dataset(path)
                .merge_insert("k")
                .when_matched_update_all()
                .when_not_matched_insert_all()
                .execute(source)
            )
        )

    before = lancelet.dataset(path).count_rows()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(worker, range(4)))
    for module in (lancelet, lance):
        dataset: Any = module.dataset(path)  # type: ignore[attr-defined]
        assert dataset.count_rows() == before + 4 * 20 - 4 + 4
        assert dataset.count_rows(filter="s LIKE 'changed %'") == 4
        assert dataset.count_rows(filter="s = 'merged'") == 8
        assert dataset.count_rows(filter="k BETWEEN 410 AND 413") == 0
        keys = dataset.to_table(columns=["k"])["k"].to_pylist()
        assert len(keys) == len(set(keys))


def in_child(path: str, dataset: Any, number: int, answers: Any) -> None:
    """What a forked process does: the same questions to the dataset it was born with, and a change."""
    found = [ask() for ask in questions(dataset)]
    rows = pa.table({"k": np.arange(50_000 + 10 * number, 50_000 + 10 * number + 5)})
    again(lambda: lancelet.dataset(path).insert(rows))
    answers.put((number, os.getpid(), found))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_processes_go_on_with_the_dataset_they_were_born_with(path: str) -> None:
    dataset = lancelet.dataset(path)
    shared = questions(dataset)
    # Caches are filled and threads were at work before, so that there is something to be broken by a fork.
    with ThreadPoolExecutor(4) as threads:
        expected = [answer.result() for answer in [threads.submit(ask) for ask in shared]]
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    children = [context.Process(target=in_child, args=(path, dataset, number, answers)) for number in range(3)]
    for child in children:
        child.start()
    told = [answers.get(timeout=120) for _ in children]
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert len({process for _, process, _ in told} - {os.getpid()}) == 3
    assert all(found == expected for _, _, found in told)
    assert lancelet.dataset(path).count_rows(filter="k >= 50000") == 15
    assert [ask() for ask in shared] == expected
