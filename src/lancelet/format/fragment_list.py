"""The fragments of one version, however many: described one by one only when asked for, counted all at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import eq
from typing import NamedTuple, overload

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from lancelet.errors import Corrupt
from lancelet.format.fragments import Fragment, fragment_message, read_fragment
from lancelet.format.preserve import unknown_of
from lancelet.format.protos import table_pb2 as wire
from lancelet.format.wire import parse_message, write_message

__all__ = ["Fragments"]


class _Counts(NamedTuple):
    """What the fragments say about their rows: numbers by place, and the places that have a deletion file."""

    physical: NDArray[np.uint64]
    deleted: NDArray[np.uint64]
    with_deletions: list[int]


class Fragments(Sequence[Fragment]):
    """An immutable list of fragments, in the order of the manifest.

    What was read stays as it was read until it is looked at, and is written again unchanged, with whatever newer
    writers put in it. Looking at an item makes a new :class:`Fragment` each time.

    >>> several = Fragments([Fragment(0, physical_rows=5), Fragment(7, physical_rows=8)])
    >>> several.ids().tolist(), several.physical_rows().tolist(), several[1].id
    ([0, 7], [5, 8], 7)
    >>> several.changed({0: None, 7: Fragment(7, physical_rows=9)}, added=[Fragment(8)]).ids().tolist()
    [7, 8]
    """

    __slots__ = ("_counts", "_holder", "_ids", "_messages")

    # What protobuf parsed, as it is: a Python object for each of 100,000 fragments costs more than parsing them.
    _holder: wire.Manifest

    def __init__(self, fragments: Iterable[Fragment] = ()) -> None:
        self._hold(wire.Manifest(fragments=map(fragment_message, fragments)))

    def _hold(self, holder: wire.Manifest) -> None:
        self._holder = holder
        self._messages: Sequence[wire.Fragment] = holder.fragments
        self._ids: NDArray[np.uint64] | None = None
        self._counts: _Counts | None = None

    @staticmethod
    def of_message(message: wire.Manifest) -> Fragments:
        """The fragments of what was read, unconverted. The message is taken over, its other fields are cleared."""
        general: Message = message
        for descriptor, _ in general.ListFields():
            if descriptor.name != "fragments":
                general.ClearField(descriptor.name)
        made = Fragments.__new__(Fragments)
        made._hold(wire.Manifest(fragments=message.fragments) if unknown_of(message) else message)
        return made

    def message(self) -> wire.Manifest:
        """A new message with these fragments and nothing else."""
        # One call for all of them: to hand them over one by one takes four times as long.
        copy = wire.Manifest()
        copy.CopyFrom(self._holder)
        return copy

    def serialized(self) -> bytes:
        """The bytes of such a message, made without a copy of it."""
        return write_message(self._holder)

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, place: int) -> Fragment: ...

    @overload
    def __getitem__(self, place: slice) -> Fragments: ...

    def __getitem__(self, place: int | slice) -> Fragment | Fragments:
        if isinstance(place, slice):
            return Fragments.of_message(wire.Manifest(fragments=self._messages[place]))
        return read_fragment(self._messages[place])

    def __iter__(self) -> Iterator[Fragment]:
        return map(read_fragment, self._messages)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fragments):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self._messages, other._messages))

    def __hash__(self) -> int:
        return hash(self.ids().tobytes())

    def __repr__(self) -> str:
        return f"Fragments({len(self)})"

    def __reduce__(self) -> tuple[Callable[[bytes], Fragments], tuple[bytes]]:
        return _unpickled, (self._holder.SerializeToString(),)

    def ids(self) -> NDArray[np.uint64]:
        """The id of each fragment."""
        if self._ids is None:
            self._ids = np.fromiter((item.id for item in self._messages), np.uint64, len(self))
            self._ids.flags.writeable = False
        return self._ids

    def physical_rows(self) -> NDArray[np.int64]:
        """Rows in the files of each fragment; 0 where the writer did not say."""
        return _checked(self._counted().physical)

    def deleted_rows(self) -> NDArray[np.int64]:
        """Deleted rows of each fragment; 0 also where a deletion file does not say (see :meth:`without_counts`)."""
        return _checked(self._counted().deleted)

    def without_counts(self) -> list[int]:
        """Places of the fragments that do not say how many rows they have, or how many of them are deleted."""
        counts = self._counted()
        without = counts.physical == 0
        without[counts.with_deletions] |= counts.deleted[counts.with_deletions] == 0
        places: list[int] = np.flatnonzero(without).tolist()
        return places

    def with_deletions(self) -> list[int]:
        """Places of the fragments with a deletion file."""
        if self._counts is not None:
            return self._counts.with_deletions.copy()
        return [place for place, item in enumerate(self._messages) if item.HasField("deletion_file")]

    def _counted(self) -> _Counts:
        """All counts by one walk: what takes time is the object that protobuf makes of each fragment it shows."""
        if self._counts is None:
            physical: list[int] = []
            deleted: dict[int, int] = {}
            for place, item in enumerate(self._messages):
                physical.append(item.physical_rows)
                if item.HasField("deletion_file"):
                    deleted[place] = item.deletion_file.num_deleted_rows
            with_deletions = list(deleted)
            counts = np.zeros(len(physical), np.uint64)
            counts[with_deletions] = np.fromiter(deleted.values(), np.uint64, len(deleted))
            self._counts = _Counts(np.array(physical, np.uint64), counts, with_deletions)
        return self._counts

    def num_data_files(self) -> int:
        """Data files of all fragments together."""
        return sum(len(item.files) for item in self._messages)

    def versions(self) -> set[tuple[int, int]]:
        """The version numbers of all data files, each once."""
        return {(file.file_major_version, file.file_minor_version) for item in self._messages for file in item.files}

    def row_ids_known(self) -> tuple[bool, bool]:
        """Whether any fragment, and whether every fragment, says which stable ids its rows have."""
        found = [item.HasField("inline_row_ids") or item.HasField("column_row_ids") for item in self._messages]
        return any(found), all(found)

    def spilled(self) -> bool:
        """Whether any fragment keeps row ids or versions in columns of data files."""
        return any(
            item.HasField("column_row_ids")
            or item.HasField("column_created_at_versions")
            or item.HasField("column_last_updated_at_versions")
            for item in self._messages
        )

    def overlaid(self) -> bool:
        """Whether any fragment has overlays."""
        return any(item.overlays for item in self._messages)

    def place_of(self, fragment_id: int) -> int | None:
        """Where the fragment with an id stands, or None."""
        if not 0 <= fragment_id < 1 << 64:
            return None
        ids, wanted = self.ids(), np.uint64(fragment_id)
        # Mostly they are in order.
        place = int(np.searchsorted(ids, wanted))
        if place < len(ids) and ids[place] == wanted and (place == 0 or ids[place - 1] < wanted):
            return place
        found = np.flatnonzero(ids == wanted)
        return int(found[0]) if len(found) else None

    def changed(self, changes: Mapping[int, Fragment | None], *, added: Iterable[Fragment] = ()) -> Fragments:
        """A copy in which fragments are replaced or, for None, left out by their ids, with others put at the end."""
        message = self.message()
        copy = message.fragments
        for place in self._places_of(changes):
            new = changes[copy[place].id]
            if new is None:
                del copy[place]
            else:
                copy[place].CopyFrom(fragment_message(new))
        copy.extend(fragment_message(item) for item in added)
        return Fragments.of_message(message)

    def _places_of(self, ids: Collection[int]) -> list[int]:
        """Where the fragments with some ids stand, the last first."""
        if not ids:
            return []
        places: list[int] = np.flatnonzero(np.isin(self.ids(), np.fromiter(ids, np.uint64, len(ids)))).tolist()
        return places[::-1]


def _checked(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    # Rows are addressed by 32 bits, so larger counts are no counts.
    if len(values) and values.max() > 1 << 32:
        raise Corrupt(f"a fragment counts {values.max()} rows, expected at most {1 << 32}")
    return values.astype(np.int64)


def _unpickled(data: bytes) -> Fragments:
    return Fragments.of_message(parse_message(wire.Manifest, data, "list of fragments"))
