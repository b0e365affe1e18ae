"""What tasks of operations share: the version they work on, opened where they run, and groups of its fragments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from lancelet.errors import InvalidInput
from lancelet.format.fragments import Fragment
from lancelet.storage.store import Store
from lancelet.table.snapshot import Snapshot, open_snapshot

__all__ = ["TASK_BYTES", "AtVersion", "bytes_of", "grouped", "selected"]

#: Fragments of about so many stored bytes are one task's unless asked otherwise: worth a process, few to lose.
TASK_BYTES = 4 * 2**30


@dataclass(frozen=True, slots=True)
class AtVersion:
    """A version that a task works on. In the process that planned it nothing is read again; elsewhere it is opened."""

    version: int
    _snapshot: Snapshot | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def of(snapshot: Snapshot) -> AtVersion:
        """The version of a snapshot."""
        return AtVersion(snapshot.version, snapshot)

    def open(self, store: Store) -> Snapshot:
        """The snapshot."""
        if self._snapshot is not None:
            return self._snapshot
        return open_snapshot(store, version=self.version)

    def __reduce__(self) -> tuple[Callable[..., AtVersion], tuple[int]]:
        return AtVersion, (self.version,)


def bytes_of(fragment: Fragment) -> int:
    """Bytes in the data files of a fragment, as far as the manifest says.

    >>> from lancelet.format.fragments import DataFile
    >>> bytes_of(Fragment(0, (DataFile("a", (0,), file_size=7), DataFile("b", (1,)))))
    7
    """
    return sum(item.file_size or 0 for item in fragment.files)


def grouped(fragments: Iterable[Fragment], most: int = TASK_BYTES) -> list[tuple[Fragment, ...]]:
    """Neighbouring fragments together, up to so many bytes or one that has more.

    >>> from lancelet.format.fragments import DataFile
    >>> items = [Fragment(n, (DataFile("a", (0,), file_size=size),)) for n, size in enumerate([3, 3, 9, 1])]
    >>> [[item.id for item in group] for group in grouped(items, most=6)]
    [[0, 1], [2], [3]]
    """
    groups: list[tuple[Fragment, ...]] = []
    current: list[Fragment] = []
    taken = 0
    for item in fragments:
        size = bytes_of(item)
        if current and taken + size > most:
            groups.append(tuple(current))
            current, taken = [], 0
        current.append(item)
        taken += size
    return [*groups, tuple(current)] if current else groups


def selected(snapshot: Snapshot, ids: Sequence[int] | None) -> list[Fragment]:
    """The fragments with some ids, in that order; all where None are named. InvalidInput where there is none."""
    fragments = snapshot.manifest.fragments
    if ids is None:
        return list(fragments)
    found = []
    for number in ids:
        place = fragments.place_of(number)
        if place is None:
            raise InvalidInput(f"there is no fragment {number}", uri=snapshot.uri, version=snapshot.version)
        found.append(fragments[place])
    return found
