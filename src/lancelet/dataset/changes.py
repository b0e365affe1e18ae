"""Changes of a dataset's rows."""

from __future__ import annotations

from lancelet.dataset.core import DatasetCore
from lancelet.dataset.writing import WriteRequest, write_rows
from lancelet.types import ReaderLike

__all__ = ["DatasetChanges"]


class DatasetChanges(DatasetCore):
    """What changes rows. Each change is a commit, at whose version the dataset is then."""

    def insert(self, data: ReaderLike, *, mode: str = "append", **kwargs: object) -> None:
        """Write rows into the table: behind those there are, or instead of them (``mode="overwrite"``).

        The options are those of ``write_dataset``.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://inserted")
        >>> dataset.insert(pa.table({"x": [3]}))
        >>> dataset.version, dataset.count_rows()
        (2, 3)
        """
        request = WriteRequest(mode=mode, **kwargs)  # type: ignore[arg-type]
        self._go_to(write_rows(data, self, request)[1])
