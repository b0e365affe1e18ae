"""Between fragments as manifests hold them and as users pass them around; what users do not see is carried along."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lancelet.dataset.fragments.deletion_file import DeletionFile
from lancelet.dataset.fragments.lineage import RowDatasetVersionMeta, RowIdMeta
from lancelet.dataset.fragments.metadata import DataFile, FragmentMetadata
from lancelet.errors import Unsupported
from lancelet.format.fragments import DataFile as StoredFile
from lancelet.format.fragments import Fragment

__all__ = ["file_from_stored", "file_to_stored", "from_stored", "to_stored", "to_stored_all"]

_COLUMN = b""


def from_stored(stored: Fragment) -> FragmentMetadata:
    """What users get to see of a fragment.

    >>> from_stored(Fragment(3, (), physical_rows=10)).num_rows
    10
    """
    ids = _inline(stored.inline_row_ids, stored.column_row_ids)
    created = _inline(stored.inline_created_at_versions, stored.column_created_at_versions)
    updated = _inline(stored.inline_last_updated_at_versions, stored.column_last_updated_at_versions)
    deleted = stored.deletion_file
    made = FragmentMetadata(
        id=stored.id,
        files=[file_from_stored(item) for item in stored.files],
        physical_rows=stored.physical_rows or 0,
        deletion_file=None if deleted is None else DeletionFile.from_stored(deleted),
        row_id_meta=None if ids is None else RowIdMeta(*ids),
        created_at_version_meta=None if created is None else RowDatasetVersionMeta(*created),
        last_updated_at_version_meta=None if updated is None else RowDatasetVersionMeta(*updated),
    )
    made._stored = stored
    return made


def to_stored(metadata: FragmentMetadata) -> Fragment:
    """The fragment that a manifest is to hold."""
    if metadata.overlays:
        raise Unsupported("data overlays are not written", fragment=metadata.id)
    kept = metadata._stored or Fragment(metadata.id)
    ids, created = metadata.row_id_meta, metadata.created_at_version_meta
    updated, deleted = metadata.last_updated_at_version_meta, metadata.deletion_file
    known = {(item.path, item.base_id): item for item in kept.files}
    was = kept.deletion_file
    return replace(
        kept,
        id=metadata.id,
        files=tuple(file_to_stored(item, known.get((item.path, item.base_id))) for item in metadata.files),
        physical_rows=metadata.physical_rows or None,
        deletion_file=(
            None if deleted is None
            else was if was is not None and DeletionFile.from_stored(was) == deleted
            else deleted.to_stored()
        ),
        inline_row_ids=None if ids is None else ids.inline,
        column_row_ids=_COLUMN if ids is not None and ids.inline is None else None,
        inline_created_at_versions=None if created is None else created.inline,
        column_created_at_versions=_COLUMN if created is not None and created.inline is None else None,
        inline_last_updated_at_versions=None if updated is None else updated.inline,
        column_last_updated_at_versions=_COLUMN if updated is not None and updated.inline is None else None,
    )  # fmt: skip


def to_stored_all(fragments: Iterable[FragmentMetadata]) -> tuple[Fragment, ...]:
    """The same for several."""
    return tuple(map(to_stored, fragments))


def file_from_stored(stored: StoredFile) -> DataFile:
    """What users get to see of a data file."""
    return DataFile(
        stored.path,
        list(stored.fields),
        list(stored.column_indices),
        stored.file_major_version,
        stored.file_minor_version,
        stored.file_size,
        stored.base_id,
    )


def file_to_stored(item: DataFile, kept: StoredFile | None = None) -> StoredFile:
    """The data file that a manifest is to hold."""
    return StoredFile(
        path=str(item.path),
        fields=tuple(item.fields),
        column_indices=tuple(item.column_indices),
        file_major_version=item.file_major_version,
        file_minor_version=item.file_minor_version,
        file_size=item.file_size_bytes or None,
        base_id=item.base_id,
        unknown=b"" if kept is None else kept.unknown,
    )


def _inline(inline: bytes | None, column: bytes | None) -> tuple[bytes | None] | None:
    """The stored bytes in a tuple, None in it where a column holds the values; None where there are none."""
    if inline is not None:
        return (inline,)
    return None if column is None else (None,)
