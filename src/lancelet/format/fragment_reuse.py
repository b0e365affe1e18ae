"""Fragment reuse: what the index of moved rows says of itself, in its details or in a file of its own."""

from __future__ import annotations

from dataclasses import dataclass

from lancelet.errors import Corrupt, Unsupported
from lancelet.format.indexes import IndexDetails
from lancelet.format.preserve import storable
from lancelet.format.protos import index_details_pb2 as wire
from lancelet.format.wire import parse_message, write_message

__all__ = [
    "REUSE_URL",
    "Digest",
    "ReuseFile",
    "ReuseGroup",
    "ReuseHistory",
    "ReuseVersion",
    "parse_reuse",
    "parse_reuse_history",
    "write_reuse",
    "write_reuse_history",
]

REUSE_URL = "/lance.table.FragmentReuseIndexDetails"
_NEWEST = 1


@dataclass(frozen=True, slots=True)
class Digest:
    """A fragment as it was when its rows were moved."""

    id: int
    physical_rows: int
    num_deleted_rows: int = 0


@dataclass(frozen=True, slots=True)
class ReuseGroup:
    """Rows of some fragments moved, in their order, into others."""

    #: The addresses that the rows had: a stored set of 64-bit numbers.
    changed_row_addrs: bytes
    old_fragments: tuple[Digest, ...]
    new_fragments: tuple[Digest, ...]


@dataclass(frozen=True, slots=True)
class ReuseVersion:
    """What one rewrite moved; 0 where it is not known from which version."""

    dataset_version: int
    groups: tuple[ReuseGroup, ...]


@dataclass(frozen=True, slots=True)
class ReuseHistory:
    """All moves that are still told of, the oldest first."""

    versions: tuple[ReuseVersion, ...] = ()


@dataclass(frozen=True, slots=True)
class ReuseFile:
    """Where a long history lies: a file in the index's own folder, and the bytes of it."""

    path: str
    offset: int
    size: int


def parse_reuse(details: IndexDetails, index_version: int) -> ReuseHistory | ReuseFile:
    """The history that details hold, or the file that does.

    Unsupported where the index is of a newer version than is known.
    """
    check_reuse_version(index_version)
    message = parse_message(wire.FragmentReuse, details.value, "details of the fragment reuse index")
    match message.WhichOneof("content"):
        case "inline":
            return _history(message.inline, index_version)
        case "external":
            return ReuseFile(message.external.path, message.external.offset, message.external.size)
    raise Corrupt("details of the fragment reuse index hold no history and name no file")


def check_reuse_version(index_version: int) -> None:
    """Raise Unsupported where the index is of a newer version than is known."""
    if not 0 <= index_version <= _NEWEST:
        found = f"the fragment reuse index is of version {index_version}"
        raise Unsupported(f"{found}, this release knows {_NEWEST} at most", hint="use a newer release")


def parse_reuse_history(data: bytes | memoryview, index_version: int) -> ReuseHistory:
    """The history that a file holds.

    >>> one = ReuseVersion(7, (ReuseGroup(b"", (Digest(1, 5, 5),), ()),))
    >>> parse_reuse_history(write_reuse_history(ReuseHistory((one,))), 0) == ReuseHistory((one,))
    True
    """
    message = parse_message(wire.ReuseHistory, bytes(data), "history of the fragment reuse index")
    return _history(message, index_version)


def _history(message: wire.ReuseHistory, index_version: int) -> ReuseHistory:
    versions = [
        ReuseVersion(
            item.dataset_version,
            tuple(
                ReuseGroup(group.changed_row_addrs, _digests(group.old_fragments), _digests(group.new_fragments))
                for group in item.groups
            ),
        )
        for item in message.versions
    ]
    if message.transitions and index_version < 1:
        raise Corrupt("the fragment reuse index has transitions, which there are from version 1 on")
    groups = tuple(map(_transition, message.transitions))
    return ReuseHistory((*versions, *((ReuseVersion(0, groups),) if groups else ())))


def _transition(message: wire.ReuseTransition) -> ReuseGroup:
    match message.WhichOneof("mapping"):
        case "ordered_compaction":
            moved = message.ordered_compaction.changed_row_addrs
            return ReuseGroup(moved, _digests(message.sources), _digests(message.destinations))
        case "stable_partition":
            raise Unsupported("the fragment reuse index tells of rows that were moved out of order")
    raise Unsupported("the fragment reuse index tells of a move that this release does not know")


def _digests(items: object) -> tuple[Digest, ...]:
    return tuple(Digest(item.id, item.physical_rows, item.num_deleted_rows) for item in items)  # type: ignore[attr-defined]


def write_reuse_history(history: ReuseHistory) -> bytes:
    """The bytes of a history, as indexes of version 0 have it."""
    with storable("history of the fragment reuse index"):
        message = wire.ReuseHistory()
        for version in history.versions:
            item = message.versions.add(dataset_version=version.dataset_version)
            for group in version.groups:
                made = item.groups.add(changed_row_addrs=group.changed_row_addrs)
                for target, digests in (
                    (made.old_fragments, group.old_fragments),
                    (made.new_fragments, group.new_fragments),
                ):
                    for digest in digests:
                        target.add(
                            id=digest.id,
                            physical_rows=digest.physical_rows,
                            num_deleted_rows=digest.num_deleted_rows,
                        )
    return write_message(message)


def write_reuse(content: ReuseHistory | ReuseFile) -> IndexDetails:
    """The details that hold a history, or name the file that does.

    >>> parse_reuse(write_reuse(ReuseFile("details.binpb", 0, 9)), 0)
    ReuseFile(path='details.binpb', offset=0, size=9)
    """
    message = wire.FragmentReuse()
    if isinstance(content, ReuseFile):
        message.external.path, message.external.offset, message.external.size = (
            content.path,
            content.offset,
            content.size,
        )
    else:
        message.inline.MergeFromString(write_reuse_history(content))
        message.inline.SetInParent()
    return IndexDetails(REUSE_URL, write_message(message))
