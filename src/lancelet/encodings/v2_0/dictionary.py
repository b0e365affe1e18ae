"""Dictionary: indices into items. For string columns index 0 is null and the items begin at 1; an Arrow dictionary
column has its own indices, and its nulls are null items."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from lancelet.encodings.v2_0 import binary, flat
from lancelet.encodings.v2_0.buffers import Decoded, PageBuffers, Pending, Rows, select_bits
from lancelet.encodings.v2_0.spans import Reader
from lancelet.encodings.v2_0.steps import Steps, both
from lancelet.encodings.values import Bytes, Fixed, Variable, from_arrow, to_arrow
from lancelet.errors import Corrupt
from lancelet.format.arrays import Dictionary, NoNulls
from lancelet.kernels import gather

__all__ = ["LARGEST", "distinct", "encode_strings", "read_arrow", "read_strings"]

#: Strings are stored so if they have fewer different values than this, and are no fewer themselves.
LARGEST = 100


def _parts(
    encoding: Dictionary, kinds: tuple[pa.DataType, pa.DataType], source: PageBuffers, rows: Rows, reader: Reader
) -> Steps[tuple[Pending, Pending]]:
    indices = reader(encoding.indices, kinds[0], source, rows)
    items = reader(encoding.items, kinds[1], source, slice(0, encoding.num_dictionary_items))
    return (yield from both(indices, items))


def read_strings(
    encoding: Dictionary, kind: pa.DataType, source: PageBuffers, rows: Rows, reader: Reader
) -> Steps[Pending]:
    """Some rows, each its own string."""
    indices, items = yield from _parts(encoding, (pa.uint8(), kind), source, rows, reader)

    def finish() -> Decoded:
        picks, words = indices().values, items()
        if not isinstance(picks, Fixed) or picks.bits not in (8, 16, 32, 64) or not isinstance(words.values, Variable):
            raise Corrupt("dictionary is not made of integers and strings")
        found = picks.words()
        if len(found) and int(found.max()) > words.values.count:
            raise Corrupt(f"index {int(found.max())} into a dictionary of {words.values.count:,} items")
        # An empty string in front stands for null.
        offsets = np.concatenate([words.values.offsets[:1], words.values.offsets])
        taken, data = gather.take_variable(offsets, words.values.data, found.astype(np.int64))
        valid = found != 0
        if words.validity is not None:
            there = select_bits(words.validity, np.arange(words.values.count))
            known = np.unpackbits(there, count=words.values.count, bitorder="little").astype(bool)
            valid &= np.concatenate([[False], known])[found]
        validity = None if valid.all() else np.packbits(valid, bitorder="little")
        return Decoded(Variable(len(found), taken, data), validity)

    return finish


def read_arrow(
    encoding: Dictionary, kind: pa.DataType, source: PageBuffers, rows: Rows, reader: Reader
) -> Steps[Callable[[], pa.Array]]:
    """Some rows as an Arrow dictionary array, null where the item is."""
    indices, items = yield from _parts(encoding, (kind.index_type, kind.value_type), source, rows, reader)

    def finish() -> pa.Array:
        picks, words = indices(), items()
        dictionary = to_arrow(words.values, kind.value_type, words.validity, -1)
        keys = to_arrow(picks.values, kind.index_type, picks.validity, -1)
        if len(keys):
            numbers = np.asarray(keys.fill_null(0))
            if int(numbers.min()) < 0 or int(numbers.max()) >= len(dictionary):
                raise Corrupt(f"indices {numbers.min()} to {numbers.max()} into a dictionary of {len(dictionary):,}")
            if dictionary.null_count:
                there = np.asarray(dictionary.is_valid())[numbers] & np.asarray(keys.is_valid())
                keys = pa.array(numbers, kind.index_type, mask=~there)
        return pa.DictionaryArray.from_arrays(keys, dictionary, ordered=kind.ordered)

    return finish


def distinct(array: pa.Array) -> pa.DictionaryArray | None:
    """A string column as a dictionary if it should be stored as one; looks at the beginning before all of it."""
    if len(array) < LARGEST:
        return None
    for piece in (array.slice(0, 4 * LARGEST), array):
        made = piece.dictionary_encode()
        if len(made.dictionary) >= LARGEST:
            return None
    return made


def encode_strings(array: pa.DictionaryArray, buffers: list[Bytes]) -> Dictionary:
    """Append indices, with 0 for null, and items."""
    keys = np.asarray(array.indices.fill_null(-1)) + 1
    indices = NoNulls(flat.encode(Fixed(8, len(keys), keys.astype(np.uint8)), buffers))
    items = array.dictionary
    valid = None
    if not len(items):
        # A dictionary of nothing cannot be read by all; one null item can.
        items, valid = pa.array([""], items.type), np.zeros(1, bool)
    words = from_arrow(items)
    if not isinstance(words, Variable):
        raise Corrupt("items are not strings")
    return Dictionary(indices, binary.encode(words, valid, buffers), len(items))
