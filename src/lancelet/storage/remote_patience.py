"""Patience: the waits between attempts at requests that the engine does not repeat by itself."""

from __future__ import annotations

import time

from lancelet.config import Retries
from lancelet.errors import LanceletError
from lancelet.events import emit

__all__ = ["Patience"]


class Patience:
    """How often one request may still be tried. ``wait`` sleeps, or raises the error when it is enough."""

    def __init__(self, retries: Retries) -> None:
        self._delays = retries.delays()
        self._end = time.monotonic() + retries.deadline

    def wait(self, error: LanceletError, verb: str) -> None:
        """Sleep before the next attempt and tell ``storage.retry``; raise ``error`` if another would be pointless."""
        delay = next(self._delays, None)
        if not error.retryable or delay is None or time.monotonic() + delay > self._end:
            raise error
        emit("storage.retry", verb=verb, uri=error.uri, delay=delay, error=str(error))
        time.sleep(delay)
