"""Operations: what a commit can do to a table, one frozen dataclass for each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from uuid import UUID

from lancelet.format.fields import Schema
from lancelet.format.fragments import DataFile, Fragment
from lancelet.format.indexes import IndexDetails, IndexFile, IndexMetadata
from lancelet.format.manifest import BasePath

__all__ = [
    "Append",
    "BloomKeys",
    "Clone",
    "CreateIndex",
    "DataOverlay",
    "DataOverlayGroup",
    "DataReplacement",
    "DataReplacementGroup",
    "Delete",
    "ExactKeys",
    "KeyFilter",
    "MapUpdate",
    "Merge",
    "Operation",
    "Overwrite",
    "Project",
    "ReserveFragments",
    "Restore",
    "Rewrite",
    "RewriteGroup",
    "RewrittenIndex",
    "Unknown",
    "Update",
    "UpdateBases",
    "UpdateConfig",
    "UpdateMemWalState",
    "UpdateMode",
]


@dataclass(frozen=True, slots=True)
class Append:
    """New rows. The fragments have no ids yet."""

    fragments: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Rows marked as deleted in ``updated_fragments``, and fragments gone as a whole."""

    updated_fragments: tuple[Fragment, ...] = ()
    deleted_fragment_ids: tuple[int, ...] = ()
    #: What was asked, as text; nobody carries it out again.
    predicate: str = ""


@dataclass(frozen=True, slots=True)
class Overwrite:
    """The table made, or made anew. The fragments have no ids yet."""

    fragments: tuple[Fragment, ...]
    schema: Schema
    config: Mapping[str, str] = field(default_factory=dict, hash=False)
    initial_bases: tuple[BasePath, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """Index segments put in and taken out; dropping an index only takes out."""

    new_indexes: tuple[IndexMetadata, ...] = ()
    removed_indexes: tuple[IndexMetadata, ...] = ()


@dataclass(frozen=True, slots=True)
class RewriteGroup:
    """Old fragments whose rows now lie in the new ones, which have reserved ids."""

    old_fragments: tuple[Fragment, ...]
    new_fragments: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class RewrittenIndex:
    """An index segment that was rewritten along with its rows."""

    old_id: UUID
    new_id: UUID
    details: IndexDetails | None = None
    index_version: int = 0
    files: tuple[IndexFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Rows laid out anew without any change to them."""

    groups: tuple[RewriteGroup, ...]
    rewritten_indexes: tuple[RewrittenIndex, ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """Columns put in: all fragments, and the schema, as they are afterwards."""

    fragments: tuple[Fragment, ...]
    schema: Schema
    #: Whether rows written under the old schema are surely right under the new one.
    preserves_nullability: bool = False


@dataclass(frozen=True, slots=True)
class Restore:
    """An earlier version made the newest."""

    version: int


@dataclass(frozen=True, slots=True)
class ReserveFragments:
    """So many fragment ids set aside for a rewrite to come."""

    num_fragments: int


class UpdateMode(IntEnum):
    """How rows were updated: moved to new fragments, or given new columns in place."""

    REWRITE_ROWS = 0
    REWRITE_COLUMNS = 1


@dataclass(frozen=True, slots=True)
class ExactKeys:
    """Hashes of all keys inserted."""

    key_hashes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BloomKeys:
    """A Bloom filter of the keys inserted. Filters of unlike size or probability cannot be compared."""

    bitmap: bytes
    num_bits: int
    number_of_items: int
    probability: float


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """Which primary keys a merge inserted, so that two merges that insert the same one notice."""

    field_ids: tuple[int, ...]
    keys: ExactKeys | BloomKeys | None


@dataclass(frozen=True, slots=True)
class Update:
    """Rows changed: removed from old fragments, put in new ones, or given new columns."""

    removed_fragment_ids: tuple[int, ...] = ()
    updated_fragments: tuple[Fragment, ...] = ()
    new_fragments: tuple[Fragment, ...] = ()
    fields_modified: tuple[int, ...] = ()
    #: Indexes over none of these fields go on covering the rows that moved.
    fields_for_preserving_frag_bitmap: tuple[int, ...] = ()
    mode: UpdateMode = UpdateMode.REWRITE_ROWS
    inserted_rows: KeyFilter | None = None
    #: Rows with new columns, by fragment: Roaring bitmaps, or lists as earlier writers stored them.
    updated_offset_bitmaps: Mapping[int, bytes] = field(default_factory=dict, hash=False)
    updated_offsets: Mapping[int, tuple[int, ...]] = field(default_factory=dict, hash=False)
    #: Carried along unread.
    compacted_sstables: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Project:
    """Columns left out, renamed or reordered: the schema afterwards. Its metadata stays the table's."""

    schema: Schema
    preserves_nullability: bool = False


@dataclass(frozen=True, slots=True)
class MapUpdate:
    """Changes of a mapping: None removes a key; ``replace`` drops all other keys."""

    entries: tuple[tuple[str, str | None], ...] = ()
    replace: bool = False

    def applied(self, values: Mapping[str, str]) -> dict[str, str]:
        """The mapping after the changes.

        >>> MapUpdate((("a", None), ("b", "2"))).applied({"a": "1"})
        {'b': '2'}
        """
        result = {} if self.replace else dict(values)
        for key, value in self.entries:
            if value is None:
                result.pop(key, None)
            else:
                result[key] = value
        return result


@dataclass(frozen=True, slots=True)
class UpdateConfig:
    """Changes of the table's config and metadata, its schema's, and its fields' (by field id); None where none."""

    config: MapUpdate | None = None
    table_metadata: MapUpdate | None = None
    schema_metadata: MapUpdate | None = None
    field_metadata: Mapping[int, MapUpdate] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class DataReplacementGroup:
    """The new data file of a fragment, for the fields of one that it has."""

    fragment_id: int
    new_file: DataFile


@dataclass(frozen=True, slots=True)
class DataReplacement:
    """Whole columns of fragments replaced."""

    replacements: tuple[DataReplacementGroup, ...]


@dataclass(frozen=True, slots=True)
class UpdateMemWalState:
    """Progress in a write-ahead log, carried along unread."""

    compacted_sstables: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Clone:
    """The first commit of a table or branch made from another."""

    is_shallow: bool
    ref_version: int
    ref_path: str
    ref_name: str | None = None
    branch_name: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateBases:
    """Base paths added. They may have id 0, and are numbered when they are committed."""

    new_bases: tuple[BasePath, ...]


@dataclass(frozen=True, slots=True)
class DataOverlayGroup:
    """Overlays added to a fragment, unread."""

    fragment_id: int
    overlays: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class DataOverlay:
    """Overlays added to fragments."""

    groups: tuple[DataOverlayGroup, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """An operation that this release does not know: it conflicts with everything.

    ``number`` is that of its field in the transaction, ``raw`` the field as it was stored.
    """

    number: int
    raw: bytes = b""


Operation = (
    Append
    | Delete
    | Overwrite
    | CreateIndex
    | Rewrite
    | Merge
    | Restore
    | ReserveFragments
    | Update
    | Project
    | UpdateConfig
    | DataReplacement
    | UpdateMemWalState
    | Clone
    | UpdateBases
    | DataOverlay
    | Unknown
)
