"""Blobs of a dataset: lazily as files, many at once, or parts of many."""

from __future__ import annotations

from collections.abc import Sequence

from lancelet.dataset.blob_rows import BlobRows, blob_rows, read_ranges
from lancelet.dataset.core import DatasetCore
from lancelet.dataset.takes import checked_numbers
from lancelet.errors import InvalidInput
from lancelet.file.blob_file import DEFAULT_BLOB_BUFFER_SIZE, BlobFile
from lancelet.query.take import Numbers, RowsBy

__all__ = ["DatasetBlobs"]

_SELECTORS = {"ids": RowsBy.ID, "addresses": RowsBy.ADDRESS, "indices": RowsBy.OFFSET}


class DatasetBlobs(DatasetCore):
    """What reads blobs."""

    def take_blobs(
        self,
        blob_column: str,
        ids: Numbers | None = None,
        addresses: Numbers | None = None,
        indices: Numbers | None = None,
        *,
        buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE,
    ) -> list[BlobFile | None]:
        """The blobs of some rows as files that are read when they are used, None for nulls, in the order asked.

        Rows are given by their ids, by their addresses, or by their numbers.

        >>> import lancelet, pyarrow as pa
        >>> table = pa.table({"b": lancelet.blob_array([b"hello", None])}, schema=pa.schema([lancelet.blob_field("b")]))
        >>> dataset = lancelet.write_dataset(table, "memory://blobs")
        >>> [file and file.read() for file in dataset.take_blobs("b", indices=[1, 0])]
        [None, b'hello']
        """
        if isinstance(buffer_size, bool) or not isinstance(buffer_size, int):
            raise TypeError(f"buffer_size must be an int, got {type(buffer_size).__name__}")
        if buffer_size < 0:
            raise InvalidInput(f"buffer_size is {buffer_size}, expected at least 0")
        return self._selected(blob_column, ids, addresses, indices).open(buffer_size)

    def read_blobs(
        self,
        blob_column: str,
        ids: Numbers | None = None,
        addresses: Numbers | None = None,
        indices: Numbers | None = None,
        *,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, bytes | None]]:
        """The row address and the bytes of the blob of each row, None for nulls, in the order asked.

        About ``io_buffer_size`` bytes are fetched together.

        >>> import lancelet, pyarrow as pa
        >>> table = pa.table({"b": lancelet.blob_array([b"hello", None])}, schema=pa.schema([lancelet.blob_field("b")]))
        >>> lancelet.write_dataset(table, "memory://blob-bytes").read_blobs("b", indices=[1, 0])
        [(1, None), (0, b'hello')]
        """
        _check_window(io_buffer_size)
        rows = self._selected(blob_column, ids, addresses, indices)
        values: list[bytes | None] = [None] * len(rows.addresses)
        for row, value in rows.read(io_buffer_size):
            values[row] = value
        return list(zip(rows.addresses.tolist(), values, strict=True))

    def read_blob_ranges(
        self,
        blob_column: str,
        requests: Sequence[tuple[int, int, int]],
        *,
        selector: str,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, int, bytes | None]]:
        """Parts of blobs: each request is a row, an offset in its blob and a length; rows as ``selector`` says.

        Returns the number of the request, the row's address, and the bytes, None where the blob is null.

        >>> import lancelet, pyarrow as pa
        >>> table = pa.table({"b": lancelet.blob_array([b"hello", None])}, schema=pa.schema([lancelet.blob_field("b")]))
        >>> lancelet.write_dataset(table, "memory://blob-ranges").read_blob_ranges("b", [(0, 1, 3)], selector="indices")
        [(0, 0, b'ell')]
        """
        by = _SELECTORS.get(selector)
        if by is None:
            raise InvalidInput(f"selector is {selector!r}, expected one of {', '.join(map(repr, _SELECTORS))}")
        _check_window(io_buffer_size)
        asked = list(requests)
        rows = blob_rows(self, blob_column, [row for row, _, _ in asked], by)
        found = read_ranges(rows.locations(), [(offset, length) for _, offset, length in asked])
        return list(zip(range(len(asked)), rows.addresses.tolist(), found, strict=True))

    def _selected(
        self, column: str, ids: Numbers | None, addresses: Numbers | None, indices: Numbers | None
    ) -> BlobRows:
        given = {"ids": ids, "addresses": addresses, "indices": indices}
        chosen = [(name, value) for name, value in given.items() if value is not None]
        if len(chosen) != 1:
            found = ", ".join(name for name, _ in chosen) or "none"
            raise InvalidInput(f"expected exactly one of ids, addresses and indices, {found} given")
        name, rows = chosen[0]
        return blob_rows(self, column, checked_numbers(rows), _SELECTORS[name])


def _check_window(size: int | None) -> None:
    if size is not None and size < 1:
        raise InvalidInput(f"io_buffer_size is {size}, expected at least 1")
