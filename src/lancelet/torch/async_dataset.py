"""A dataset whose items are made by another process, ahead of their use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Process, Queue, Value
from queue import Empty
from typing import Any

from torch.utils.data import IterableDataset

from lancelet.errors import LanceletError

__all__ = ["AsyncDataset", "async_dataset"]

#: How often it is looked whether the worker still lives, in seconds.
_LOOK = 0.5


def _work(make: Callable[[], IterableDataset], queue: Any, closing: Any) -> None:
    """What the worker does: pass after pass until it is closed. Each pass ends with None, or with what went wrong."""
    try:
        dataset = make()
        while not closing.value:
            for item in dataset:
                if closing.value:
                    break
                queue.put(item)
            queue.put(None)
    except Exception as error:  # noqa: BLE001 - raised where the items are used
        queue.put(_Failure(f"{type(error).__name__}: {error}"))
    queue.close()


class _Failure:
    """What went wrong in the worker."""

    def __init__(self, text: str) -> None:
        self.text = text


class AsyncDataset(IterableDataset):  # type: ignore[misc]
    """The items of the dataset that ``dataset_creator`` makes in a process of its own, one pass after the other.

    The process stays the same for all passes, so that what the dataset remembers serves the next one. It begins the
    next pass as soon as one has ended. ``queue_size`` items are made ahead.
    """

    def __init__(self, dataset_creator: Callable[[], IterableDataset], *, queue_size: int = 4) -> None:
        self.dataset_creator = dataset_creator
        self.queue: Any = Queue(maxsize=queue_size)
        self.started = False
        self.shutdown: Any = Value("b", False)

    def __iter__(self) -> Iterator[Any]:
        self._start()
        while (item := self._next()) is not None:
            if isinstance(item, _Failure):
                raise LanceletError(f"the worker of the dataset failed: {item.text}")
            yield item

    def close(self) -> None:
        """End the worker."""
        self.shutdown.value = True
        if self.started:
            while self.worker.is_alive():
                # A worker that waits for room in the queue does not see that it is to end.
                self._drain()
                self.worker.join(0.01)
            self.worker.close()
            self.started = False
        self.queue.close()

    def _start(self) -> None:
        if not self.started:
            self.started = True
            self.worker = Process(target=_work, args=(self.dataset_creator, self.queue, self.shutdown), daemon=True)
            self.worker.start()

    def _next(self) -> Any:
        while True:
            try:
                return self.queue.get(timeout=_LOOK)
            except Empty:
                if not self.worker.is_alive() and self.queue.empty():
                    raise LanceletError(f"the worker of the dataset died: exit code {self.worker.exitcode}") from None

    def _drain(self) -> None:
        try:
            while True:
                # A tensor whose maker is gone cannot be had any more, and is not wanted.
                with suppress(OSError, EOFError):
                    self.queue.get_nowait()
        except Empty:
            pass


@contextmanager
def async_dataset(dataset_creator: Callable[[], IterableDataset], *, queue_size: int = 4) -> Iterator[AsyncDataset]:
    """An :class:`AsyncDataset` whose worker ends with the block."""
    made = AsyncDataset(dataset_creator, queue_size=queue_size)
    try:
        yield made
    finally:
        made.close()
