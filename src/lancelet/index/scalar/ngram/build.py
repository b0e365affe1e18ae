"""Building an NGRAM index: texts become tokens, and each token gets the set of rows that have it.

tokens u32 | posting_list binary: a Roaring treemap of row ids
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.file.file_writer import FileWriter
from lancelet.index.building import Built, Target
from lancelet.index.external_sort import IDS, VALUES
from lancelet.index.row_sets_by_key import stored_sets
from lancelet.index.scalar.ngram.pairs import GatheredPairs, RowsOfTokens
from lancelet.index.scalar.ngram.tokens import pairs_of
from lancelet.rows.row_sets import RowSet, union_all
from lancelet.rows.treemaps import write_treemap

__all__ = ["FILE", "SCHEMA", "SETS", "TOKENS", "TYPE_URL", "build_ngram", "is_text", "write_tokens"]

TYPE_URL = "/lance.table.NGramIndexDetails"
FILE, TOKENS, SETS = "ngram_postings.lance", "tokens", "posting_list"
SCHEMA = pa.schema(
    [
        pa.field(TOKENS, pa.uint32()),
        pa.field(SETS, pa.binary(), nullable=False, metadata={"lance-encoding:compression": "none"}),
    ]
)
#: Bytes of text that are taken apart at once: tokens take ten times as much, and more for a moment.
_TEXT_AT_ONCE = 2**21


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is text.

    >>> is_text(pa.large_string()), is_text(pa.binary())
    (True, False)
    """
    return bool(pat.is_string(kind) or pat.is_large_string(kind))


def build_ngram(rows: Iterable[pa.RecordBatch], target: Target) -> Built:
    """Write the index of rows that come in any order, each a text and a row id."""
    with ExitStack() as stack:
        pairs = GatheredPairs(stack, target.memory // 2)
        for batch in rows:
            for values, ids in _pieces(batch):
                pairs.add(pairs_of(values), ids.to_numpy())
        with target.file(FILE, SCHEMA) as file:
            write_tokens(pairs.by_token(), file)
    return target.built(TYPE_URL, 0)


def _pieces(batch: pa.RecordBatch) -> Iterator[tuple[pa.Array, pa.Array]]:
    values, ids = batch.column(VALUES), batch.column(IDS)
    size = max(_TEXT_AT_ONCE * batch.num_rows // max(values.nbytes, 1), 1)
    for start in range(0, batch.num_rows, size):
        yield values[start : start + size], ids[start : start + size]


def write_tokens(groups: Iterable[RowsOfTokens], file: FileWriter) -> None:
    """Write the row sets of tokens that come in order; one that comes in several parts gets one set."""
    token, parts = -1, list[RowSet]()
    for group in groups:
        first = int(group.tokens[0])
        if len(group.tokens) == 1 and (token == first or len(group.ids) > 2**18):
            if token != first:
                _write_parts(token, parts, file)
                token, parts = first, []
            parts.append(RowSet.of(group.ids))
            continue
        _write_parts(token, parts, file)
        token, parts = -1, []
        sets = stored_sets(group.ids, group.bounds, treemap=True)
        file.write(pa.record_batch([pa.array(group.tokens), sets], schema=SCHEMA))
    _write_parts(token, parts, file)


def _write_parts(token: int, parts: list[RowSet], file: FileWriter) -> None:
    if parts:
        sets = pa.array([write_treemap(union_all(parts))], pa.binary())
        file.write(pa.record_batch([pa.array(np.array([token], np.uint32)), sets], schema=SCHEMA))
