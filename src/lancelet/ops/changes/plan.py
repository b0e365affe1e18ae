"""Plans of changes: which fragments of either version may hold changed rows, shared out to tasks; manifests alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import pyarrow as pa

from lancelet.errors import NotFound
from lancelet.expr import Column, Expr
from lancelet.ops.changes.history import addresses_hold, was_overwritten
from lancelet.ops.changes.request import (
    CHANGE_TYPE,
    DELETE,
    INSERT,
    POSTIMAGE,
    PREIMAGE,
    ChangesRequest,
    Pair,
)
from lancelet.query.facts import facts_of
from lancelet.query.plan import outputs_of
from lancelet.query.request import ScanRequest, bound_schema, request_for
from lancelet.table.snapshot import Snapshot, open_snapshot

__all__ = ["ChangesPlan", "ChangesTask", "Side", "plan_changes", "version_pairs"]

#: Columns by the names that they get.
Outputs: TypeAlias = "tuple[tuple[str, Expr], ...]"


class Side(Enum):
    """From which of the two versions rows come: the earlier has those that are gone, the later those that came."""

    BEFORE = "before"
    AFTER = "after"

    @property
    def kinds(self) -> tuple[str, str]:
        """What a row is that only this version has, and one that both have, but not alike."""
        return (DELETE, PREIMAGE) if self is Side.BEFORE else (INSERT, POSTIMAGE)


@dataclass(frozen=True, slots=True)
class ChangesTask:
    """Some fragments of one version, to be looked through for changed rows. It pickles."""

    side: Side
    fragments: tuple[int, ...]
    #: Rows of the fragments, deleted ones among them: at most so many have changed.
    rows: int


@dataclass(frozen=True, slots=True)
class ChangesPlan:
    """How changes between two versions are found. It pickles, and any process that opens both can run its tasks."""

    request: ChangesRequest
    begin: int
    end: int
    schema: pa.Schema
    #: The columns that are read of each version, by the names that they get; the earlier may not have all of them.
    columns: Mapping[Side, Outputs]
    #: Fragments of each version that are not the same in the other: rows are sought among those only.
    changed: Mapping[Side, tuple[int, ...]]
    #: Whether rows are told by their stable ids, rather than by their addresses.
    stable_row_ids: bool
    tasks: tuple[ChangesTask, ...]

    def scan_request(self, side: Side) -> ScanRequest:
        """What is asked of one version."""
        return ScanRequest(
            columns=self.columns[side], batch_size=self.request.batch_size, batch_bytes=self.request.batch_bytes
        )

    def __str__(self) -> str:
        count = len(self.tasks)
        rows = sum(task.rows for task in self.tasks)
        named = f"{count} task{'' if count == 1 else 's'}"
        return f"changes from version {self.begin} to {self.end}: {named}, at most {rows:,} rows"


def plan_changes(pair: Pair, request: ChangesRequest | None = None) -> ChangesPlan:
    """How the changes between two versions are found.

    Unsupported where the table has no stable row ids and rows were moved, so that nobody can tell which are new.

    >>> from lancelet.ops.write import append, create
    >>> from lancelet.storage import open_store
    >>> store = open_store("memory://planned-changes")
    >>> made = create(store, pa.table({"x": [1, 2]}))
    >>> first = open_snapshot(store)
    >>> made = append(first, pa.table({"x": [3]}))
    >>> print(plan_changes(Pair.of(first, open_snapshot(store))))
    changes from version 1 to 2: 1 task, at most 1 rows
    """
    request = request or ChangesRequest()
    stable = facts_of(pair.after.manifest).stable_row_ids
    if pair.before is not None:
        stable = stable and facts_of(pair.before.manifest).stable_row_ids
    before, after = _changed(pair)
    if before and not stable and not addresses_hold(pair):
        before, after = {}, {}
    outputs, schema = outputs_of(facts_of(pair.after.manifest), _asked(pair.after, request))
    columns = {Side.AFTER: outputs, Side.BEFORE: _columns_before(pair, outputs) if before else ()}
    found = {Side.BEFORE: before, Side.AFTER: after}
    tasks = [
        task
        for side in (Side.BEFORE, Side.AFTER)
        if set(side.kinds) & set(request.kinds)
        for task in _tasks(side, found[side], request.rows_per_task)
    ]
    return ChangesPlan(
        request=request,
        begin=pair.begin,
        end=pair.after.version,
        schema=_told(schema),
        columns=columns,
        changed={side: tuple(items) for side, items in found.items()},
        stable_row_ids=stable,
        tasks=tuple(tasks),
    )


def version_pairs(before: Snapshot | None, after: Snapshot) -> Iterator[Pair]:
    """Each version after ``before`` up to ``after``, with the one it came from. NotFound where one was cleaned up.

    >>> from lancelet.ops.write import append, create
    >>> from lancelet.storage import open_store
    >>> store = open_store("memory://version-pairs")
    >>> made = create(store, pa.table({"x": [1, 2]}))
    >>> made = append(open_snapshot(store), pa.table({"x": [3]}))
    >>> [(pair.begin, pair.after.version) for pair in version_pairs(None, open_snapshot(store))]
    [(0, 1), (1, 2)]
    """
    begin = 0 if before is None else before.version
    earlier = before
    for version in range(begin + 1, after.version + 1):
        try:
            later = after if version == after.version else open_snapshot(after.store, version=version)
        except NotFound as error:
            raise error.where(hint="it was cleaned up; begin after it") from None
        yield Pair.of(earlier, later)
        earlier = later


def _changed(pair: Pair) -> tuple[dict[int, int], dict[int, int]]:
    """Fragments that are not the same in both versions, with their rows. Messages are compared as they are."""
    new = {item.id: item for item in pair.after.manifest.fragments.message().fragments}
    if pair.before is None:
        return {}, {number: item.physical_rows for number, item in new.items()}
    old = {item.id: item for item in pair.before.manifest.fragments.message().fragments}
    before = {number: item.physical_rows for number, item in old.items() if new.get(number) != item}
    after = {number: item.physical_rows for number, item in new.items() if old.get(number) != item}
    return before, after


def _asked(after: Snapshot, request: ChangesRequest) -> ScanRequest:
    return ScanRequest() if request.columns is None else request_for(after, request.columns)


def _told(schema: pa.Schema) -> pa.Schema:
    """What batches of changes look like: of a row before its change some columns may not be known."""
    fields = [field.with_nullable(True) for field in schema]
    return pa.schema([*fields, pa.field(CHANGE_TYPE, pa.string(), nullable=False)], schema.metadata)


def _columns_before(pair: Pair, later: Outputs) -> Outputs:
    """What stood for columns in the earlier version: those of the same name, or that have been renamed since."""
    assert pair.before is not None
    bound = bound_schema(pair.before.schema)
    renamed = _renamed(pair) if any(_missing(bound, expr) for _, expr in later) else {}
    found: list[tuple[str, Expr]] = []
    for name, expr in later:
        assert isinstance(expr, Column)
        first, *rest = expr.path
        path = [renamed.get(first, first) if _missing(bound, expr) else first, *rest]
        if bound.get_field_index(path[0]) >= 0 and (kind := _type_at(bound, path)) is not None:
            found.append((name, Column(tuple(path), kind)))
    return tuple(found)


def _missing(bound: pa.Schema, expr: Expr) -> bool:
    return isinstance(expr, Column) and bound.get_field_index(expr.path[0]) < 0


def _renamed(pair: Pair) -> dict[str, str]:
    """Columns by their names now, and as they were called before; none where fields may have been numbered anew."""
    assert pair.before is not None
    old = {item.id: item for item in pair.before.schema.fields}
    names = {item.name for item in pair.after.schema.fields}
    found = {
        item.name: was.name
        for item in pair.after.schema.fields
        if (was := old.get(item.id)) is not None and was.name not in names and was.logical_type == item.logical_type
    }
    return {} if not found or was_overwritten(pair) else found


def _type_at(schema: pa.Schema, path: list[str]) -> pa.DataType | None:
    kind: pa.DataType = schema.field(path[0]).type
    for step in path[1:]:
        if not pa.types.is_struct(kind) or kind.get_field_index(step) < 0:
            return None
        kind = kind.field(step).type
    return kind


def _tasks(side: Side, rows: Mapping[int, int], most: int) -> Iterator[ChangesTask]:
    """Fragments put together until a task has enough to look at."""
    group: list[int] = []
    held = 0
    for number, count in rows.items():
        if group and held + count > most:
            yield ChangesTask(side, tuple(group), held)
            group, held = [], 0
        group.append(number)
        held += count
    if group:
        yield ChangesTask(side, tuple(group), held)
