"""What the versions between two did: whether a row's address says which row it is all the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lancelet.errors import NotFound, Unsupported
from lancelet.format import operations as op
from lancelet.format.names import DETACHED
from lancelet.ops.changes.request import Pair
from lancelet.table.snapshot import Snapshot, open_snapshot

__all__ = ["Step", "addresses_hold", "steps_between", "was_overwritten"]

#: Operations after which every row that was there and still is lies where it lay.
_IN_PLACE = (
    op.Append,
    op.Delete,
    op.Overwrite,
    op.CreateIndex,
    op.ReserveFragments,
    op.Merge,
    op.Project,
    op.UpdateConfig,
    op.DataReplacement,
    op.UpdateMemWalState,
    op.Clone,
    op.UpdateBases,
)
#: Operations that leave every row and value as it was.
_WITHOUT_CHANGE = (
    op.Rewrite,
    op.CreateIndex,
    op.ReserveFragments,
    op.UpdateConfig,
    op.UpdateMemWalState,
    op.Clone,
    op.UpdateBases,
)


@dataclass(frozen=True, slots=True)
class Step:
    """How a version came about; ``operation`` is None where nobody knows any more."""

    version: int
    operation: op.Operation | None

    @property
    def moves_rows(self) -> bool:
        """Whether rows may lie elsewhere than before without being others."""
        change = self.operation
        if isinstance(change, op.Update):
            return (
                bool(change.new_fragments or change.removed_fragment_ids) or change.mode is op.UpdateMode.REWRITE_ROWS
            )
        return not isinstance(change, _IN_PLACE)

    def __str__(self) -> str:
        name = "an unknown change" if self.operation is None else type(self.operation).__name__
        return f"version {self.version} ({name})"


def steps_between(begin: int, after: Snapshot) -> Iterator[Step]:
    """The versions after ``begin`` up to one that is open, oldest first."""
    if after.version & DETACHED:
        yield Step(after.version, None)
        return
    for version in range(begin + 1, after.version + 1):
        yield _step(after, version)


def _step(after: Snapshot, version: int) -> Step:
    try:
        found = after if version == after.version else open_snapshot(after.store, version=version)
    except NotFound:
        return Step(version, None)
    transaction = found.transaction()
    return Step(version, None if transaction is None else transaction.operation)


def was_overwritten(pair: Pair) -> bool:
    """Whether all rows were replaced, or may have been: then fields of one id may be different columns."""
    return any(step.operation is None or isinstance(step.operation, op.Overwrite) for step in _path(pair))


def addresses_hold(pair: Pair) -> bool:
    """Whether rows of a table without stable ids are told by their addresses; False where no row was changed at all.

    Unsupported where rows were moved on the way, so that nobody can tell which are new.
    """
    steps = _path(pair)
    if all(isinstance(step.operation, _WITHOUT_CHANGE) for step in steps):
        return False
    if not any(isinstance(step.operation, op.Restore) for step in steps):
        replaced = [place for place, step in enumerate(steps) if isinstance(step.operation, op.Overwrite)]
        if replaced:
            # Whatever was there is gone, and whatever is there is new, however it was moved meanwhile.
            return True
    moved = next((step for step in steps if step.moves_rows and not isinstance(step.operation, op.Restore)), None)
    if moved is None:
        return True
    at = f"changes from version {pair.begin} to {pair.after.version}"
    if moved.operation is None:
        found, hint = f"{moved} is gone or left no transaction", "compare versions that are both still there"
    elif isinstance(moved.operation, op.Rewrite):
        found, hint = f"{moved} moved rows", "compare version by version"
    else:
        found, hint = f"{moved} moved rows among new ones", "follow tables made with enable_stable_row_ids=True"
    raise Unsupported(
        f"{at} cannot be told: {found}, and the table has no stable row ids", uri=pair.after.uri, hint=hint
    )


def _path(pair: Pair) -> list[Step]:
    """What lies between the two versions, with what was undone by going back before the first."""
    steps = list(steps_between(pair.begin, pair.after))
    back = [step.operation.version for step in steps if isinstance(step.operation, op.Restore)]
    if pair.before is not None and back and min(back) < pair.begin:
        steps = [*steps_between(min(back), pair.before), *steps]
    return steps
