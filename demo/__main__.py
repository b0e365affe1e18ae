"""The demo: a pipeline makes a table of texts of this machine, answers questions, and a second run follows changes."""

from __future__ import annotations

import os
import shutil
import time
import warnings
from pathlib import Path

from pyspark.sql import SparkSession

from demo.corpus import NOTES
from lancelet import kernels
from lancelet.events import Event, subscribe
from lancelet.pipeline import RunFigures, load, open_embedder, run
from lancelet.spark.java import use_java
from lancelet.spark.python import use_python
from lancelet.spark.table import LanceTable

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "demo"
TABLE = str(FOLDER / "packages.lance")
QUESTIONS = (
    "try a failed network request again after a delay",
    "read the columns of a parquet file into memory",
    "compress bytes with a dictionary",
    "parse a date with a time zone",
)
FIRST_NOTES = {
    "retries": "Wait a little longer before each attempt to send a request again, and add some jitter to the delay.",
    "soup": "Cook the lentils with carrots and cumin for half an hour.",
    "plan": "Buy a new battery for the bicycle lamp.",
}


def say(step: str, text: object) -> None:
    """A line of the story, or several."""
    for number, line in enumerate(str(text).splitlines()):
        print(f"{step if number == 0 else '':>9}  {line}", flush=True)


def megabytes(folder: str) -> float:
    """What the files below a folder take."""
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6


def main() -> None:
    """Tell the story from start to end."""
    began = time.perf_counter()
    java = use_java()
    # Spark's workers are new processes, which need this Python.
    use_python()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # PySpark warns of pandas 3, which none of this uses.
    os.environ["PYTHONWARNINGS"] = "ignore::FutureWarning"
    warnings.simplefilter("ignore", FutureWarning)
    say("java", f"version {java.version}, from {java.source}{', through a wrapper' if java.wrapped else ''}")
    say("kernels", f"{kernels.active} ({kernels.why})")
    spark = session()
    say("spark", f"version {spark.version} on {spark.sparkContext.master}, up in {time.perf_counter() - began:.0f} s")
    try:
        story(spark)
    finally:
        spark.stop()
    say("done", f"in {time.perf_counter() - began:.0f} s; the table is {Path(TABLE).relative_to(ROOT)}")
    say("next", ".venv/bin/lancelet run --dry-run demo/pipeline.yml    what another run would do")
    say("", "pip install something into .venv, and run it again without --dry-run: only that package is read")
    say("", f".venv/bin/lancelet versions {Path(TABLE).relative_to(ROOT)}    also schema, files, pages, head, doctor")
    say("", "docs/pipeline.md    pipelines of your own: files, SQL, tables, functions; models of your own")


def session() -> SparkSession:
    """A quiet Spark on this machine's cores."""
    builder = SparkSession.builder.master("local[*]").appName("lancelet demo")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "4",
        # Workers begin with lancelet imported.
        "spark.python.daemon.module": "lancelet.spark.daemon",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={(ROOT / 'demo' / 'log4j2.properties').as_uri()}",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def story(spark: SparkSession) -> None:
    """Ingest, ask, change, run again, look back."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    write_notes(FIRST_NOTES)
    say("pipeline", "demo/pipeline.yml: docstrings and READMEs of the installed packages, and three notes")
    figures = carried_out(spark)
    rows = figures.step("write").facts["inserted"]
    table = LanceTable.forPath(spark, TABLE)
    say("table", f"{rows:,} texts with vectors, text and indexes in {megabytes(TABLE):.1f} MB")

    ask(table)
    filters(table)

    write_notes({**FIRST_NOTES, "plan": "Ride the bicycle to the lake at dawn.", "lake": "The lake is cold in May."})
    (NOTES / "soup.md").unlink()
    say("change", "one note is written anew, one is new, one is gone: the second run reads these two alone")
    carried_out(spark)
    merge(spark, table)
    look_back(table)


def write_notes(notes: dict[str, str]) -> None:
    """Put notes beside the packages."""
    NOTES.mkdir(parents=True, exist_ok=True)
    for name, text in notes.items():
        (NOTES / f"{name}.md").write_text(text)


def carried_out(spark: SparkSession) -> RunFigures:
    """A run of the pipeline, its steps told when they end."""

    def tell(event: Event) -> None:
        if event.name == "pipeline.step.start":
            say("", f"{event.facts['step']} ...")

    with subscribe(tell):
        figures = run(spark, load(ROOT / "demo" / "pipeline.yml"))
    say("run", figures)
    return figures


def ask(table: LanceTable) -> None:
    """Search by meaning: the nearest vectors of all, found by Spark's tasks."""
    model = open_embedder(TABLE)
    began = time.perf_counter()
    vectors = model.embed(list(QUESTIONS))
    found = table.search({"column": "vector", "q": vectors, "k": 3, "metric": "cosine"}, columns=["package", "name"])
    rows = found.collect()
    for number, question in enumerate(QUESTIONS):
        answers = [f"{row.package} {row.name} ({row._distance:.2f})" for row in rows if row.query_index == number]
        say("ask", question)
        say("", "  " + ", ".join(answers))
    say("", f"{len(QUESTIONS)} questions against every vector in {time.perf_counter() - began:.1f} s")


def filters(table: LanceTable) -> None:
    """Search by filters, which the indexes answer."""
    dataset = table.dataset()
    for condition in ("package = 'numpy'", "words > 2000", "package in ('pip', 'pyspark') and words < 12"):
        began = time.perf_counter()
        count = dataset.count_rows(condition)
        say("filter", f"{condition}: {count:,} texts in {1000 * (time.perf_counter() - began):.0f} ms")


def merge(spark: SparkSession, table: LanceTable) -> None:
    """Change rows by hand, in the manner of Delta's table object."""
    given = spark.createDataFrame([("retries", "The retry library of choice is tenacity.")], "name string, text string")
    figures = (
        table.alias("t")
        .merge(given.alias("s"), "t.name = s.name and t.package = 'notes'")
        .whenMatchedUpdate(set={"text": "concat(t.text, ' ', s.text)"})
        .execute()
    )
    say("merge", f"{figures.num_updated_rows} row updated by LanceTable.merge in {figures.seconds:.1f} s")


def look_back(table: LanceTable) -> None:
    """What the table tells of its versions."""
    for row in table.history().collect():
        size = row.metrics["size_bytes"] / 1e6
        said = f"  {row.message}" if row.message else ""
        say(
            "version", f"{row.version:>2}  {row.operation:<13} {row.metrics['num_rows']:>7,} rows  {size:6.1f} MB{said}"
        )
    first = LanceTable.forPath(table.sparkSession, TABLE, version=1).dataset().count_rows("package = 'notes'")
    say("", f"every version can be read: version 1 has {first} notes, the newest {table.dataset().count_rows()} rows")


if __name__ == "__main__":
    main()
