"""The demo: Spark tasks write a corpus as Lance data files, one atomic put publishes them, tasks verify and search."""

from __future__ import annotations

import os
import shutil
import time
import warnings
from collections import Counter
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from demo import corpus, job
from lancelet import kernels
from lancelet.spark.java import use_java
from lancelet.spark.python import use_python
from lancelet.storage import open_store

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "demo"
SOURCE_BYTES = 40_000_000
TASKS = 8
RACERS = 8
WORDS = ("retry", "vector", "deprecated")


def say(step: str, text: str) -> None:
    """One line of the story."""
    print(f"{step:>9}  {text}", flush=True)


def megabytes(size: float) -> str:
    """A size as people say it."""
    return f"{size / 1e6:.1f} MB"


def main() -> None:
    """Tell the story from start to end."""
    began = time.perf_counter()
    java = use_java()
    # Spark's workers are new processes: they need this Python, and this folder to import the demo from.
    use_python()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # PySpark warns of pandas 3, which none of this uses.
    os.environ["PYTHONWARNINGS"] = "ignore::FutureWarning"
    warnings.simplefilter("ignore", FutureWarning)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    say("", "lancelet has no tables on Spark yet; this shows what they stand on: Lance data files, stores, Spark jobs.")
    say("java", f"version {java.version}, from {java.source}{', through a wrapper' if java.wrapped else ''}")
    say("kernels", f"{kernels.active} ({kernels.why})")
    spark = session()
    say("spark", f"version {spark.version} on {spark.sparkContext.master}, up in {time.perf_counter() - began:.0f} s")
    try:
        story(spark)
    finally:
        spark.stop()
    say("done", f"in {time.perf_counter() - began:.0f} s; the files are in {FOLDER.relative_to(ROOT)}")
    say("next", "make bench ONLY=files    scans, takes and writes beside pylance and Parquet")
    say("", "LANCELET_KERNELS=reference make demo    the same with the NumPy twins")
    say("", "docs/architecture.md    what is being built on this")


def session() -> SparkSession:
    """A quiet Spark on this machine's cores."""
    builder = SparkSession.builder.master("local[*]").appName("lancelet demo")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={(ROOT / 'demo' / 'log4j2.properties').as_uri()}",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def story(spark: SparkSession) -> None:
    """Ingest, commit, verify, search."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    store, place = open_store(FOLDER), str(FOLDER)

    started = time.perf_counter()
    tasks = corpus.plan(TASKS, SOURCE_BYTES)
    files = sum(len(task.sources) for task in tasks)
    say("plan", f"{len(tasks)} tasks: {files:,} source files, {megabytes(sum(task.bytes for task in tasks))}")
    written = job.distribute(spark, tasks, partial(job.ingest, place))
    text, stored = sum(item.text_bytes for item in written), sum(item.size for item in written)
    seconds, rows = sum(item.write_seconds for item in written), sum(item.rows for item in written)
    say("run", f"{rows:,} documents read and written by Spark tasks in {time.perf_counter() - started:.1f} s")
    say("", f"{megabytes(text)} of Arrow became {megabytes(stored)} of Lance files ({text / stored:.1f} times smaller)")
    say("", f"writing took {seconds:.2f} s of that: {megabytes(text / seconds)} per second and core")

    won, told = job.commit(store, written, RACERS)
    say("commit", f"{RACERS} committers raced for version 1: {won} won, {told} learned that it exists")

    started = time.perf_counter()
    snapshot = job.snapshot(store)
    correct = sum(job.distribute(spark, snapshot, partial(job.verify, place)))
    say("verify", f"{correct} of {len(snapshot)} files read back equal in {time.perf_counter() - started:.1f} s")
    if correct != len(snapshot) or won != 1:
        raise SystemExit("the demo found a fault: please report it")

    for word in WORDS:
        started = time.perf_counter()
        found = job.distribute(spark, snapshot, partial(job.search, place, word))
        hits = sum((Counter(item.packages) for item in found), Counter[str]())
        top = ", ".join(f"{package} {count}" for package, count in hits.most_common(4))
        say(
            "search",
            f"'{word}': {sum(hits.values()):,} documents in {time.perf_counter() - started:.1f} s; most in {top}",
        )
    read, decoded = sum(item.bytes_read for item in found), sum(item.text_bytes for item in found)
    seconds = sum(item.decode_seconds for item in found)
    say(
        "",
        f"each search read {megabytes(read)}, two of three columns, and made {megabytes(decoded)} in {seconds:.2f} s",
    )


if __name__ == "__main__":
    main()
