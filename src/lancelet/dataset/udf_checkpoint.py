"""Checkpoints of functions that compute columns: results kept in a file until they are committed.

An SQLite database of two tables. Batches are Arrow IPC streams; what they were made from is in their schema's metadata.

    batches     fragment_id INT, batch_index INT, result BLOB     of fragments that are not done
    fragments   fragment_id INT, data BLOB                        fragments whose file is written
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.events import emit
from lancelet.ops.backfill.filled import Filled
from lancelet.storage.store import Store

__all__ = ["BatchUDFCheckpoint", "FileCheckpoint"]

_SOURCE = b"lancelet:source"


class BatchUDFCheckpoint:
    """Results of a function, in a file; any thread or process may use it.

    >>> checkpoint = BatchUDFCheckpoint("results.sqlite")
    >>> info = BatchUDFCheckpoint.BatchInfo(fragment_id=0, batch_index=3)
    >>> checkpoint.insert_batch(info, pa.record_batch({"y": [1]}))
    >>> checkpoint.get_batch(info).num_rows, checkpoint.get_fragment(0)
    (1, None)
    >>> checkpoint.cleanup()
    """

    class BatchInfo(NamedTuple):
        """Which batch of which fragment."""

        fragment_id: int
        batch_index: int

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """The file is made if there is none; InvalidInput for one that is something else."""
        self.path = path
        with self._connected() as database:
            database.execute("CREATE TABLE IF NOT EXISTS batches (fragment_id INT, batch_index INT, result BLOB)")
            database.execute("CREATE TABLE IF NOT EXISTS fragments (fragment_id INT, data BLOB)")

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own for each use: connections belong to one thread."""
        try:
            with closing(sqlite3.connect(self.path, timeout=60)) as database, database:
                yield database
        except sqlite3.Error as error:
            hint = "name a new file, or one that a checkpoint was kept in before"
            raise InvalidInput(f"the checkpoint cannot be used: {error}", uri=str(self.path), hint=hint) from error

    def cleanup(self) -> None:
        """Remove the file."""
        os.remove(self.path)

    def get_batch(self, info: BatchInfo) -> pa.RecordBatch | None:
        """What was kept of a batch; None if nothing that can be read."""
        query = "SELECT result FROM batches WHERE fragment_id = ? AND batch_index = ? ORDER BY rowid DESC"
        with self._connected() as database:
            row = database.execute(query, tuple(info)).fetchone()
        if row is None:
            return None
        try:
            return pa.ipc.open_stream(row[0]).read_next_batch()
        except (pa.ArrowException, OSError, StopIteration, TypeError) as error:
            # Pylance keeps pickles, which could run any code: they are computed again.
            emit("backfill.unreadable", uri=str(self.path), error=repr(error))
            return None

    def insert_batch(self, info: BatchInfo, batch: pa.RecordBatch) -> None:
        """Keep the result of a batch."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        with self._connected() as database:
            database.execute("INSERT INTO batches VALUES (?, ?, ?)", (*info, memoryview(sink.getvalue())))

    def get_fragment(self, fragment_id: int) -> str | None:
        """What was kept of a fragment whose file is written."""
        query = "SELECT data FROM fragments WHERE fragment_id = ? ORDER BY rowid DESC"
        with self._connected() as database:
            row = database.execute(query, (fragment_id,)).fetchone()
        return None if row is None else str(row[0])

    def insert_fragment(self, fragment_id: int, fragment: str) -> None:
        """Keep what is to be known of a fragment whose file is written; its batches need not be kept any more."""
        with self._connected() as database:
            database.execute("INSERT INTO fragments VALUES (?, ?)", (fragment_id, fragment))
            database.execute("DELETE FROM batches WHERE fragment_id = ?", (fragment_id,))

    def fragments(self) -> list[str]:
        """What was kept of all fragments, the latest last."""
        with self._connected() as database:
            return [str(row[0]) for row in database.execute("SELECT data FROM fragments ORDER BY rowid")]


@dataclass(frozen=True, slots=True)
class FileCheckpoint:
    """A checkpoint in a file of this machine, as backfills use one: see :mod:`lancelet.ops.backfill.checkpoint`."""

    kept: BatchUDFCheckpoint

    def filled(self, store: Store) -> dict[int, Filled]:
        """The fragments that are done. What cannot be read is not done."""
        found = {}
        for text in self.kept.fragments():
            try:
                item = Filled.from_json(text)
            except (ValueError, TypeError, KeyError) as error:
                emit("backfill.unreadable", uri=str(self.kept.path), error=repr(error))
                continue
            found[item.fragment] = item
        return found

    def keep(self, store: Store, filled: Filled) -> None:
        """A fragment is done."""
        self.kept.insert_fragment(filled.fragment, filled.to_json())

    def clear(self, store: Store) -> None:
        """All is committed."""
        self.kept.cleanup()

    def batch(self, fragment: int, number: int, source: str) -> pa.RecordBatch | None:
        """The values of a batch, if they were made from the same source."""
        found = self.kept.get_batch(BatchUDFCheckpoint.BatchInfo(fragment, number))
        if found is None or (found.schema.metadata or {}).get(_SOURCE) != source.encode():
            return None
        rest = {key: value for key, value in found.schema.metadata.items() if key != _SOURCE}
        return found.replace_schema_metadata(rest or None)

    def keep_batch(self, fragment: int, number: int, source: str, values: pa.RecordBatch) -> None:
        """Keep the values of a batch."""
        marked = values.replace_schema_metadata({**(values.schema.metadata or {}), _SOURCE: source.encode()})
        self.kept.insert_batch(BatchUDFCheckpoint.BatchInfo(fragment, number), marked)
