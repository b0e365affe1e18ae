"""Checkpoints: what a backfill has done is written down fragment by fragment, so that another run carries it on.

    _lancelet/backfills/<name>/<fragment>-<random>.json     the file with the new columns of one fragment

The folder is one that other implementations do not know, so that their cleanup leaves it alone. Files with columns
that nobody has committed go as those of dead writers do, when they are old enough; then their fragments are done anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable
from uuid import uuid4

import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.events import emit
from lancelet.ops.backfill.filled import Filled
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Store

__all__ = ["BACKFILLS", "BatchCheckpoint", "Checkpoint", "StoreCheckpoint"]

BACKFILLS = "_lancelet/backfills"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class Checkpoint(Protocol):
    """Where the work done is kept. It pickles; tasks of one backfill may use it from many places at a time."""

    def filled(self, store: Store) -> Mapping[int, Filled]:
        """The fragments that are done, by their ids. What cannot be read is not done."""

    def keep(self, store: Store, filled: Filled) -> None:
        """A fragment is done: its file is written."""

    def clear(self, store: Store) -> None:
        """All is committed: forget it."""


@runtime_checkable
class BatchCheckpoint(Protocol):
    """A checkpoint that also keeps what is known of fragments that are not done."""

    def batch(self, fragment: int, number: int, source: str) -> pa.RecordBatch | None:
        """The values of a batch of a fragment that is not done, if they are known."""

    def keep_batch(self, fragment: int, number: int, source: str, values: pa.RecordBatch) -> None:
        """The values of a batch of a fragment."""


@dataclass(frozen=True, slots=True)
class StoreCheckpoint:
    """A checkpoint beside the table's files, for tasks on many machines. It keeps whole fragments.

    >>> from lancelet.storage.memory import MemoryStore
    >>> store, checkpoint = MemoryStore("memory://a"), StoreCheckpoint("embed")
    >>> checkpoint.keep(store, Filled(3, None, 10, "k"))
    >>> sorted(checkpoint.filled(store))
    [3]
    >>> checkpoint.clear(store)
    >>> checkpoint.filled(store)
    {}
    """

    #: Two backfills that may be under way at one time need two names.
    name: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name in (".", ".."):
            hint = "use up to 128 letters, digits, dots, dashes and underscores"
            raise InvalidInput(f"{self.name!r} is no name for a checkpoint", hint=hint)

    @property
    def _folder(self) -> str:
        return f"{BACKFILLS}/{self.name}/"

    def filled(self, store: Store) -> dict[int, Filled]:
        """The fragments that are done, by their ids."""
        found = {}
        for entry in store.list_from(self._folder):
            try:
                item = Filled.from_json(bytes(store.read_all(entry.path)).decode())
            except (ValueError, TypeError, KeyError) as error:
                emit("backfill.unreadable", uri=join_uri(store.uri, entry.path), error=repr(error))
                continue
            found[item.fragment] = item
        return found

    def keep(self, store: Store, filled: Filled) -> None:
        """A fragment is done."""
        store.put(f"{self._folder}{filled.fragment}-{uuid4().hex}.json", filled.to_json().encode())

    def clear(self, store: Store) -> None:
        """Remove what is written down."""
        store.delete([entry.path for entry in store.list_from(self._folder)])
