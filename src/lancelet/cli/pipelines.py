"""The command that runs a pipeline: Spark started as it is asked for, steps told as they end."""

from __future__ import annotations

import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lancelet.cli.output import pairs, say
from lancelet.errors import NotFound
from lancelet.events import Event, subscribe
from lancelet.pipeline import load, plan
from lancelet.pipeline import run as run_pipeline

__all__ = ["run"]


#: Workers begin with lancelet imported; those of other machines may have another Python.
_ON_THIS_MACHINE = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.daemon.module": "lancelet.spark.daemon",
}


def run(given: Namespace) -> None:
    """Plan a pipeline, or run it."""
    pipeline = load(given.pipeline)
    with _session(given) as spark:
        if given.dry_run:
            say(plan(spark, pipeline))
            return
        if given.quiet:
            run_pipeline(spark, pipeline)
            return
        with subscribe(_tell):
            figures = run_pipeline(spark, pipeline)
        say(figures)


def _tell(event: Event) -> None:
    if event.name == "pipeline.step.start":
        sys.stderr.write(f"{event.facts['step']} ...\n")
    elif event.name == "pipeline.commit":
        sys.stderr.write(f"  version {event.facts['version']}: part {event.facts['done']} of {event.facts['total']}\n")


@contextmanager
def _session(given: Namespace) -> Iterator[Any]:
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise NotFound("PySpark is not installed", hint="pip install 'lancelet[pipeline]'") from None
    from lancelet.spark.java import use_java
    from lancelet.spark.python import use_python

    # PySpark warns of pandas 3, which none of this uses.
    warnings.simplefilter("ignore", FutureWarning)
    os.environ.setdefault("PYTHONWARNINGS", "ignore::FutureWarning")
    builder = SparkSession.builder.appName(f"lancelet run {given.pipeline}")
    for name, value in pairs(given.conf).items():
        builder = builder.config(name, value)
    if given.remote is not None:
        builder = builder.remote(given.remote)
    else:
        use_java()
        use_python()
        usual = {"spark.master": given.master or "local[*]", "spark.log.level": "ERROR"}
        if usual["spark.master"].startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            usual |= _ON_THIS_MACHINE
        for name, value in usual.items():
            if not any(item.startswith(f"{name}=") for item in given.conf):
                builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
