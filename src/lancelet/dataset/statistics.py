"""Statistics of a dataset: rows and fragments, bytes of each field, and of its indexes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from lancelet.file.data_file import DataFile as OpenFile
from lancelet.file.metadata import statistics
from lancelet.format.fragments import DataFile
from lancelet.format.versions import FileVersion
from lancelet.ops.index.statistics import IndexStatistics, index_statistics
from lancelet.query.files import open_data_file
from lancelet.table.parallel import in_order

if TYPE_CHECKING:
    from lancelet.dataset.core import DatasetCore

__all__ = ["DataStatistics", "DatasetStats", "FieldStatistics", "LanceStats"]


class DatasetStats(TypedDict):
    """Deleted rows that files still hold, fragments, and those of them that have few rows."""

    num_deleted_rows: int
    num_fragments: int
    num_small_files: int


@dataclass
class FieldStatistics:
    """Bytes that a field takes in data files."""

    id: int
    bytes_on_disk: int


@dataclass
class DataStatistics:
    """One entry for each field, nested ones too."""

    fields: list[FieldStatistics]


class LanceStats:
    """What a dataset can be asked about itself: ``dataset.stats``.

    >>> import lancelet, pyarrow as pa
    >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://stats")
    >>> dataset.stats.dataset_stats()["num_fragments"]
    1
    """

    def __init__(self, dataset: DatasetCore) -> None:
        self._dataset = dataset

    def dataset_stats(self, max_rows_per_group: int = 1024) -> DatasetStats:
        """Counts of rows and fragments; a fragment is small with fewer rows than ``max_rows_per_group``."""
        fragments = self._dataset.snapshot.manifest.fragments
        return DatasetStats(
            num_deleted_rows=int(fragments.deleted_rows().sum()),
            num_fragments=len(fragments),
            num_small_files=int((fragments.physical_rows() < max_rows_per_group).sum()),
        )

    def index_stats(self, index_name: str) -> IndexStatistics:
        """Figures of an index: of each segment, and how much of the table they cover. NotFound if there is none.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://index-stats")
        >>> dataset.create_scalar_index("x", "BTREE")
        >>> dataset.stats.index_stats("x_idx")["indices"]
        [{'min': '1', 'max': '2', 'num_pages': 1}]
        """
        return index_statistics(self._dataset.snapshot, self._dataset.places, index_name)

    def data_stats(self) -> DataStatistics:
        """Bytes of each field, as the metadata of all data files tells. Files of version 0.1 do not."""
        snapshot, places = self._dataset.snapshot, self._dataset.places
        files = [file for item in snapshot.manifest.fragments for file in item.files]
        found: Counter[int] = Counter()

        def sizes(item: DataFile) -> Counter[int]:
            if item.version is FileVersion.V0_1:
                return Counter()
            file = open_data_file(places, item, snapshot.schema)
            assert isinstance(file, OpenFile)
            columns = statistics(file).columns
            pairs = zip(item.fields, item.column_indices, strict=True)
            return Counter({number: columns[column].size_bytes for number, column in pairs if column >= 0})

        for counted in in_order(sizes, files, concurrency=self._dataset.location.options.io_concurrency):
            found.update(counted)
        return DataStatistics([FieldStatistics(item.id, found[item.id]) for item in snapshot.schema.walk()])
