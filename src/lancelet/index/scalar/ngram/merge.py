"""Merging NGRAM indexes: the sets of each token, renamed and joined; new rows become a segment of their own first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from lancelet.index.building import Built, Target
from lancelet.index.merging import Part, new_rows_as_part
from lancelet.index.row_sets_by_key import SetsByKey, StoredForm, merged_sets
from lancelet.index.scalar.ngram.build import FILE, SCHEMA, SETS, TOKENS, TYPE_URL, build_ngram
from lancelet.rows.treemaps import parse_treemap, write_treemap

__all__ = ["merge_ngrams"]


def merge_ngrams(parts: Sequence[Part], rows: Iterable[pa.RecordBatch], target: Target) -> Built:
    """Write the index of what segments hold and of new rows."""
    with new_rows_as_part(rows, target, build_ngram) as added, target.file(FILE, SCHEMA) as file:
        sources = [SetsByKey(part, part.files.open(FILE), TOKENS, SETS) for part in [*parts, *added]]
        for tokens, sets in merged_sets(sources, pa.uint32(), StoredForm(parse_treemap, write_treemap, treemap=True)):
            file.write(pa.record_batch([tokens, sets], schema=SCHEMA))
    return target.built(TYPE_URL, 0)
