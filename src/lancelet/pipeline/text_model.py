"""The built-in text model: terms weighted by rarity, projected to where terms lie that occur in the same texts.

That is latent semantic analysis. The model is a Lance data file with a row for each term: the term, its weight, its
place. A text's vector is the weighted sum of its terms' places, of length one; texts without known terms have zeros.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.pipeline.text_terms import Weighted, shares_of, weighted_terms

__all__ = ["TextModel", "projected", "spread"]

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TextModel:
    """Terms, how much each counts, and where each lies."""

    terms: pa.Array
    weights: Floats
    places: Floats

    @property
    def dimension(self) -> int:
        """Of the vectors."""
        return int(self.places.shape[1])

    def embed(self, texts: pa.Array | list[str]) -> Floats:
        """A vector of length one for each text.

        >>> model = TextModel(pa.array(["cat", "dog"]), np.ones(2, np.float32), np.eye(2, dtype=np.float32))
        >>> model.embed(["a cat", "a dog and a cat", ""]).astype(np.float64).round(1).tolist()
        [[1.0, 0.0], [0.7, 0.7], [0.0, 0.0]]
        """
        column = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.string())
        parts = [projected(weighted_terms(some, self.terms, self.weights), self.places) for some in shares_of(column)]
        made = np.concatenate(parts) if parts else np.zeros((0, self.dimension), np.float32)
        made /= np.maximum(np.linalg.norm(made, axis=1, keepdims=True), np.float32(1e-12))
        return made

    def table(self) -> pa.Table:
        """The model as rows: term, weight, place."""
        places = pa.FixedSizeListArray.from_arrays(pa.array(self.places.reshape(-1)), self.dimension)
        return pa.table({"term": self.terms, "weight": pa.array(self.weights), "place": places})

    @staticmethod
    def of(table: pa.Table) -> TextModel:
        """The model that rows hold."""
        rows = table.combine_chunks()
        size = rows.schema.field("place").type.list_size
        flat = np.concatenate([chunk.flatten().to_numpy() for chunk in rows["place"].chunks])
        terms = pa.concat_arrays(rows["term"].chunks)
        return TextModel(terms, rows["weight"].to_numpy(), flat.reshape(-1, size))


def projected(texts: Weighted, places: Floats) -> Floats:
    """The weighted sums of the places of each text's terms."""
    numbers, weights, starts = texts
    made = np.zeros((len(starts), places.shape[1]), np.float32)
    ends = np.append(starts[1:], len(numbers))
    full = starts < ends
    if full.any():
        made[full] = np.add.reduceat(places[numbers] * weights[:, None], starts[full], axis=0)
    return made


def spread(texts: Weighted, vectors: Floats, size: int) -> Floats:
    """The other way: for each of ``size`` terms the weighted sum of the vectors of texts that have it."""
    numbers, weights, starts = texts
    owners = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(numbers))))
    order = np.argsort(numbers, kind="stable")
    present, begins = np.unique(numbers[order], return_index=True)
    made = np.zeros((size, vectors.shape[1]), np.float32)
    if len(present):
        made[present] = np.add.reduceat(vectors[owners[order]] * weights[order, None], begins, axis=0)
    return made
