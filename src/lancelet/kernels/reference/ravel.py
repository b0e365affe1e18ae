"""Structure to repetition and definition levels: the writer's side of ``levels``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import InvalidInput
from lancelet.kernels.layers import Items, Lists, bad_lists, layer_code, structure, wrong_length

__all__ = ["ravel"]

Levels = NDArray[np.uint16]


def ravel(layers: Sequence[Items | Lists]) -> tuple[Levels | None, Levels | None, tuple[int, ...]]:
    """Turn layers, innermost first, into repetition levels, definition levels and the layers' codes.

    Levels that the layers do not call for are None. Offsets start at 0 and lists that are null, or inside a null
    struct, have no entries. What lies in a null struct counts as null itself, as in files of the reference
    implementation, so the codes of a struct's inner layers allow for nulls wherever the struct's does.

    >>> rows = [Items(2, np.array([1], np.uint8)), Lists(np.array([0, 2, 2]))]  # [[x, null], []]
    >>> rep, definition, codes = ravel(rows)
    >>> rep.tolist(), definition.tolist(), codes
    ([1, 0, 1], [0, 1, 2], (3, 5))
    """
    valid: list[NDArray[np.bool_]] = []
    codes = []
    around: NDArray[np.bool_] | None = None
    expected: int | None = None
    for layer in reversed(layers):
        if expected is not None and layer.length != expected:
            raise wrong_length(layer.length, expected)
        mask = _mask(layer) if around is None else _mask(layer) & around
        lengths = _lengths(layer.offsets, mask) if isinstance(layer, Lists) else None
        expected = layer.length if lengths is None else int(lengths.sum())
        valid.append(mask)
        empty = lengths is not None and bool(((lengths == 0) & mask).any())
        codes.append(layer_code(lists=lengths is not None, null=not mask.all(), empty=empty))
        around = mask if lengths is None else None
    return *_levels(layers, valid, tuple(reversed(codes))), tuple(reversed(codes))


def _mask(layer: Items | Lists) -> NDArray[np.bool_]:
    if layer.validity is None or layer.null_count == 0:
        return np.ones(layer.length, dtype=np.bool_)
    end = layer.bit_offset + layer.length
    if end > 8 * len(layer.validity):
        raise InvalidInput(f"validity has {8 * len(layer.validity)} bits, expected {end}")
    return np.unpackbits(layer.validity, count=end, bitorder="little")[layer.bit_offset :].astype(np.bool_)


def _lengths(offsets: NDArray[np.int64] | NDArray[np.int32], mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    wide = offsets.astype(np.int64)
    lengths: NDArray[np.int64] = wide[1:] - wide[:-1]
    if (len(offsets) and offsets[0] != 0) or (lengths < 0).any() or lengths[~mask].any():
        raise bad_lists()
    return lengths


def _levels(
    layers: Sequence[Items | Lists], valid: Sequence[NDArray[np.bool_]], codes: tuple[int, ...]
) -> tuple[Levels | None, Levels | None]:
    """From the outside in: ``open_`` marks the levels that stand for an entry of the layer at hand."""
    shape = structure(codes)
    rep = np.zeros(layers[-1].length, dtype=np.uint16)
    definition = rep.copy()
    open_ = np.ones(len(rep), dtype=np.bool_)
    for k, mask in zip(reversed(range(len(layers))), valid, strict=True):
        layer = layers[k]
        entries = np.flatnonzero(open_)
        fresh = entries[~mask & (definition[entries] == 0)]
        definition[fresh] = shape.below[k] + 1
        if isinstance(layer, Lists):
            lengths = np.diff(layer.offsets.astype(np.int64))
            definition[entries[(lengths == 0) & (definition[entries] == 0)]] = shape.below[k] + (codes[k] == 6) + 1
            rep[entries] = np.where(rep[entries] == 0, shape.depth[k] + 1, rep[entries])
            repeats = np.ones(len(rep), dtype=np.int64)
            repeats[entries] = np.maximum(lengths, 1)
            heads = np.cumsum(repeats) - repeats
            open_[entries] = lengths > 0
            outer_rep, definition, open_ = rep, np.repeat(definition, repeats), np.repeat(open_, repeats)
            rep = np.zeros(len(definition), dtype=np.uint16)
            rep[heads] = outer_rep
    return rep if shape.max_rep else None, definition if shape.max_def else None
