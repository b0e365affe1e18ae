"""References to versions that need not be opened: a number, a tag, or a branch with or without a number."""

from __future__ import annotations

import operator
from datetime import datetime

from lancelet.errors import InvalidInput
from lancelet.storage.store import Store
from lancelet.table.branches import MAIN
from lancelet.table.references import Reference
from lancelet.table.tags import get_tag

__all__ = ["Reference", "local_time", "place_of", "version_number"]


def place_of(main: Store, reference: Reference, *, branch: str | None) -> tuple[str | None, int | None]:
    """The branch and the version that a reference means, the version None for the newest.

    >>> from lancelet.storage.memory import MemoryStore
    >>> main = MemoryStore("memory://a")
    >>> place_of(main, ("main", 3), branch="dev"), place_of(main, 3, branch="dev")
    ((None, 3), ('dev', 3))
    """
    match reference:
        case str():
            tag = get_tag(main, reference)
            return tag.branch, tag.version
        case (None | str() as named, None | int() as number):
            return (None if named == MAIN else named), None if number is None else version_number(number)
        case int():
            return branch, version_number(reference)
    raise InvalidInput(f"{reference!r} is no reference to a version", hint="give an int, a tag, or (branch, int)")


def version_number(version: object) -> int:
    """A version's number; InvalidInput for one that no version can have."""
    try:
        number = operator.index(version)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidInput(f"{version!r} is no version, expected an int") from None
    if not 0 <= number < 2**64:
        raise InvalidInput(f"there is no version {number}, expected 1 or more")
    return number


def local_time(moment: datetime) -> datetime:
    """A moment as versions tell theirs: of this machine's time zone, without saying so."""
    return moment.astimezone().replace(tzinfo=None)
