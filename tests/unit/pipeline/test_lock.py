"""One run of a pipeline at a time: the lock keeps others out, and one that died is taken over."""

from __future__ import annotations

import json
import os
import socket
import time
import uuid

import pytest

from lancelet.errors import Conflict
from lancelet.pipeline.lock import held
from lancelet.storage import Store, open_store


def store() -> Store:
    return open_store(f"memory://{uuid.uuid4().hex}")


def put(place: Store, **holder: object) -> None:
    usual = {"host": socket.gethostname(), "process": os.getpid(), "at": time.time()}
    place.put("p/lock-0000000007", json.dumps({**usual, **holder}).encode())


def locks(place: Store) -> list[str]:
    return [entry.path for entry in place.list_from("p/")]


def test_a_second_run_is_kept_out_and_a_later_one_is_not() -> None:
    place = store()
    with held(place, "p", "docs"):
        with (
            pytest.raises(Conflict, match=f"another run of pipeline docs is under way: process {os.getpid()}"),
            held(place, "p", "docs"),
        ):
            pass
        assert len(locks(place)) == 1
    assert locks(place) == []
    with held(place, "p", "docs"):
        pass


def test_a_run_that_fails_leaves_no_lock() -> None:
    place = store()
    with pytest.raises(ZeroDivisionError), held(place, "p", "docs"):
        raise ZeroDivisionError
    assert locks(place) == []


@pytest.mark.parametrize("holder", [{"process": 2**22 + 1}, {"host": "elsewhere", "at": 0.0}])
def test_a_lock_of_a_dead_run_is_taken_over(holder: dict[str, object]) -> None:
    place = store()
    put(place, **holder)
    with held(place, "p", "docs"):
        assert locks(place) == ["p/lock-0000000008"]


@pytest.mark.parametrize("holder", [{}, {"host": "elsewhere"}])
def test_a_lock_of_a_living_run_stays(holder: dict[str, object]) -> None:
    place = store()
    put(place, **holder)
    with pytest.raises(Conflict), held(place, "p", "docs"):
        pass
    assert locks(place) == ["p/lock-0000000007"]
