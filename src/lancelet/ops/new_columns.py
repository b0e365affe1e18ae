"""Columns with values put in: new data files beside those of each fragment, aligned with its rows.

Values come from a reader, a row for each row of a scan; from expressions and functions, which tasks compute fragment by
fragment (:mod:`lancelet.ops.backfill`); or there are none, and nothing but the manifest changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.format.arrow import schema_to_arrow
from lancelet.format.fragments import Fragment
from lancelet.ops.attempts import Attempts
from lancelet.ops.backfill.aligned import WINDOW, Feed, aligned
from lancelet.ops.backfill.backfill import PATIENT, backfill, commit_backfill, merge_columns
from lancelet.ops.backfill.fields import NewFields, new_fields, next_field_id
from lancelet.ops.backfill.filled import Filled
from lancelet.ops.backfill.task import checked_batches, write_columns
from lancelet.ops.backfill.values import Expressions
from lancelet.ops.committing import NOT_COMMITTED, CommitOptions
from lancelet.ops.data_files import Rows, batches_of, discard
from lancelet.query.stored import open_fragment
from lancelet.table.outcome import Committed, Conflict, Outcome
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = [
    "add_columns",
    "add_columns_by_sql",
    "add_null_columns",
    "fill_from",
    "merge_columns",
    "next_field_id",
]


def fill_from(
    snapshot: Snapshot, fields: NewFields, rows: Rows, fragments: Sequence[Fragment] | None = None
) -> list[Filled]:
    """Write a file for each fragment with the rows that come; when that fails nothing is left behind."""
    places = Places.of(snapshot)
    feed = _feed(fields, rows)
    made: list[Filled] = []
    try:
        for item in snapshot.manifest.fragments if fragments is None else fragments:
            stored = open_fragment(places, item)
            file = None
            if len(stored.deleted) < stored.physical_rows:
                file = write_columns(snapshot, fields, aligned(feed, stored.deleted, stored.physical_rows))
            made.append(Filled(item.id, file, stored.physical_rows, "", item.deletion_file))
        feed.check_end()
    except BaseException:
        discard(snapshot.store, [item.file for item in made if item.file is not None])
        raise
    return made


def _feed(fields: NewFields, rows: Rows) -> Feed:
    arrow = schema_to_arrow(fields.stored)
    batches: Iterator[pa.RecordBatch] = checked_batches(batches_of(rows, WINDOW), fields)
    first = next(batches, None)
    if first is None:
        return Feed(arrow, ())
    return Feed(first.schema, _chained(first, batches))


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def add_columns(
    snapshot: Snapshot, rows: Rows, *, message: str | None = None, options: CommitOptions | None = None
) -> Outcome:
    """Put columns in, with a row for each row of the table, in the order of a scan.

    >>> from lancelet.ops.write import create
    >>> from lancelet.query.scan import scan
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> store = open_store("memory://widened")
    >>> made = create(store, pa.table({"x": [1, 2]}))
    >>> after = add_columns(open_snapshot(store), pa.table({"y": ["a", "b"]}))
    >>> scan(open_snapshot(store)).read_all().to_pydict()
    {'x': [1, 2], 'y': ['a', 'b']}
    """
    fields = new_fields(snapshot, rows.schema)
    made = fill_from(snapshot, fields, rows)
    files = [item.file for item in made if item.file is not None]
    try:
        outcome = commit_backfill(snapshot, fields, made, options=options or CommitOptions(message=message))
    except NOT_COMMITTED:
        discard(snapshot.store, files)
        raise
    if isinstance(outcome, Conflict):
        # The rows were read, so that nobody can try again with them.
        discard(snapshot.store, files)
    return outcome


def add_columns_by_sql(
    snapshot: Snapshot,
    expressions: Mapping[str, str],
    *,
    attempts: Attempts = PATIENT,
    options: CommitOptions | None = None,
) -> Committed:
    """Put columns in whose values are expressions over those there are.

    >>> from lancelet.ops.write import create
    >>> from lancelet.query.scan import scan
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> store = open_store("memory://computed")
    >>> made = create(store, pa.table({"x": [1, 2]}))
    >>> after = add_columns_by_sql(open_snapshot(store), {"double": "x * 2"})
    >>> scan(open_snapshot(store)).read_all().to_pydict()
    {'x': [1, 2], 'double': [2, 4]}
    """
    return backfill(snapshot, Expressions(tuple(expressions.items())), attempts=attempts, options=options)


def add_null_columns(
    snapshot: Snapshot, schema: pa.Schema, *, message: str | None = None, options: CommitOptions | None = None
) -> Outcome:
    """Put columns in that are null in every row: nothing but the manifest changes."""
    fields = new_fields(snapshot, schema)
    if not fields.may_miss:
        name = next(item.name for item in fields.stored.walk() if not item.nullable)
        raise InvalidInput(f"column {name!r} may not be null, but has no values", column=name)
    return commit_backfill(snapshot, fields, (), options=options or CommitOptions(message=message))
