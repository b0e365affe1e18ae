"""MergeInsertBuilder: a merge of rows into a table by key, said step by step and then carried out."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Self, TypedDict

import pyarrow as pa

from lancelet.dataset.operation import Transaction
from lancelet.dataset.stored_operation import transaction_from_stored
from lancelet.errors import InvalidInput, Unsupported
from lancelet.format.arrow import schema_to_arrow
from lancelet.format.versions import FileVersion
from lancelet.ops.attempts import Attempts
from lancelet.ops.committing import CommitOptions
from lancelet.ops.data_files import discard
from lancelet.ops.delete import discard_deletions
from lancelet.ops.merge.merge import MergeStats, merge_insert, merge_uncommitted
from lancelet.ops.merge.plan import plan_merge
from lancelet.ops.merge.request import Duplicates, Matched, MergeRequest, WriteMode
from lancelet.types import ReaderLike, checked_source, reader_of

if TYPE_CHECKING:
    from lancelet.dataset.core import DatasetCore

__all__ = ["ExecuteResult", "MergeInsertBuilder"]


class ExecuteResult(TypedDict):
    """How many rows a merge put in, changed, and deleted."""

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


class MergeInsertBuilder:
    """Collects what a merge is to do; each method but the last returns the builder itself.

    >>> import lancelet
    >>> dataset = lancelet.write_dataset(pa.table({"id": [1, 2], "x": ["a", "b"]}), "memory://merge-builder")
    >>> upsert = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    >>> upsert.execute({"id": [2, 3], "x": ["B", "C"]})
    {'num_inserted_rows': 1, 'num_updated_rows': 1, 'num_deleted_rows': 0}
    >>> dataset.to_table().to_pydict()
    {'id': [1, 2, 3], 'x': ['a', 'B', 'C']}
    """

    def __init__(self, dataset: DatasetCore, on: str | Iterable[str] | None = None) -> None:
        """``on`` names the columns of the key; without any the table's primary key is it."""
        self._dataset = dataset
        self._on = (on,) if isinstance(on, str) else tuple(on or ())
        # What the merge is to do is checked as a whole when it is carried out.
        self._said: dict[str, object] = {}
        self._attempts = Attempts()

    def when_matched_update_all(self, condition: str | None = None) -> Self:
        """Rows whose key is in the table take the new values, where a condition holds if one is given.

        The condition is SQL over columns named ``source.x`` and ``target.x``.
        """
        return self._say(matched=Matched.UPDATE, condition=condition)

    def when_matched_delete(self) -> Self:
        """Rows of the table whose key is in the source are deleted."""
        return self._say(matched=Matched.DELETE, condition=None)

    def when_matched_fail(self) -> Self:
        """The merge fails if a key is in the table already."""
        return self._say(matched=Matched.FAIL, condition=None)

    def when_not_matched_insert_all(self) -> Self:
        """Rows whose key is not in the table are put in."""
        return self._say(insert=True)

    def when_not_matched_by_source_delete(self, expr: str | None = None) -> Self:
        """Rows of the table whose key is not in the source are deleted, where a condition over them holds if given."""
        return self._say(delete_unmatched=True if expr is None else expr)

    def first_of_duplicates(self) -> Self:
        """Of rows of the source with one key the first counts; otherwise they are an error."""
        return self._say(duplicates=Duplicates.FIRST)

    def write_mode(self, mode: str) -> Self:
        """How updated rows are stored: ``"rewrite_rows"``, ``"rewrite_columns"``, or as seems best (``"auto"``)."""
        try:
            return self._say(write_mode=WriteMode(mode))
        except ValueError:
            expected = ", ".join(repr(item.value) for item in WriteMode)
            raise InvalidInput(f"write_mode is {mode!r}, expected one of {expected}") from None

    def data_storage_version(self, version: str) -> Self:
        """The version of the data files that are written."""
        return self._say(data_storage_version=FileVersion.parse(version))

    def target_bases(self, bases: list[str]) -> Self:
        """The base paths, by name or path, that new files go to in turn."""
        return self._say(target_bases=tuple(bases), target_all_bases=None)

    def target_all_bases(self, include_primary: bool = True) -> Self:
        """New files go to all base paths in turn, and to the table's own folder if ``include_primary``."""
        return self._say(target_all_bases=include_primary, target_bases=None)

    def use_index(self, use_index: bool) -> Self:
        """Whether an index on the key may be used to find rows."""
        return self._say(use_index=bool(use_index))

    def conflict_retries(self, max_retries: int) -> Self:
        """How often the merge is worked out anew after others changed the same rows."""
        self._attempts = replace(self._attempts, retries=operator.index(max_retries))
        return self

    def retry_timeout(self, timeout: timedelta) -> Self:
        """For how long that may go on."""
        self._attempts = replace(self._attempts, timeout=timeout.total_seconds())
        return self

    def mark_sstables_as_compacted(self, sstables: list[object]) -> Self:
        """Not offered: it belongs to writing by way of a log in memory, which has not landed."""
        raise Unsupported("tables are not written by way of a log in memory")

    def execute(self, data_obj: ReaderLike, *, schema: pa.Schema | None = None) -> ExecuteResult:
        """Carry the merge out and commit it; the dataset is at the version that it made then."""
        dataset = self._dataset
        done = merge_insert(
            dataset.snapshot,
            checked_source(data_obj),
            self._request(),
            schema=schema,
            attempts=self._attempts,
            options=CommitOptions(commit_lock=dataset.location.commit_lock),
        )
        dataset._follow(done.committed)
        return _result(done.stats)

    def execute_uncommitted(
        self, data_obj: ReaderLike, *, schema: pa.Schema | None = None
    ) -> tuple[Transaction, ExecuteResult]:
        """Write the files of the merge alone: what ``LanceDataset.commit`` makes true, and what it does."""
        made, stats, _ = merge_uncommitted(
            self._dataset.snapshot, checked_source(data_obj), self._request(), schema=schema
        )
        return transaction_from_stored(made), _result(stats)

    def execute_batches(self, new_data: pa.Table | pa.RecordBatch | pa.RecordBatchReader) -> ExecuteResult:
        """``execute`` for rows of Arrow that are in memory; more of them than the budget allows go to disk."""
        return self.execute(_of_arrow(new_data))

    def execute_uncommitted_batches(
        self, new_data: pa.Table | pa.RecordBatch | pa.RecordBatchReader
    ) -> tuple[Transaction, ExecuteResult]:
        """``execute_uncommitted`` for rows of Arrow that are in memory."""
        return self.execute_uncommitted(_of_arrow(new_data))

    def analyze_plan_batches(self, new_data: pa.Table | pa.RecordBatch | pa.RecordBatchReader) -> str:
        """``analyze_plan`` for rows of Arrow that are in memory."""
        return self.analyze_plan(_of_arrow(new_data))

    def explain_plan(self, schema: pa.Schema | None = None, verbose: bool = False) -> str:
        """What the merge would do with a source of some columns; those of the table if none are given."""
        snapshot, request = self._dataset.snapshot, self._request()
        plan = plan_merge(snapshot, schema or schema_to_arrow(snapshot.schema), request)
        deletes = request.delete_unmatched
        lines = [
            f"merge into {self._dataset.uri} version {plan.read_version}",
            f"  key: {', '.join('.'.join(key.path) for key in plan.keys)}",
            f"  matched: {request.matched.value}" + ("" if plan.condition is None else f" where {request.condition}"),
            f"  only in the source: {'insert' if request.insert else 'pass over'}",
            f"  only in the table: {'keep' if deletes is False else 'delete'}"
            + (f" where {deletes}" if isinstance(deletes, str) else ""),
            f"  write: {plan.mode.value}, files of version {plan.version.label}",
        ]
        if verbose:
            lines.append(f"  columns of the source: {', '.join(item.name for item in plan.given.fields)}")
            lines.append(f"  columns taken from the table: {', '.join(plan.missing) or 'none'}")
        return "\n".join(lines)

    def analyze_plan(self, data_obj: ReaderLike, *, schema: pa.Schema | None = None) -> str:
        """Carry the merge out without committing it, remove what was written, and tell what was done."""
        reader = reader_of(data_obj, schema)
        text = self.explain_plan(reader.schema)
        snapshot = self._dataset.snapshot
        _, stats, result = merge_uncommitted(snapshot, reader, self._request())
        discard(snapshot.store, [file for item in result.new_fragments for file in item.files])
        discard(snapshot.store, [item.files[-1] for item in result.patched])
        discard_deletions(snapshot.store, result.removed.updated)
        counts = {name: getattr(stats, name) for name in MergeStats.__dataclass_fields__ if name != "num_attempts"}
        return "\n".join([text, *(f"  {name}: {count:,}" for name, count in counts.items())])

    def _say(self, **said: object) -> Self:
        self._said.update(said)
        return self

    def _request(self) -> MergeRequest:
        return MergeRequest(on=self._on, **self._said)  # type: ignore[arg-type]


def _of_arrow(given: object) -> pa.Table | pa.RecordBatch | pa.RecordBatchReader:
    if not isinstance(given, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        raise TypeError(f"new_data must be an Arrow table, batch or reader, got {type(given).__name__}")
    return given


def _result(stats: MergeStats) -> ExecuteResult:
    return ExecuteResult(
        num_inserted_rows=stats.num_inserted_rows,
        num_updated_rows=stats.num_updated_rows,
        num_deleted_rows=stats.num_deleted_rows,
    )
