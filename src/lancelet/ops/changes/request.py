"""What is asked of two versions: which kinds of changes, and what is told of the rows."""

from __future__ import annotations

from dataclasses import dataclass, field

from lancelet.errors import InvalidInput
from lancelet.query.request import ROW_OFFSET
from lancelet.table.paths import Opener, Places
from lancelet.table.snapshot import Snapshot

__all__ = ["CHANGE_TYPE", "DELETE", "INSERT", "KINDS", "POSTIMAGE", "PREIMAGE", "ChangesRequest", "Pair"]

#: The column that says what happened to a row.
CHANGE_TYPE = "_change_type"
INSERT, DELETE = "insert", "delete"
#: An updated row as it was, and as it is.
PREIMAGE, POSTIMAGE = "update_preimage", "update_postimage"
KINDS = (INSERT, PREIMAGE, POSTIMAGE, DELETE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesRequest:
    """Which changes are wanted, and which columns of the rows.

    >>> ChangesRequest(kinds=("upsert",))
    Traceback (most recent call last):
    lancelet.errors.InvalidInput: 'upsert' is no kind of change; there are: insert, update_preimage, ...
    """

    #: Columns of the later version by name, and those known of rows (``_rowid`` ...); None for all that it stores.
    columns: tuple[str, ...] | None = None
    kinds: tuple[str, ...] = KINDS
    #: No batch has more rows, nor, where that is given, many more bytes.
    batch_size: int = 8192
    batch_bytes: int | None = None
    #: Rows that a task is to look at, about; one fragment is never shared out.
    rows_per_task: int = 1 << 20

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise InvalidInput(f"{kind!r} is no kind of change", hint=f"there are: {', '.join(KINDS)}")
        for name in self.columns or ():
            if name in (ROW_OFFSET, CHANGE_TYPE):
                raise InvalidInput(f"{name} is not told of changed rows", column=name)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two versions of one table to compare, and where their files are; ``before`` is None for before the first.

    >>> from lancelet.errors import LanceletError
    >>> from lancelet.ops.write import create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> import pyarrow as pa
    >>> made = create(open_store("memory://pair"), pa.table({"x": [1]}))
    >>> Pair.of(None, open_snapshot(open_store("memory://pair"))).begin
    0
    """

    before: Snapshot | None
    after: Snapshot
    before_places: Places | None = field(repr=False)
    after_places: Places = field(repr=False)

    def __post_init__(self) -> None:
        before, after = self.before, self.after
        if before is None:
            return
        if before.branch != after.branch or before.uri != after.uri:
            raise InvalidInput(
                f"changes are told between versions of one branch, not from {before.uri} to {after.uri}",
                uri=after.uri,
            )
        if before.version > after.version:
            found = f"begin version {before.version} is newer than end version {after.version}"
            raise InvalidInput(found, uri=after.uri, version=after.version)

    @staticmethod
    def of(before: Snapshot | None, after: Snapshot, *, opener: Opener | None = None) -> Pair:
        """Two versions, with the files of both reached in the same way."""

        def places(snapshot: Snapshot) -> Places:
            return Places.of(snapshot) if opener is None else Places.of(snapshot, opener=opener)

        return Pair(before, after, None if before is None else places(before), places(after))

    @property
    def begin(self) -> int:
        """The number of the earlier version; 0 where there is none."""
        return 0 if self.before is None else self.before.version
