"""LanceOperation and Transaction: what a commit does, as plain objects that users put together and pass around."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from lancelet.bitmap import Bitmap
from lancelet.dataset.base_path import DatasetBasePath
from lancelet.dataset.fragments.metadata import DataFile, FragmentMetadata
from lancelet.format.operations import Operation
from lancelet.schema.lance_schema import LanceSchema

__all__ = ["Index", "IndexFile", "LanceOperation", "Transaction"]


@dataclass
class IndexFile:
    """A file of an index, named below the index's own folder."""

    path: str
    size_bytes: int


@dataclass
class Index:
    """One segment of an index as a manifest lists it. Any set or list of integers does for ``fragment_ids``."""

    uuid: str
    name: str
    fields: list[int]
    dataset_version: int
    fragment_ids: Bitmap
    index_version: int
    created_at: datetime | None = None
    base_id: int | None = None
    files: list[IndexFile] | None = None
    #: Type URL and bytes of the message that only indexes of one kind have.
    index_details: tuple[str, bytes] | None = None
    covering_fields: list[int] = field(default_factory=list)


class LanceOperation:
    """The kinds of operations.

    >>> LanceOperation.Restore(3)
    LanceOperation.Restore(version=3)
    """

    class BaseOperation:
        """An operation; as itself, one that has no class of its own here."""

        #: The operation as it was read: what no attribute tells is carried along.
        _stored: Operation | None = None

    @dataclass
    class Overwrite(BaseOperation):
        """The table made, or made anew."""

        new_schema: LanceSchema | pa.Schema
        fragments: Iterable[FragmentMetadata]
        initial_bases: list[DatasetBasePath] | None = None

        def __post_init__(self) -> None:
            _check_fragments(self.fragments)

    @dataclass
    class Append(BaseOperation):
        """New rows, in fragments that have no ids yet."""

        fragments: Iterable[FragmentMetadata]

        def __post_init__(self) -> None:
            _check_fragments(self.fragments)

    @dataclass
    class Delete(BaseOperation):
        """Rows marked as deleted in ``updated_fragments``, and fragments gone as a whole."""

        updated_fragments: Iterable[FragmentMetadata]
        deleted_fragment_ids: Iterable[int]
        predicate: str

        def __post_init__(self) -> None:
            _check_fragments(self.updated_fragments)

    @dataclass
    class Update(BaseOperation):
        """Rows changed: removed from old fragments, put in new ones, or given new columns."""

        removed_fragment_ids: list[int] = field(default_factory=list)
        updated_fragments: list[FragmentMetadata] = field(default_factory=list)
        new_fragments: list[FragmentMetadata] = field(default_factory=list)
        fields_modified: list[int] = field(default_factory=list)
        fields_for_preserving_frag_bitmap: list[int] = field(default_factory=list)
        #: ``"rewrite_rows"`` or ``"rewrite_columns"``; nothing means the first.
        update_mode: str = ""
        #: Rows that got new columns, by fragment: stored Roaring bitmaps.
        updated_fragment_offsets: dict[int, bytes] | None = None

        def __post_init__(self) -> None:
            _check_fragments(self.updated_fragments)
            _check_fragments(self.new_fragments)

    @dataclass
    class Merge(BaseOperation):
        """Columns put in: all fragments, and the schema, as they are afterwards."""

        fragments: Iterable[FragmentMetadata]
        schema: LanceSchema | pa.Schema
        preserves_nullability: bool = False

        def __post_init__(self) -> None:
            if isinstance(self.schema, pa.Schema):
                text = "a pyarrow.Schema for Merge is deprecated, give a LanceSchema: it says which field has which id"
                warnings.warn(text, DeprecationWarning, stacklevel=3)
            _check_fragments(self.fragments)

    @dataclass
    class Restore(BaseOperation):
        """An earlier version made the newest."""

        version: int

    @dataclass
    class Clone(BaseOperation):
        """The first commit of a table or branch made from another."""

        is_shallow: bool
        ref_name: str | None
        ref_version: int
        ref_path: str
        branch_name: str | None

    @dataclass
    class RewriteGroup:
        """Old fragments whose rows now lie in the new ones, which have reserved ids."""

        old_fragments: Iterable[FragmentMetadata]
        new_fragments: Iterable[FragmentMetadata]

    @dataclass
    class RewrittenIndex:
        """An index segment that was rewritten along with its rows."""

        old_id: str
        new_id: str
        new_details_type_url: str
        new_details_value: bytes
        new_index_version: int

    @dataclass
    class Rewrite(BaseOperation):
        """Rows laid out anew without any change to them."""

        groups: Iterable[LanceOperation.RewriteGroup]
        rewritten_indices: Iterable[LanceOperation.RewrittenIndex]

        def __post_init__(self) -> None:
            for group in self.groups:
                _check_fragments(list(group.old_fragments))
                _check_fragments(list(group.new_fragments))

    @dataclass
    class CreateIndex(BaseOperation):
        """Index segments put in and taken out."""

        new_indices: list[Index]
        removed_indices: list[Index]

    @dataclass
    class DataReplacementGroup:
        """The new data file of a fragment, for fields of one that it has."""

        fragment_id: int
        new_file: DataFile

    @dataclass
    class DataReplacement(BaseOperation):
        """Whole columns of fragments replaced."""

        replacements: list[LanceOperation.DataReplacementGroup]

    @dataclass
    class DataOverlayFile:
        """Values that stand before those of some rows of a fragment, in a file of their own."""

        data_file: DataFile
        offsets: Iterable[int] | list[Iterable[int]]
        committed_version: int | None = None

        def to_json(self) -> dict[str, object]:
            """The overlay as a tree that the json module can write."""
            offsets = [list(item) if isinstance(item, Bitmap) else item for item in self.offsets]
            return {
                "data_file": self.data_file.to_json(),
                "offsets": offsets,
                "committed_version": self.committed_version,
            }

        @staticmethod
        def from_json(tree: Mapping[str, object]) -> LanceOperation.DataOverlayFile:
            """What :meth:`to_json` gave."""
            file = DataFile(**tree["data_file"])  # type: ignore[arg-type]
            return LanceOperation.DataOverlayFile(file, tree["offsets"], tree.get("committed_version"))  # type: ignore[arg-type]

    @dataclass
    class DataOverlayGroup:
        """Overlays added to a fragment."""

        fragment_id: int
        overlays: list[LanceOperation.DataOverlayFile]

    @dataclass
    class DataOverlay(BaseOperation):
        """Overlays added to fragments; known, but not committed: the format calls them unstable."""

        groups: list[LanceOperation.DataOverlayGroup]

    @dataclass
    class Project(BaseOperation):
        """Columns left out, renamed or reordered: the schema afterwards."""

        schema: LanceSchema
        preserves_nullability: bool = False

    @dataclass
    class UpdateMap:
        """Changes of a mapping: None removes a key; ``replace`` drops all keys that are not given."""

        updates: dict[str, str | None]
        replace: bool = False

    @dataclass
    class UpdateConfig(BaseOperation):
        """Changes of the table's config and metadata, its schema's, and its fields' (by field id)."""

        config_updates: LanceOperation.UpdateMap | None = None
        table_metadata_updates: LanceOperation.UpdateMap | None = None
        schema_metadata_updates: LanceOperation.UpdateMap | None = None
        field_metadata_updates: dict[int, LanceOperation.UpdateMap] | None = None

    @dataclass
    class ReserveFragments(BaseOperation):
        """So many fragment ids set aside for a rewrite to come."""

        num_fragments: int

    @dataclass
    class UpdateBases(BaseOperation):
        """Base paths added; their ids are given when it is committed."""

        new_bases: list[DatasetBasePath]


def _check_fragments(fragments: object) -> None:
    if not isinstance(fragments, list):
        raise TypeError(f"fragments must be list[FragmentMetadata], got {type(fragments)}")
    odd = next((item for item in fragments if not isinstance(item, FragmentMetadata)), None)
    if odd is not None:
        raise TypeError(f"fragments must be list[FragmentMetadata], got {type(odd)}")


@dataclass
class Transaction:
    """One commit: an operation, worked out from a version. Committed twice under one ``uuid`` it counts once."""

    read_version: int
    operation: LanceOperation.BaseOperation
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    transaction_properties: dict[str, str] | None = field(default_factory=dict)
