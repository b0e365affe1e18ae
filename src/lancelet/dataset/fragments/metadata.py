"""Fragments as users pass them between processes: plain objects, to and from JSON in the reference's form."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lancelet.dataset.fragments.deletion_file import DeletionFile
from lancelet.dataset.fragments.lineage import RowDatasetVersionMeta, RowIdMeta
from lancelet.errors import InvalidInput
from lancelet.format.fragments import Fragment

if TYPE_CHECKING:
    from lancelet.dataset.lance_dataset import LanceDataset
    from lancelet.dataset.operation import LanceOperation

__all__ = ["DataFile", "FragmentMetadata"]


class _Path(str):
    """A path; calling it, as users of old did, gives it back."""

    __slots__ = ()

    def __call__(self) -> str:
        warnings.warn("DataFile.path() is deprecated, use DataFile.path", DeprecationWarning, stacklevel=2)
        return str(self)

    def __reduce__(self) -> tuple[object, ...]:
        return str, (str(self),)


@dataclass(init=False)
class DataFile:
    """A data file of a fragment: ``fields[i]`` is the id of the field in column ``column_indices[i]``.

    >>> DataFile("a.lance", [0, 1], [0, 1], 2, 2).path
    'a.lance'
    """

    _path: str
    fields: list[int]
    column_indices: list[int]
    file_major_version: int = 0
    file_minor_version: int = 0
    file_size_bytes: int | None = None
    base_id: int | None = None

    def __init__(
        self,
        path: str,
        fields: list[int],
        column_indices: list[int] | None = None,
        file_major_version: int = 0,
        file_minor_version: int = 0,
        file_size_bytes: int | None = None,
        base_id: int | None = None,
    ) -> None:
        self._path = str(path)
        self.fields = fields
        self.column_indices = column_indices or []
        self.file_major_version = file_major_version
        self.file_minor_version = file_minor_version
        self.file_size_bytes = file_size_bytes
        self.base_id = base_id

    def __repr__(self) -> str:
        names = ("path", "fields", "column_indices", "file_major_version", "file_minor_version", "file_size_bytes")
        return f"DataFile({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    @property
    def path(self) -> str:
        """The file, below the folder of data files or its base path."""
        return _Path(self._path)

    def field_ids(self) -> list[int]:
        """Deprecated: use ``fields``."""
        warnings.warn("DataFile.field_ids is deprecated, use DataFile.fields", DeprecationWarning, stacklevel=2)
        return self.fields

    @classmethod
    def create(cls, dataset: LanceDataset, path: str, *, base_id: int | None = None) -> DataFile:
        """What a manifest says of a data file that lies among those of ``dataset``; its columns are known by name."""
        from lancelet.dataset.fragments.existing import describe_file

        return describe_file(dataset, path, base_id=base_id)[0]

    def to_json(self) -> dict[str, object]:
        """The file as a tree that the json module can write."""
        names = ("fields", "column_indices", "file_major_version", "file_minor_version", "file_size_bytes", "base_id")
        return {**{name: getattr(self, name) for name in names}, "path": self._path}


@dataclass
class FragmentMetadata:
    """What a manifest says of a fragment.

    >>> made = FragmentMetadata(3, [DataFile("a.lance", [0], [0], 2, 2)], physical_rows=10)
    >>> FragmentMetadata.from_json(json.dumps(made.to_json())) == made
    True
    """

    id: int
    files: list[DataFile]
    physical_rows: int
    deletion_file: DeletionFile | None = None
    row_id_meta: RowIdMeta | None = None
    created_at_version_meta: RowDatasetVersionMeta | None = None
    last_updated_at_version_meta: RowDatasetVersionMeta | None = None
    overlays: list[LanceOperation.DataOverlayFile] = field(default_factory=list)
    #: The fragment as it was read: what no attribute tells is carried along.
    _stored: Fragment | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def num_deletions(self) -> int:
        """Rows that are deleted."""
        return 0 if self.deletion_file is None else self.deletion_file.num_deleted_rows or 0

    @property
    def num_rows(self) -> int:
        """Rows that are not deleted."""
        return self.physical_rows - self.num_deletions

    def data_files(self) -> list[DataFile]:
        """Deprecated: use ``files``."""
        warnings.warn("FragmentMetadata.data_files is deprecated, use .files", DeprecationWarning, stacklevel=2)
        return self.files

    def to_json(self) -> dict[str, object]:
        """The fragment as a tree that the json module can write."""
        created, updated = self.created_at_version_meta, self.last_updated_at_version_meta
        return {
            "id": self.id,
            "files": [item.to_json() for item in self.files],
            "overlays": [item.to_json() for item in self.overlays],
            "physical_rows": self.physical_rows,
            "deletion_file": None if self.deletion_file is None else self.deletion_file.asdict(),
            "row_id_meta": None if self.row_id_meta is None else self.row_id_meta.asdict(),
            "created_at_version_meta": None if created is None else created.asdict(),
            "last_updated_at_version_meta": None if updated is None else updated.asdict(),
        }

    @staticmethod
    def from_json(json_data: str) -> FragmentMetadata:
        """The fragment that a JSON text describes. KeyError where it lacks the id, the files or the rows."""
        from lancelet.dataset.operation import LanceOperation

        found = json.loads(json_data)
        if not isinstance(found, Mapping):
            raise InvalidInput(f"a fragment in JSON is {type(found).__name__}, expected an object")
        given = {name: found.get(name) for name in ("deletion_file", "row_id_meta", *_VERSIONS, "overlays")}
        deleted, row_ids, created, updated = (given[name] for name in ("deletion_file", "row_id_meta", *_VERSIONS))
        return FragmentMetadata(
            id=found["id"],
            files=[DataFile(**item) for item in found["files"]],
            physical_rows=found["physical_rows"],
            deletion_file=None if deleted is None else DeletionFile(**deleted),
            row_id_meta=None if row_ids is None else RowIdMeta.from_dict(row_ids),
            created_at_version_meta=None if created is None else RowDatasetVersionMeta.from_dict(created),
            last_updated_at_version_meta=None if updated is None else RowDatasetVersionMeta.from_dict(updated),
            overlays=[LanceOperation.DataOverlayFile.from_json(item) for item in _sequence(given["overlays"])],
        )


_VERSIONS = ("created_at_version_meta", "last_updated_at_version_meta")


def _sequence(value: object) -> Sequence[Mapping[str, object]]:
    return value if isinstance(value, list) else []
