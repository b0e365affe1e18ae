"""The fragment reuse index: where rows went that some index still names by the addresses which they had.

A history stands in the details of the index, or, where it is long, in a file of its folder. Whoever reads an index
follows each row that it names through all moves; rows that were named anew since are where they are named.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID, uuid4

from lancelet.errors import Corrupt, LanceletError
from lancelet.format.fragment_reuse import (
    Digest,
    ReuseFile,
    ReuseGroup,
    ReuseHistory,
    parse_reuse,
    parse_reuse_history,
    write_reuse,
    write_reuse_history,
)
from lancelet.format.indexes import IndexFile, IndexMetadata
from lancelet.format.names import index_folder
from lancelet.rows.bitmaps import BitMap, write_bitmap
from lancelet.rows.moves import Move, Moves, parse_survivors, write_survivors
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Store

__all__ = ["FRAGMENT_REUSE", "group_of", "moves_of", "read_reuse_history", "reuse_index", "reuse_metadata"]

FRAGMENT_REUSE = "__lance_frag_reuse"
#: A longer history goes into a file.
_LONGEST_INLINE = 200 * 1024
_FILE = "details.binpb"


def reuse_index(indexes: Iterable[IndexMetadata]) -> IndexMetadata | None:
    """The fragment reuse index among the indexes of a version."""
    return next((item for item in indexes if item.name == FRAGMENT_REUSE), None)


def read_reuse_history(store: Store, folder: str, metadata: IndexMetadata) -> ReuseHistory:
    """What the index, in its folder of a store, tells. Nothing is read unless the history lies in a file."""
    if metadata.details is None:
        raise Corrupt("the fragment reuse index has no details", uri=store.uri)
    version = metadata.index_version or 0
    found = parse_reuse(metadata.details, version)
    if not isinstance(found, ReuseFile):
        return found
    path = f"{folder}/{found.path}"
    data = store.read(path, [(found.offset, found.size)])[0]
    try:
        return parse_reuse_history(data, version)
    except LanceletError as error:
        raise error.where(uri=join_uri(store.uri, path)) from None


def moves_of(history: ReuseHistory) -> Moves:
    """All moves of a history.

    >>> moves_of(ReuseHistory())
    Moves(0 moves of 0 fragments)
    """
    return Moves(_move(group) for version in history.versions for group in version.groups)


def _move(group: ReuseGroup) -> Move:
    told = [(item.id, item.physical_rows, item.num_deleted_rows) for item in group.old_fragments]
    targets = tuple((item.id, item.physical_rows) for item in group.new_fragments)
    return Move(parse_survivors(group.changed_row_addrs, told), targets)


def group_of(move: Move) -> ReuseGroup:
    """The form of a move in which a history has it."""
    return ReuseGroup(
        write_survivors(move.sources),
        tuple(Digest(item.fragment, item.rows, len(item.deleted)) for item in move.sources),
        tuple(Digest(number, rows) for number, rows in move.targets),
    )


def reuse_metadata(store: Store, history: ReuseHistory, *, version: int, created_at: int) -> IndexMetadata:
    """The index that tells of a history, as of a version of the table; a long one is written to a file first."""
    uuid: UUID = uuid4()
    files: tuple[IndexFile, ...] = ()
    content: ReuseHistory | ReuseFile = history
    data = write_reuse_history(history)
    if len(data) > _LONGEST_INLINE:
        store.put(f"{index_folder(uuid)}/{_FILE}", data)
        content = ReuseFile(_FILE, 0, len(data))
    made = [digest.id for item in history.versions for group in item.groups for digest in group.new_fragments]
    return IndexMetadata(
        uuid=uuid,
        name=FRAGMENT_REUSE,
        fields=(),
        dataset_version=version,
        fragment_bitmap=write_bitmap(BitMap(made)),
        details=write_reuse(content),
        index_version=0,
        created_at=created_at,
        files=files,
    )
