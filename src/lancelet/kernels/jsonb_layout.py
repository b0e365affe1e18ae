"""JSONB, the bytes in which JSON documents are stored: their layout, their tags, and what kernels say of wrong ones.

All words are big-endian. A document is a container; what a container holds follows it, without gaps::

    header u32   bits 29..32 kind: 1 scalar, 2 object, 4 array; bits 0..29 count (0 for a scalar)
    entries u32  one for each item, for an object first one for each key, then one for each value:
                 bits 28..31 tag, bits 0..28 bytes of the payload
    payloads     those of the entries, in their order: a string's UTF-8; a number; a container within this one

The payload of a number is a byte for its class, and for the classes INTEGER, UNSIGNED and FLOAT the value, in 1, 2, 4
or 8 bytes (always 8 for FLOAT). Null, false and true are tags without payload. Keys are sorted by their bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import Corrupt, InvalidInput, LanceletError, Unsupported

__all__ = [
    "ARRAY",
    "BAD_BYTES",
    "BAD_CHARACTER",
    "BAD_ENTRY",
    "BAD_ESCAPE",
    "BAD_HEADER",
    "BAD_KEY",
    "BAD_NUMBER",
    "BAD_UTF8",
    "CONTAINER",
    "CUT",
    "DECIMAL",
    "DUPLICATE",
    "EXTENSION",
    "FALSE",
    "FLOAT",
    "INFINITY",
    "INTEGER",
    "LARGEST",
    "MINUS_INFINITY",
    "MOST_LEVELS",
    "NAN",
    "NULL",
    "NUMBER",
    "OBJECT",
    "SCALAR",
    "STRING",
    "TOO_DEEP",
    "TOO_LARGE",
    "TRUE",
    "UNKNOWN_KIND",
    "UNSIGNED",
    "ZERO",
    "bad_document",
    "bad_text",
    "check_offsets",
]

SCALAR, OBJECT, ARRAY = 0x20000000, 0x40000000, 0x80000000
NULL, STRING, NUMBER, FALSE, TRUE, CONTAINER, EXTENSION = (tag << 28 for tag in range(7))
ZERO, NAN, INFINITY, MINUS_INFINITY, INTEGER, UNSIGNED, FLOAT, DECIMAL = range(0, 0x80, 0x10)
#: Containers within containers; pylance's own limit is its stack, somewhere above 100,000.
MOST_LEVELS = 131_072
#: Bytes that an entry can tell of.
LARGEST = 2**28 - 1

# What is wrong with a text.
CUT, BAD_CHARACTER, BAD_ESCAPE, BAD_NUMBER, DUPLICATE, TOO_DEEP, BAD_UTF8, TOO_LARGE = range(-1, -9, -1)
# What is wrong with stored bytes, beside TOO_DEEP and BAD_UTF8.
BAD_HEADER, BAD_ENTRY, BAD_KEY, BAD_BYTES, UNKNOWN_KIND = range(-11, -16, -1)

_REASONS = {
    CUT: "the document ends early",
    BAD_CHARACTER: "unexpected character",
    BAD_ESCAPE: "an escape that JSON does not have",
    BAD_NUMBER: "not a number",
    DUPLICATE: "the object that ends here has a key twice",
    TOO_DEEP: f"nested more than {MOST_LEVELS:,} levels deep",
    BAD_UTF8: "text is not UTF-8",
    TOO_LARGE: f"the document, or what ends here within it, takes more than {LARGEST:,} bytes",
    BAD_HEADER: "no header of a container",
    BAD_ENTRY: "an entry, or what it tells of, lies outside of its container",
    BAD_KEY: "a key is not a string",
    BAD_BYTES: "no number, or an entry with an unknown tag",
    UNKNOWN_KIND: "a decimal number or an extension value, which have no form in JSON text here",
}


def bad_text(reason: int, row: int, position: int) -> InvalidInput:
    """The refusal of a text that is not JSON.

    >>> print(bad_text(BAD_CHARACTER, 3, 7))
    row 3 is not JSON: unexpected character at byte 7
    """
    return InvalidInput(f"row {row:,} is not JSON: {_REASONS[reason]} at byte {position:,}")


def bad_document(reason: int, row: int, position: int) -> LanceletError:
    """The refusal of stored bytes that are not JSONB.

    >>> print(bad_document(BAD_HEADER, 3, 7))
    row 3 is not JSONB: no header of a container at byte 7
    """
    kind = Unsupported if reason in (UNKNOWN_KIND, TOO_DEEP) else Corrupt
    what = "cannot be read" if kind is Unsupported else "is not JSONB"
    return kind(f"row {row:,} {what}: {_REASONS[reason]} at byte {position:,}")


def check_offsets(offsets: NDArray[np.int64], size: int, count: int) -> None:
    """Refuse offsets that do not cut ``count`` documents out of ``size`` bytes.

    >>> check_offsets(np.array([0, 2, 2]), 2, 2)
    """
    if len(offsets) != count + 1:
        raise InvalidInput(f"{len(offsets)} offsets for {count} documents, expected one more than documents")
    if offsets[0] < 0 or offsets[-1] > size or (offsets[1:] < offsets[:-1]).any():
        raise Corrupt(f"offsets of documents fall, or lead past the end of their {size:,} bytes")
