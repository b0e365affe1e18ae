"""Terms of texts: words in lower case, names taken apart, plurals cut; by Arrow's kernels, text by text in no loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["TERM_COUNTS", "Weighted", "counted_terms", "shares_of", "terms_of", "weighted_terms"]

#: Texts that are looked at at once, and the bytes of each that count.
_TEXTS, _BYTES = 512, 20_000
#: How often each term occurs in texts, and in how many of them.
TERM_COUNTS = pa.schema([("term", pa.string()), ("texts", pa.int64())])
#: The terms of texts that a vocabulary has: for each text a run of places in it, and weights.
Weighted = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], npt.NDArray[np.int64]]


def terms_of(texts: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The terms of texts one behind the other, and for each the number of its text. Nulls have none.

    >>> terms, numbers = terms_of(pa.array(["Reads HTTPFiles, read_files!", None, "e.g. vectors"]))
    >>> terms.to_pylist(), numbers.tolist()
    (['read', 'http', 'file', 'read', 'file', 'vector'], [0, 0, 0, 0, 0, 2])
    """
    plain = pc.utf8_slice_codeunits(pc.fill_null(texts.cast(pa.string()), ""), 0, _BYTES)
    # Names of programs are words, too: HTTPFile, read_file.
    plain = pc.replace_substring_regex(plain, r"([a-z0-9])([A-Z])", r"\1 \2")
    plain = pc.replace_substring_regex(plain, r"([A-Z]+)([A-Z][a-z])", r"\1 \2")
    plain = pc.utf8_lower(plain)
    plain = pc.replace_substring_regex(plain, r"[^\p{L}\p{N}]+", " ")
    plain = pc.replace_substring_regex(plain, r"\b(\w{2,}[^s\W])s\b", r"\1")
    split = pc.utf8_split_whitespace(plain)
    numbers = pc.list_parent_indices(split).to_numpy(zero_copy_only=False).astype(np.int64)
    terms = pc.list_flatten(split)
    length = pc.utf8_length(terms)
    kept = pc.and_(pc.greater(length, 1), pc.less(length, 31))
    return terms.filter(kept), numbers[kept.to_numpy(zero_copy_only=False)]


def shares_of(texts: pa.Array, size: int = _TEXTS) -> Iterator[pa.Array]:
    """Texts a few at a time, so that their terms fit into memory."""
    for start in range(0, len(texts), size):
        yield texts.slice(start, size)


def counted_terms(columns: Iterable[pa.Array]) -> pa.RecordBatch:
    """In how many of the texts each term occurs."""
    total: pa.Table = TERM_COUNTS.empty_table()
    for column in columns:
        for texts in shares_of(column):
            terms, numbers = terms_of(texts)
            pairs = pa.table({"term": terms, "number": numbers}).group_by(["term", "number"]).aggregate([])
            found = pairs.group_by("term").aggregate([("number", "count")]).rename_columns(["term", "texts"])
            total = pa.concat_tables([total, found.select(TERM_COUNTS.names).cast(TERM_COUNTS)])
        if len(total) > 1_000_000:
            total = _summed(total)
    return (
        _summed(total).combine_chunks().to_batches()[0] if len(total) else pa.RecordBatch.from_pylist([], TERM_COUNTS)
    )


def _summed(counts: pa.Table) -> pa.Table:
    summed = counts.group_by("term").aggregate([("texts", "sum")]).rename_columns(["term", "texts"])
    return summed.select(TERM_COUNTS.names).cast(TERM_COUNTS)


def weighted_terms(texts: pa.Array, vocabulary: pa.Array, weights: npt.NDArray[np.float32]) -> Weighted:
    """Of each text the known terms: their places, their weights scaled to length one, and where texts begin.

    >>> known = pa.array(["file", "read"])
    >>> places, weight, starts = weighted_terms(pa.array(["read file", "", "file"]), known, np.ones(2, np.float32))
    >>> places.tolist(), weight.astype(np.float64).round(2).tolist(), starts.tolist()
    ([0, 1, 0], [0.71, 0.71, 1.0], [0, 2, 2])
    """
    terms, numbers = terms_of(texts)
    found = pc.index_in(terms, vocabulary)
    known = pc.is_valid(found).to_numpy(zero_copy_only=False)
    places = pc.fill_null(found, 0).to_numpy(zero_copy_only=False)[known].astype(np.int64)
    pairs, counts = np.unique(numbers[known] * max(len(vocabulary), 1) + places, return_counts=True)
    numbers, places = np.divmod(pairs, max(len(vocabulary), 1))
    weight = (1 + np.log(counts)).astype(np.float32) * weights[places]
    lengths = np.sqrt(np.bincount(numbers, weight.astype(np.float64) ** 2, len(texts)))
    weight /= np.maximum(lengths, 1e-12).astype(np.float32)[numbers]
    return places, weight, np.searchsorted(numbers, np.arange(len(texts)))
