"""Embedding on Spark: a column of vectors beside the columns of a frame, made batch by batch by its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as spark

from lancelet.errors import InvalidInput
from lancelet.pipeline.declaration import Embed, Pipeline
from lancelet.pipeline.embedders import EMBEDDER, Embedder, model_path
from lancelet.pipeline.references import code_of, resolved
from lancelet.pipeline.rows import beside
from lancelet.spark.worker import prepare_worker

__all__ = ["code_of_embed", "embedded", "embedder_of"]

_SIZE = "arrow.fixed-size-list.size"


def embedder_of(embed: Embed, pipeline: Pipeline) -> Embedder:
    """What makes the vectors of an embedding."""
    folder = pipeline.folder
    return Embedder(
        embed,
        code_of_embed(embed, pipeline),
        beside(pipeline.write.table, folder),
        model_path(pipeline.name, embed) if embed.builtin else None,
        None if embed.function is None else resolved(embed.function, folder),
        None if embed.load is None else resolved(embed.load, folder),
        pipeline.write.storage_options,
    )


def code_of_embed(embed: Embed, pipeline: Pipeline) -> str:
    """What decides which vectors come of values."""
    reference = embed.function if embed.function is not None else embed.load
    named = embed.model if reference is None else code_of(reference, pipeline.folder)
    learning = f"{embed.vocabulary} {embed.sample}" if embed.builtin else ""
    return f"{embed.column} {embed.into} {embed.dimension} {named} {learning}"


def embedded(frame: DataFrame, embedder: Embedder) -> DataFrame:
    """The frame with a column of vectors; null values have null vectors."""
    embed = embedder.embed
    if embed.column not in frame.columns:
        hint = f"there are: {', '.join(frame.columns)}"
        raise InvalidInput(f"there is no column {embed.column!r} to embed", hint=hint)
    if embed.into in frame.columns:
        raise InvalidInput(f"there is a column {embed.into!r} already", hint="let the vectors have another name")
    metadata: dict[str, object] = {_SIZE: embed.dimension}
    if embedder.path is not None:
        metadata[EMBEDDER] = embedder.path
    vectors = spark.StructField(embed.into, spark.ArrayType(spark.FloatType(), True), True, metadata)
    run = partial(_embed, embedder, frame.columns.index(embed.column))
    return frame.mapInArrow(run, spark.StructType([*frame.schema.fields, vectors]))


def _embed(embedder: Embedder, place: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    prepare_worker()
    kind = pa.field(embedder.embed.into, pa.list_(pa.field("element", pa.float32(), True)), True)
    for batch in batches:
        values = batch.column(place)
        valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
        flat = embedder.vectors(values.drop_null()).reshape(-1)
        counts = np.where(valid, embedder.embed.dimension, 0)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        mask = None if valid.all() else pa.array(~valid)
        made = pa.ListArray.from_arrays(offsets, pa.array(flat), type=kind.type, mask=mask)
        yield pa.RecordBatch.from_arrays([*batch.columns, made], schema=pa.schema([*batch.schema, kind]))
