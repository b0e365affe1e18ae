"""Learning the built-in text model: terms counted and texts weighted by Spark's tasks, a bounded sample decomposed.

texts --sample, by the hash of the text--> tasks count in how many texts each term occurs -> vocabulary, weights
      --the same sample----------------> tasks weight the terms of each text -> a sparse matrix of bounded size
the matrix --subspace iteration, in this process--> directions in which texts differ most -> a place for each term
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, substring, xxhash64
from pyspark.sql.functions import sum as total

from lancelet.errors import InvalidInput
from lancelet.pipeline.declaration import Embed
from lancelet.pipeline.rows import quoted
from lancelet.pipeline.text_model import Floats, TextModel, projected, spread
from lancelet.pipeline.text_terms import Weighted, counted_terms, shares_of, weighted_terms
from lancelet.spark.frames import parallelism
from lancelet.spark.jobs import ANSWER, answers_of, as_answer
from lancelet.spark.worker import prepare_worker

__all__ = ["decomposed", "learned"]

#: Characters of a text from which is learned.
_LENGTH = 4000
_ROUNDS, _MORE = 3, 8
_TEXT = "text"


def learned(frame: DataFrame, embed: Embed) -> TextModel:
    """The model of the texts in a column: the same for the same texts, in whatever order they come."""
    texts = frame.select(substring(col(quoted(embed.column)).cast("string"), 1, _LENGTH).alias(_TEXT))
    kept = texts.where(col(_TEXT).isNotNull()).orderBy(xxhash64(_TEXT), _TEXT).limit(embed.sample)
    sample = kept.repartition(max(2, parallelism(frame.sparkSession))).localCheckpoint()
    counts = sample.mapInArrow(_count, "term string, texts long").groupBy("term").agg(total("texts").alias("texts"))
    size = sample.count()
    # Terms of a single text tell of no other, those of most texts tell nothing.
    known = counts.where((col("texts") > 1) & (col("texts") <= max(2, size // 2)))
    rows = known.orderBy(col("texts").desc(), "term").limit(embed.vocabulary).collect()
    if not rows:
        found = f"no term occurs in two of the {size} texts of column {embed.column!r}"
        raise InvalidInput(found, hint="the built-in model needs more texts, or give a model of your own")
    terms = pa.array([row.term for row in rows], pa.string())
    weights = np.log(size / np.array([row.texts for row in rows], np.float64)).astype(np.float32)
    answers = answers_of(sample.mapInArrow(partial(_weight, terms, weights), ANSWER))
    matrix = [share for answer in answers for share in pickle.loads(answer)]  # type: ignore[arg-type]
    return TextModel(terms, weights, decomposed(matrix, len(terms), embed.dimension))


def _count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    prepare_worker()
    yield counted_terms(batch.column(0) for batch in batches)


def _weight(terms: pa.Array, weights: Floats, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    prepare_worker()
    for batch in batches:
        made = [weighted_terms(texts, terms, weights) for texts in shares_of(batch.column(0))]
        small = [(places.astype(np.int32), weight, starts.astype(np.int32)) for places, weight, starts in made]
        yield as_answer(pickle.dumps(small))


def decomposed(matrix: Sequence[Weighted], terms: int, dimension: int) -> Floats:
    """For each term its place along the directions in which texts differ most.

    >>> share = (np.array([0, 1, 0, 1, 2, 2]), np.ones(6, np.float32), np.array([0, 2, 4, 5]))
    >>> places = decomposed([share], 3, 2)
    >>> bool(abs(places[0] @ places[1]) > abs(places[0] @ places[2]))
    True
    """
    width = min(dimension + _MORE, terms)
    draw = np.random.default_rng(0)
    basis: npt.NDArray[np.float32] = draw.standard_normal((terms, width)).astype(np.float32)
    for _ in range(_ROUNDS):
        image = np.zeros((terms, basis.shape[1]), np.float32)
        for share in matrix:
            image += spread(share, projected(share, basis), terms)
        basis = _orthonormal(image)
    gram = np.zeros((basis.shape[1], basis.shape[1]), np.float64)
    for share in matrix:
        seen = projected(share, basis)
        gram += seen.T @ seen
    values, turns = np.linalg.eigh(gram)
    order = np.argsort(-values)[:dimension]
    order = order[values[order] > 1e-6 * max(float(values.max(initial=0)), 1e-12)]
    # The first directions are what most texts have in common: damped, so that the others count beside them.
    chosen = turns[:, order] * values[order] ** -0.25
    places = np.zeros((terms, dimension), np.float32)
    places[:, : chosen.shape[1]] = basis @ chosen.astype(np.float32)
    return places


def _orthonormal(columns: Floats) -> Floats:
    """Columns of length one at right angles that span the same; by the small matrix of products, which costs least."""
    values, turns = np.linalg.eigh(columns.T.astype(np.float64) @ columns)
    kept = values > 1e-10 * max(float(values.max(initial=0)), 1e-30)
    scaled: Floats = (turns[:, kept] / np.sqrt(values[kept])).astype(np.float32)
    return columns @ scaled
