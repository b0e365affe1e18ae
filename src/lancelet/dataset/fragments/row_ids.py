"""RowIdSequence: the stable ids of a fragment's rows, for those who put transactions together themselves."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from lancelet.dataset.fragments.lineage import RowIdMeta
from lancelet.errors import InvalidInput, Unsupported
from lancelet.rows.segments import read_sequence, write_sequence
from lancelet.rows.sequences import RowIdSequence as Ids

__all__ = ["RowIdSequence"]

_SHOWN = 10


class RowIdSequence:
    """The ids that rows which move to a fragment have already, in the order of its rows.

    There may be fewer than the fragment has rows: those behind get new ids when the fragment is committed. Nobody
    checks that no other row of the table has the same ids, so take only ids of rows that the same commit removes.

    >>> RowIdSequence([7, 12]).to_inline_metadata().json()
    '{"Inline":[10,9,26,7,8,7,16,13,26,1,33]}'
    """

    __slots__ = ("_ids",)

    def __init__(self, row_ids: range | pa.Array | pa.ChunkedArray | Iterable[int]) -> None:
        self._ids = _ids(row_ids)
        values = self._ids.to_ids() if len(self._ids.ends) > 1 else np.empty(0, np.uint64)
        found, counts = np.unique(values, return_counts=True)
        if bool((counts > 1).any()):
            twice = int(found[int(np.argmax(counts > 1))])
            raise InvalidInput(f"row id {twice} appears more than once among {len(self._ids)}, expected it once")

    @staticmethod
    def from_inline_metadata(metadata: RowIdMeta) -> RowIdSequence:
        """The ids that a fragment's metadata holds; Unsupported where a column of a data file holds them."""
        if metadata.inline is None:
            raise Unsupported("the fragment's row ids are in a column of a data file", hint="scan its _rowid column")
        return RowIdSequence._of(read_sequence(metadata.inline))

    @classmethod
    def _of(cls, ids: Ids) -> RowIdSequence:
        made = cls.__new__(cls)
        made._ids = ids
        return made

    def to_inline_metadata(self) -> RowIdMeta:
        """The ids as a fragment's metadata holds them."""
        return RowIdMeta(write_sequence(self._ids))

    def to_pyarrow(self) -> pa.UInt64Array:
        """The ids in order."""
        return pa.array(self._ids.to_ids())

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids.to_ids().tolist())

    def __eq__(self, other: object) -> bool:
        return self._ids == other._ids if isinstance(other, RowIdSequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._ids)

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self._ids.slice(0, _SHOWN).to_ids().tolist()))
        return f"RowIdSequence([{shown}{', ...' if len(self) > _SHOWN else ''}])"

    def __reduce__(self) -> tuple[object, ...]:
        return RowIdSequence.from_inline_metadata, (self.to_inline_metadata(),)


def _ids(row_ids: range | pa.Array | pa.ChunkedArray | Iterable[int]) -> Ids:
    if isinstance(row_ids, range) and row_ids.step == 1 and row_ids.start >= 0:
        return Ids.from_range(row_ids.start, max(row_ids.start, row_ids.stop))
    if isinstance(row_ids, pa.Array | pa.ChunkedArray):
        if row_ids.null_count:
            raise InvalidInput(f"{row_ids.null_count} of {len(row_ids)} row ids are null")
        if not pa.types.is_integer(row_ids.type):
            raise TypeError(f"row ids are integers, not {row_ids.type}")
        return Ids.from_ids(np.asarray(row_ids))
    numbers = [operator.index(item) for item in row_ids]
    if numbers and not 0 <= min(numbers) <= max(numbers) < 2**64:
        raise OverflowError(f"row id {min(numbers) if min(numbers) < 0 else max(numbers)} does not fit 64 bits")
    return Ids.from_ids(np.array(numbers, np.uint64))
