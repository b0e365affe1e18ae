"""Requests to merge: what becomes of rows whose keys are on both sides, only in the source, or only in the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from lancelet.errors import InvalidInput
from lancelet.expr import Expr
from lancelet.format.versions import FileVersion
from lancelet.ops.data_files import Limits

__all__ = ["Duplicates", "Matched", "MergeRequest", "WriteMode"]


class Matched(Enum):
    """What becomes of rows of the table whose key is in the source."""

    KEEP = "keep"
    UPDATE = "update"
    DELETE = "delete"
    #: There must be none.
    FAIL = "fail"


class Duplicates(Enum):
    """What becomes of rows of the source that are to change one row of the table."""

    FAIL = "fail"
    #: The first counts, the others are passed over.
    FIRST = "first"


class WriteMode(Enum):
    """How updated rows are stored: moved whole to new fragments, or given new columns where they are."""

    AUTO = "auto"
    REWRITE_ROWS = "rewrite_rows"
    REWRITE_COLUMNS = "rewrite_columns"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    """One merge. Rows with a null in their key are like no other row.

    >>> MergeRequest.upsert(("id",)).matched.value
    'update'
    """

    #: The columns of the key; none for the table's primary key.
    on: tuple[str, ...] = ()
    matched: Matched = Matched.KEEP
    #: For UPDATE: only where this is true, over columns named ``source.x`` and ``target.x``.
    condition: str | Expr | None = None
    #: Whether rows that are only in the source are put in.
    insert: bool = False
    #: Whether rows that are only in the table are deleted: all, or where a condition over its columns is true.
    delete_unmatched: bool | str | Expr = False
    duplicates: Duplicates = Duplicates.FAIL
    write_mode: WriteMode = WriteMode.AUTO
    data_storage_version: str | FileVersion | None = None
    #: Base paths that new fragments go to in turn, by name or path; or all, with the table's own folder or without.
    target_bases: tuple[str, ...] | None = None
    target_all_bases: bool | None = None
    limits: Limits = field(default_factory=Limits)
    use_index: bool = True

    def __post_init__(self) -> None:
        if len(set(self.on)) < len(self.on):
            raise InvalidInput(f"the key names a column twice: {', '.join(self.on)}")
        if self.matched is Matched.KEEP and not self.insert and self.delete_unmatched is False:
            raise InvalidInput(
                "the merge is not to change anything", hint="say what becomes of matched rows, or of those that are not"
            )
        if self.condition is not None and self.matched is not Matched.UPDATE:
            raise InvalidInput(f"a condition is given for rows that are to {self.matched.value}, not to be updated")

    @property
    def deletes_unmatched(self) -> bool:
        """Whether rows of the table may go because the source does not have them."""
        return self.delete_unmatched is not False

    @staticmethod
    def upsert(on: Iterable[str], condition: str | Expr | None = None) -> MergeRequest:
        """Update rows that are there, and put the others in."""
        return MergeRequest(on=tuple(on), matched=Matched.UPDATE, condition=condition, insert=True)
