"""Tokens of text: every three letters or digits in a row, accents and capitals aside, as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from lancelet.index.scalar.ngram.folding import FOLDED
from lancelet.kernels import trigrams
from lancelet.rows.addresses import UInt32s

__all__ = ["NULLS", "Pairs", "pairs_of", "tokens_of"]

#: Stands for what is no text: the rows of this token are null.
NULLS = 0
#: What the kernel asks for: a character may become several letters.
_ROOM = 5


@dataclass(frozen=True, slots=True)
class Pairs:
    """Tokens, and the number of the text that each was found in; each pair once, texts ascending."""

    tokens: UInt32s
    texts: UInt32s


@dataclass(frozen=True, slots=True)
class _Table:
    """Characters beyond ASCII, ascending, and what they are made into."""

    characters: UInt32s
    ends: npt.NDArray[np.int64]
    letters: npt.NDArray[np.uint8]


@lru_cache(maxsize=1)
def _table() -> _Table:
    made = sorted((ord(one), letters.encode()) for letters, members in FOLDED.items() for one in members)
    ends = np.cumsum([len(letters) for _, letters in made]).astype(np.int64)
    joined = b"".join(letters for _, letters in made)
    return _Table(np.array([one for one, _ in made], np.uint32), ends, np.frombuffer(joined, np.uint8))


def pairs_of(texts: pa.Array) -> Pairs:
    """The tokens of texts; a null has the one that stands for nulls.

    >>> found = pairs_of(pa.array(["Abcd", None]))
    >>> found.tokens.tolist(), found.texts.tolist()
    ([15516, 16923, 0], [0, 0, 1])
    """
    data, offsets = _utf8(texts)
    table = _table()
    room = _ROOM * int(offsets[-1] - offsets[0])
    tokens, owners = np.empty(room, np.uint32), np.empty(room, np.uint32)
    seen = np.full(trigrams.LARGEST, -1, np.int64)
    count = trigrams.trigrams(data, offsets, table.characters, table.ends, table.letters, seen, tokens, owners)
    tokens, owners = tokens[:count], owners[:count]
    if not texts.null_count:
        return Pairs(tokens, owners)
    nulls = np.flatnonzero(np.asarray(texts.is_null())).astype(np.uint32)
    if bool(np.isin(owners, nulls).any()):
        # What lies behind a null is no text of anyone's.
        held = ~np.isin(owners, nulls)
        tokens, owners = tokens[held], owners[held]
    return Pairs(np.concatenate([tokens, np.full(len(nulls), NULLS, np.uint32)]), np.concatenate([owners, nulls]))


def _utf8(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    _, stored, data = texts.buffers()
    width = np.int64 if pat.is_large_string(texts.type) else np.int32
    if stored is None or not len(texts):
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    offsets = np.frombuffer(stored, width, len(texts) + 1 + texts.offset)[texts.offset :]
    return np.frombuffer(data or b"", np.uint8), offsets.astype(np.int64)


def tokens_of(text: str) -> list[int]:
    """The tokens of one text, ascending.

    >>> tokens_of("Ab-cdé"), tokens_of("ab")
    ([18330], [])
    """
    found: list[int] = np.unique(pairs_of(pa.array([text])).tokens).tolist()
    return found
