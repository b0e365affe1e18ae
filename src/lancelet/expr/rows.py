"""The rows that an expression is computed for: a batch, or some rows of one, columns taken only when asked for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput

__all__ = ["Rows"]


class Rows:
    """Columns by name.

    >>> some = Rows(pa.record_batch({"x": [1, 2, 3]})).only(np.array([0, 2]))
    >>> some.count, some.column(("x",)).to_pylist()
    (2, [1, 3])
    """

    __slots__ = ("_batch", "_chosen", "_taken", "count")

    def __init__(self, batch: pa.RecordBatch, chosen: npt.NDArray[np.int64] | None = None) -> None:
        self._batch = batch
        self._chosen = chosen
        self._taken: dict[str, pa.Array] = {}
        self.count = batch.num_rows if chosen is None else len(chosen)

    def stored(self, name: str) -> pa.Array:
        """A column as it is stored."""
        place = self._batch.schema.get_field_index(name)
        if place < 0:
            raise InvalidInput(f"the rows have no column {name!r}, or several", column=name)
        array = self._batch.column(place)
        return array if self._chosen is None else array.take(pa.array(self._chosen))

    def column(self, path: tuple[str, ...]) -> pa.Array:
        """A column or a field within structs, null where one of them is; extension types as what they store."""
        array = self._taken.get(path[0])
        if array is None:
            array = self._taken[path[0]] = self.stored(path[0])
        for name in path[1:]:
            array = pc.struct_field(_plain(array), name)
        return _plain(array)

    def only(self, places: npt.NDArray[np.int64]) -> Rows:
        """Some of the rows."""
        return Rows(self._batch, places if self._chosen is None else self._chosen[places])


def _plain(array: pa.Array) -> pa.Array:
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pat.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pat.is_binary_view(array.type) else array
