"""Cancellation: a token that many may look at and anybody may set, and the error of work that was told to stop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from contextvars import ContextVar

from lancelet.errors import LanceletError

__all__ = ["Cancellation", "Cancelled", "check_cancelled"]


class Cancelled(LanceletError, CancelledError):
    """The work was told to stop before it was done; nothing of it was committed."""


class Cancellation:
    """Set once, from any thread, and never unset.

    >>> token = Cancellation()
    >>> token.cancel("the user left")
    >>> try:
    ...     token.check()
    ... except Cancelled as error:
    ...     print(error)
    cancelled: the user left
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self._reason = ""

    def cancel(self, reason: str = "asked to stop") -> None:
        """Tell the work to stop; the first reason is the one that counts."""
        if not self._event.is_set():
            self._reason = reason
            self._event.set()

    @property
    def cancelled(self) -> bool:
        """Whether it was told to."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise Cancelled if it was told to."""
        if self._event.is_set():
            raise Cancelled(f"cancelled: {self._reason}")

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Let :func:`check_cancelled` look at this token while the block runs in this thread."""
        reset = _watched.set(self)
        try:
            yield
        finally:
            _watched.reset(reset)


_watched: ContextVar[Cancellation | None] = ContextVar("lancelet_cancellation", default=None)


def check_cancelled() -> None:
    """Raise Cancelled if the job that this thread works for was told to stop; long tasks call it between steps."""
    token = _watched.get()
    if token is not None:
        token.check()
