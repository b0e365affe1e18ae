"""Equality of nested values: lists, structs and maps are taken apart into columns that Arrow compares."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import Unsupported
from lancelet.expr.bits import marked, true_where
from lancelet.expr.list_building import item_places, segments_all
from lancelet.expr.types import is_list
from lancelet.expr.vectors import from_numpy, list_spans, valid_in_all

__all__ = ["alike"]


def alike(left: pa.Array, right: pa.Array, *, nulls: bool = True) -> pa.BooleanArray:
    """Whether values of one type are the same, row by row; two nulls are, and within nested values always.

    With ``nulls`` false the result is null where either side is.

    >>> alike(pa.array([[1, None], None]), pa.array([[1, None], [2]])).to_pylist()
    [True, False]
    """
    if nulls:
        same = _same(left, right)
        one, two = np.asarray(left.is_null()), np.asarray(right.is_null())
        return marked((true_where(same, len(left)) & ~one & ~two) | (one & two))
    valid = valid_in_all(left, right)
    return from_numpy(true_where(_same(left, right), len(left)), pa.bool_(), valid)


def _same(left: pa.Array, right: pa.Array) -> pa.BooleanArray:
    """Equality that may say anything where either side is null."""
    kind = left.type
    if pat.is_null(kind):
        return marked(np.zeros(len(left), bool))
    if is_list(kind) or pat.is_map(kind):
        return _same_lists(left, right)
    if pat.is_struct(kind):
        same = np.ones(len(left), bool)
        for place in range(kind.num_fields):
            same &= true_where(alike(pc.struct_field(left, [place]), pc.struct_field(right, [place])), len(left))
        return marked(same)
    if pat.is_dictionary(kind):
        return _same(left.dictionary_decode(), right.dictionary_decode())
    if pat.is_floating(kind):
        if pat.is_float16(kind):
            left, right = left.cast(pa.float32()), right.cast(pa.float32())
        return pc.or_(pc.equal(left, right), pc.and_(pc.is_nan(left), pc.is_nan(right)))
    try:
        return pc.equal(left, right)
    except pa.ArrowNotImplementedError:
        raise Unsupported(f"values of {kind} are compared, which Arrow cannot") from None


def _same_lists(left: pa.Array, right: pa.Array) -> pa.BooleanArray:
    one_starts, one_lengths, one_items = list_spans(left)
    two_starts, two_lengths, two_items = list_spans(right)
    same = one_lengths == two_lengths
    lengths = np.where(same, one_lengths, 0)
    if lengths.any():
        one = one_items.take(pa.array(item_places(one_starts, lengths)))
        two = two_items.take(pa.array(item_places(two_starts, lengths)))
        same &= segments_all(true_where(alike(one, two), len(one)), lengths)
    return marked(same)
