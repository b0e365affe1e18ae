"""Transforms on Spark: from the rows of inputs to those of the table, each row keeping the name of its input."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr
from pyspark.sql.functions import explode as exploded

from lancelet.errors import InvalidInput
from lancelet.pipeline.declaration import Pipeline, Transform
from lancelet.pipeline.references import code_of, resolved
from lancelet.pipeline.rows import INPUT, quoted

__all__ = ["code_of_transforms", "register_functions", "transformed"]

#: What statements call the rows.
VIEW = "input"


def register_functions(spark: SparkSession, pipeline: Pipeline) -> None:
    """Make the pipeline's Python functions known to the session's SQL."""
    for name, function in pipeline.functions.items():
        spark.udf.register(name, resolved(function.python, pipeline.folder), function.returns)


def transformed(frame: DataFrame, pipeline: Pipeline) -> DataFrame:
    """The rows after all transforms."""
    for number, transform in enumerate(pipeline.transform):
        made = _step(frame, transform, pipeline)
        if INPUT not in made.columns:
            hint = f"let it hand out {INPUT}, too: by it rows are found again when their input changes"
            raise InvalidInput(f"transform[{number}] lost the column {INPUT}", hint=hint)
        frame = made
    return frame


def _step(frame: DataFrame, transform: Transform, pipeline: Pipeline) -> DataFrame:
    if transform.python is not None:
        made = resolved(transform.python, pipeline.folder)(frame)
        if not hasattr(made, "mapInArrow"):
            raise InvalidInput(f"the transform {transform.python} returned {type(made).__name__}, expected a DataFrame")
        return made  # type: ignore[no-any-return]
    if transform.sql is not None:
        # The view stays: on Connect the statement is not looked at before its rows are asked for.
        frame.createOrReplaceTempView(VIEW)
        return frame.sparkSession.sql(transform.sql)
    if transform.where is not None:
        frame = frame.where(transform.where)
    if transform.explode is not None:
        if transform.explode not in frame.columns:
            hint = f"there are: {', '.join(frame.columns)}"
            raise InvalidInput(f"there is no column {transform.explode!r} to explode", hint=hint)
        frame = frame.withColumn(transform.explode, exploded(col(quoted(transform.explode))))
    if transform.select is not None:
        made = [expr(text).alias(name) for name, text in transform.select.items() if name != INPUT]
        frame = frame.select(*made, col(INPUT))
    return frame


def code_of_transforms(pipeline: Pipeline) -> list[str]:
    """What decides which rows come of the rows of inputs."""
    told = [
        f"{name} {code_of(item.python, pipeline.folder)} {item.returns}" for name, item in pipeline.functions.items()
    ]
    for item in pipeline.transform:
        if item.python is not None:
            told.append(code_of(item.python, pipeline.folder))
        else:
            told.append(repr((item.sql, list((item.select or {}).items()), item.where, item.explode)))
    return told
