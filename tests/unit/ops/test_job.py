"""Plans, costs and results: pure data that prints, pickles and puts itself in order."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pytest

from lancelet.errors import InvalidInput
from lancelet.ops.job import Cost, Plan, Result, gather
from lancelet.storage.store import Store

COST = Cost(bytes_read=1536, bytes_written=512, requests=1500, memory=2**20)


@dataclass(frozen=True, slots=True)
class Piece:
    id: str
    cost: Cost = COST

    def run(self, store: Store) -> str:
        return self.id


def plan(*names: str) -> Plan[str]:
    return Plan("compact", 7, tuple(Piece(name) for name in names))


def test_a_plan_prints_in_units_that_people_use() -> None:
    expected = (
        "compact from version 7: 2 tasks\n  reads 3.0 KiB, writes 1.0 KiB, 3,000 requests, holds 1.0 MiB at most, each"
    )
    assert str(plan("a", "b")) == expected


def test_a_plan_pickles() -> None:
    assert pickle.loads(pickle.dumps(plan("a", "b"))) == plan("a", "b")


def test_two_tasks_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidInput, match="2 tasks of the plan are called 'a'"):
        plan("a", "b", "a")


def test_a_negative_cost_is_refused() -> None:
    with pytest.raises(InvalidInput, match="-1 for memory"):
        Cost(memory=-1)


def test_results_come_in_the_order_of_the_plan_and_repeated_ones_aside() -> None:
    results = [Result("b", "1"), Result("a", "2"), Result("b", "1"), Result("b", "3")]
    gathered = gather(plan("a", "b"), results)
    assert gathered.results == (Result("a", "2"), Result("b", "1"))
    assert gathered.surplus == (Result("b", "1"), Result("b", "3"))


@pytest.mark.parametrize(
    ("results", "text"),
    [
        ([Result("a", "1")], "1 of 2 tasks have no result, 'b' among them"),
        ([Result("c", "1")], "result of task 'c', which the plan does not have"),
    ],
)
def test_results_that_do_not_fit_the_plan_are_refused(results: list[Result[str]], text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        gather(plan("a", "b"), results)
