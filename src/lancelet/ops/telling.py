"""Telling: what a task is about to write is told to the journal of its job, if it works for one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from lancelet.ops.journal import Attempt

__all__ = ["tell_files", "telling"]

_attempt: ContextVar[Attempt | None] = ContextVar("lancelet_attempt", default=None)


@contextmanager
def telling(attempt: Attempt | None) -> Iterator[None]:
    """Let what this thread writes for a table be told to an attempt while the block runs.

    >>> from lancelet.ops.journal import ATTEMPTS, JobJournal
    >>> from lancelet.storage.memory import MemoryStore
    >>> store = MemoryStore("memory://telling")
    >>> with JobJournal(store, "append") as journal:
    ...     attempt = journal.attempt()
    ...     with telling(attempt):
    ...         tell_files(["data/x.lance"])
    ...     attempt.files
    ('data/x.lance',)
    """
    reset = _attempt.set(attempt)
    try:
        yield
    finally:
        _attempt.reset(reset)


def tell_files(files: Sequence[str]) -> None:
    """Say which files of the table's own folder come next; a path that ends in a slash means all below it."""
    attempt = _attempt.get()
    if attempt is not None:
        attempt.tell(files)
