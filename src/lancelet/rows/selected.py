"""From what is known of row ids to rows of a fragment: which offsets a mask over stable row ids selects."""

from __future__ import annotations

import numpy as np

from lancelet.rows.addresses import UInt32s, offsets_of
from lancelet.rows.masks import SelectionMask
from lancelet.rows.row_id_index import RowIdIndex, build_row_id_index
from lancelet.rows.row_sets import RowSet
from lancelet.rows.sequences import RowIdSequence

__all__ = ["selected_offsets", "to_addresses"]


def selected_offsets(mask: SelectionMask, sequence: RowIdSequence) -> UInt32s:
    """The physical offsets, ascending, of the rows for whose ids the mask is true. Deleted rows are among them.

    >>> mask = SelectionMask(RowSet.of([7, 9, 50]))
    >>> selected_offsets(mask, RowIdSequence.from_ids([9, 8, 7])).tolist()
    [0, 2]
    """
    if not len(sequence):
        return np.empty(0, np.uint32)
    reach = RowSet.of_range(int(sequence.firsts.min()), int(sequence.lasts.max()) + 1)
    found = offsets_of(build_row_id_index([(0, sequence, None)]).find(_listed(mask, reach).to_values())[0])
    if not mask.inverted:
        return np.sort(found)
    kept = np.ones(len(sequence), np.bool_)
    kept[found] = False
    return np.flatnonzero(kept).astype(np.uint32)


def _listed(mask: SelectionMask, reach: RowSet) -> RowSet:
    """The rows that an inverted mask excludes, or that another selects, as far as the ids reach."""
    return ((mask.listed | mask.nulls) if mask.inverted else mask.listed) & reach


def to_addresses(rows: RowSet, index: RowIdIndex) -> RowSet:
    """The addresses of a set of row ids; ids that no live row has are passed over.

    >>> index = build_row_id_index([(2, RowIdSequence.from_range(5, 8), None)])
    >>> to_addresses(RowSet.of([6, 100]), index) == RowSet.of([2 * 2**32 + 1])
    True
    """
    return RowSet.of(index.find(rows.to_values())[0])
