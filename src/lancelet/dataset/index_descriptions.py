"""What users get to see of a table's indexes: descriptions of them and of their segments."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypedDict

from lancelet.bitmap import Bitmap
from lancelet.format.index_details import parse_json_details
from lancelet.format.indexes import IndexMetadata
from lancelet.ops.index.describe import DescribedIndex, indexed_fragments

__all__ = ["IndexDescription", "IndexInformation", "IndexSegment", "IndexSegmentDescription", "described"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class IndexInformation(TypedDict):
    """One segment of an index, as ``list_indices`` has it."""

    name: str
    type: str
    uuid: str
    fields: list[str]
    version: int
    fragment_ids: Bitmap
    base_id: int | None


@dataclass(frozen=True)
class IndexSegment:
    """A segment that was built and not committed yet: its files, what it covers, and the version of its layout."""

    uuid: str
    fragment_ids: Bitmap
    index_version: int


@dataclass(frozen=True)
class IndexSegmentDescription:
    """A segment of an index: a part that was built by itself, with files of its own."""

    uuid: str
    #: The version of the table that the segment knows.
    dataset_version_at_last_update: int
    fragment_ids: Bitmap
    index_version: int
    created_at: datetime | None = None
    #: None where the writer did not say.
    size_bytes: int | None = None
    base_id: int | None = None
    covering_fields: list[int] = field(default_factory=list)


@dataclass(frozen=True, repr=False)
class IndexDescription:
    """An index: its segments share a name, a type and a column."""

    name: str
    type_url: str
    index_type: str
    #: Live rows that the segments cover.
    num_rows_indexed: int
    fields: list[int]
    field_names: list[str]
    segments: list[IndexSegmentDescription]
    #: What only indexes of the type say of themselves; nothing for those of values.
    details: dict[str, object]
    total_size_bytes: int | None = None

    def __repr__(self) -> str:
        size = "" if self.total_size_bytes is None else f", total_size_bytes={self.total_size_bytes}"
        return (
            f"IndexDescription(name={self.name!r}, type_url={self.type_url!r}, "
            f"num_rows_indexed={self.num_rows_indexed}, fields={self.fields}, field_names={self.field_names}, "
            f"num_segments={len(self.segments)}{size})"
        )


def described(index: DescribedIndex) -> IndexDescription:
    """An index as users get to see it."""
    return IndexDescription(
        name=index.name,
        type_url=index.type_url,
        index_type=index.label,
        num_rows_indexed=index.rows,
        fields=list(index.fields),
        field_names=list(index.columns),
        segments=list(map(_segment, index.segments)),
        details=_details(index),
        total_size_bytes=index.size_bytes,
    )


def _details(index: DescribedIndex) -> dict[str, object]:
    """What the first segment says of itself, of the types that say anything."""
    stored = index.segments[0].details
    if stored is None or stored.kind != "JsonIndexDetails":
        return {}
    return {"path": parse_json_details(stored.value).path, "target_details": {}}


def _segment(item: IndexMetadata) -> IndexSegmentDescription:
    made = item.created_at
    return IndexSegmentDescription(
        uuid=str(item.uuid),
        dataset_version_at_last_update=item.dataset_version,
        fragment_ids=Bitmap(indexed_fragments(item)),
        index_version=item.index_version or 0,
        created_at=None if made is None else _EPOCH + timedelta(milliseconds=made),
        size_bytes=sum(file.size_bytes for file in item.files) if item.files else None,
        base_id=item.base_id,
        covering_fields=list(item.covering_fields),
    )
