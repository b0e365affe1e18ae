"""Work: a version in the making, which each operation turns into the next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lancelet.errors import InvalidInput
from lancelet.format.fields import Schema
from lancelet.format.fragment_list import Fragments
from lancelet.format.fragments import Fragment
from lancelet.format.indexes import IndexMetadata
from lancelet.format.manifest import Manifest

__all__ = ["Work", "begin", "number_fragments"]


@dataclass(frozen=True, slots=True)
class Work:
    """What an operation starts from, and what it leaves for the next manifest."""

    #: The version before.
    current: Manifest
    #: The version in the making.
    version: int
    schema: Schema
    fragments: Fragments
    indexes: tuple[IndexMetadata, ...]
    #: The next fragment that gets an id gets this one.
    next_fragment_id: int
    #: None where rows have no stable ids.
    next_row_id: int | None

    def existing(self, fragment_id: int, operation: str) -> Fragment:
        """The fragment with an id; InvalidInput where an operation names one that is not there."""
        return self.fragments[self.place(fragment_id, operation)]

    def place(self, fragment_id: int, operation: str) -> int:
        """Where it stands, without a look at it."""
        place = self.fragments.place_of(fragment_id)
        if place is None:
            raise InvalidInput(f"{operation} names fragment {fragment_id}, which the table does not have")
        return place


def begin(current: Manifest, indexes: Iterable[IndexMetadata], *, version: int, stable_row_ids: bool) -> Work:
    """The work as it stands before the operation."""
    return Work(
        current=current,
        version=version,
        schema=current.schema,
        fragments=current.fragments,
        indexes=tuple(indexes),
        next_fragment_id=_next_fragment_id(current),
        next_row_id=current.next_row_id if stable_row_ids else None,
    )


def _next_fragment_id(current: Manifest) -> int:
    highest = current.max_fragment_id
    if highest is None and len(current.fragments):
        # Old manifests do not say; their writers gave ids of fragments that were gone once more, too.
        highest = int(current.fragments.ids().max())
    return 0 if highest is None else highest + 1


def number_fragments(work: Work, fragments: Iterable[Fragment]) -> tuple[Work, list[Fragment]]:
    """New fragments with ids, and the work without them. Those that have one keep it: it was reserved.

    No id is 0 as well, so a reserved id 0 is none; a table that has a fragment never gives 0 again.
    """
    numbered: list[Fragment] = []
    following = work.next_fragment_id
    for item in fragments:
        if item.id == 0:
            numbered.append(replace(item, id=following))
            following += 1
        else:
            numbered.append(item)
    return replace(work, next_fragment_id=following), numbered
