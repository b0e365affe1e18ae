"""Attempts: an operation worked out anew from the newest version as long as others commit what stands in its way."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from lancelet.errors import InvalidInput
from lancelet.events import emit
from lancelet.table.outcome import Committed, Outcome
from lancelet.table.snapshot import Snapshot, open_snapshot

__all__ = ["Attempts", "until_committed"]

Value = TypeVar("Value")

_SHORTEST_WAIT, _LONGEST_WAIT = 0.005, 5.0


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often, and for how many seconds, an operation is worked out anew after a conflict."""

    retries: int = 10
    timeout: float = 30.0

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise InvalidInput(f"the number of retries is {self.retries}, expected at least 0")
        if self.timeout < 0:
            raise InvalidInput(f"the timeout is {self.timeout} seconds, expected no negative time")


def until_committed(
    snapshot: Snapshot, attempt: Callable[[Snapshot], tuple[Outcome, Value]], attempts: Attempts | None = None
) -> tuple[Committed, Value, int]:
    """Make attempts, the first from ``snapshot`` and each other from the version that is then the newest.

    Returns the commit, what its attempt brought, and how many there were. A conflict that no attempt can resolve, and
    the last when patience ends, is raised. Waits are drawn at random and grow, in units of what an attempt takes.
    """
    given = attempts or Attempts()
    deadline = time.monotonic() + given.timeout
    number = 0
    while True:
        number += 1
        began = time.monotonic()
        outcome, value = attempt(snapshot)
        if isinstance(outcome, Committed):
            return outcome, value, number
        took = max(time.monotonic() - began, _SHORTEST_WAIT)
        wait = random.uniform(0, min(took * 2 ** min(number, 10), _LONGEST_WAIT))
        if not outcome.retryable or number > given.retries or time.monotonic() + wait > deadline:
            raise outcome.error(snapshot.uri)
        emit("operation.again", uri=snapshot.uri, attempt=number, version=outcome.version, reason=outcome.reason)
        time.sleep(wait)
        snapshot = open_snapshot(snapshot.store, options=snapshot.options)
