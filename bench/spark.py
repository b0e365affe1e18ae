"""Tables on Spark (local[2]) beside Spark's own Parquet source, and beside pylance in a mapInArrow written by hand.

CPU time is that of this process, the JVM and all Python workers. Rows that are read go to Spark's ``noop`` sink, which
asks for every value of every row. The limits of the reads part their time: ``decode alone`` reads and makes Arrow
batches in the tasks and hands out none; ``JVM alone`` hands out batches that lie ready in the workers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.corpus import DIRECTORY
from bench.harness import Case
from bench.spark_tables import ROWS, all_processes, lance_table, parquet_files, session

__all__ = ["cases"]

State = Any
Batches = Iterable[pa.RecordBatch]
_numbers = count(1)

ONE = {"wide": "id", "narrow": "i3"}
SELECTIVE = {"wide": "id between 5000 and 5100", "narrow": "i0 = 77777"}


def cases() -> Iterator[Case[State]]:
    """Reads, writes and the first use of a session."""
    for kind in ROWS:
        yield reading(f"read all columns, {kind}", kind)
    for kind in ROWS:
        yield pruning(f"read one column, {kind}", kind, columns=[ONE[kind]])
        yield pruning(f"selective filter, {kind}", kind, filter=SELECTIVE[kind])
    for kind in ROWS:
        yield writing(f"write, {kind}", kind)
    yield first_use()


def consumed(frame: Any) -> Any:
    """All values of all rows asked for."""
    frame.write.format("noop").mode("overwrite").save()
    return frame


def digest(frame: Any) -> object:
    """What frames of the same rows have in common."""
    first = frame.columns[0]
    return tuple(frame.selectExpr("count(1)", f"sum(`{first}`)").collect()[0]), tuple(frame.columns)


def _contenders(frames: Mapping[str, Callable[[], Any]]) -> dict[str, Callable[[State], object]]:
    return {name: lambda _, make=make: consumed(make()) for name, make in frames.items()}  # type: ignore[misc]


def reading(name: str, kind: str) -> Case[State]:
    """All columns of all rows."""
    from lancelet.spark import read

    lance_path = lance_table(kind)

    def source() -> Any:
        return session().read.format("lance").load(lance_path)

    def split(run: Callable[[Any, int, Batches], Iterator[pa.RecordBatch]]) -> Callable[[State], object]:
        from lancelet.spark.address import Address
        from lancelet.spark.frames import parallelism
        from lancelet.spark.options import ReadOptions
        from lancelet.spark.reading import plan_reading, plan_splits

        address = Address(uri=lance_path)
        reading = plan_reading(address.pinned(address.open()), ReadOptions())
        splits = plan_splits(reading, tasks=parallelism(session()))
        numbers = session().range(0, len(splits), 1, len(splits))
        frame = numbers.mapInArrow(partial(run, (reading, splits)), reading.schema)
        return lambda _: consumed(frame)

    return Case(
        name,
        lambda _: None,
        _contenders(
            {
                "lancelet": source,
                "lancelet.read": lambda: read(session(), lance_path),
                "Parquet": lambda: session().read.parquet(parquet_files(kind)).select(*source().columns),
                "pylance by hand": lambda: by_hand(lance_path),
            }
        ),
        "Parquet",
        limits={"decode alone": split(_decoded), "JVM alone": split(_ready)},
        compared=digest,
        goal=1 / 1.2,
        clock=all_processes,
    )


def by_hand(path: str, columns: list[str] | None = None, filter: str | None = None) -> Any:
    """What a user of pylance writes: a task for each fragment."""
    import lance
    from pyspark.sql.pandas.types import from_arrow_schema

    dataset: Any = lance.dataset(path)
    schema = dataset.scanner(columns=columns).projected_schema
    ids = [item.fragment_id for item in dataset.get_fragments()]
    run = partial(_scanned, path, columns, filter)
    frame = session().createDataFrame([(number,) for number in ids], "id long").repartition(len(ids))
    return frame.mapInArrow(run, from_arrow_schema(_plain_lists(schema)))


def _plain_lists(schema: pa.Schema) -> pa.Schema:
    kinds = (pa.list_(kind.value_type) if pa.types.is_fixed_size_list(kind) else kind for kind in schema.types)
    return pa.schema(list(zip(schema.names, kinds, strict=True)))


def _scanned(path: str, columns: list[str] | None, filter: str | None, batches: Batches) -> Iterator[pa.RecordBatch]:
    import lance

    dataset: Any = lance.dataset(path)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for found in dataset.get_fragment(number).to_batches(columns=columns, filter=filter):
                yield found.cast(_plain_lists(found.schema))


def _decoded(plan: Any, batches: Batches) -> Iterator[pa.RecordBatch]:
    from lancelet.spark.reading import read_split

    last = None
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for found in read_split(plan[0], plan[1][number]):
                last = found
    if last is not None:
        yield last.slice(0, 0)


#: Batches that lie ready in a worker.
_ready_batches: dict[tuple[str, int], list[pa.RecordBatch]] = {}


def _ready(plan: Any, batches: Batches) -> Iterator[pa.RecordBatch]:
    # The module of the worker: functions that travel have globals of their own.
    from bench import spark
    from lancelet.spark.reading import read_split

    for batch in batches:
        for number in batch.column(0).to_pylist():
            key = (plan[0].address.uri, number)
            if key not in spark._ready_batches:
                spark._ready_batches[key] = list(read_split(plan[0], plan[1][number]))
            yield from spark._ready_batches[key]


def pruning(name: str, kind: str, columns: list[str] | None = None, filter: str | None = None) -> Case[State]:
    """Less than all: told to the read, beside a read of all of it that Spark then prunes."""
    from lancelet.spark import read

    path = lance_table(kind)

    def unpruned(frame: Any) -> Any:
        chosen = frame if filter is None else frame.where(filter)
        return chosen if columns is None else chosen.select(*columns)

    def source() -> Any:
        reader = session().read.format("lance")
        return unpruned((reader if columns is None else reader.option("columns", ",".join(columns))).load(path))

    frames = {
        "lancelet": lambda: read(session(), path, columns=columns, filter=filter),
        "unpruned": lambda: unpruned(read(session(), path)),
        "source": source,
        "Parquet": lambda: unpruned(session().read.parquet(parquet_files(kind))),
        "pylance by hand": lambda: by_hand(path, columns, filter),
    }
    return Case(
        name,
        lambda _: None,
        _contenders(frames),
        "unpruned",
        compared=lambda frame: sorted(digest(frame)[1]) and digest(frame)[0][0],  # type: ignore[index]
        goal=1.5,
        clock=all_processes,
    )


def writing(name: str, kind: str) -> Case[State]:
    """Rows of Parquet files written into a new table."""
    from lancelet.spark import write

    def fresh(_: int) -> str:
        for old in DIRECTORY.glob(f"spark-written-{os.getpid()}-*"):
            shutil.rmtree(old, ignore_errors=True)
        return str(DIRECTORY / f"spark-written-{os.getpid()}-{next(_numbers)}")

    def frame() -> Any:
        return session().read.parquet(parquet_files(kind))

    def sink(path: str) -> object:
        frame().write.format("lance").mode("append").save(path)
        return "lance", path

    def helper(path: str) -> object:
        write(frame(), path)
        return "lance", path

    def parquet(path: str) -> object:
        frame().write.parquet(path)
        return "parquet", path

    def count_rows(made: Any) -> object:
        return session().read.format(made[0]).load(made[1]).count()

    def weigh(made: Any) -> int:
        return sum(file.stat().st_size for file in Path(made[1]).rglob("*") if file.is_file())

    return Case(
        name,
        fresh,
        {
            "lancelet": sink,
            "lancelet.write": helper,
            "Parquet": parquet,
            "pylance by hand": partial(_by_pylance, frame),
        },
        "Parquet",
        compared=count_rows,
        weigh=weigh,
        goal=1,
        clock=all_processes,
    )


def _by_pylance(frame: Callable[[], Any], path: str) -> object:
    import lance

    schema = _arrow_of(frame().schema)
    answers = frame().mapInArrow(partial(_fragments, path), "fragment string").collect()
    fragments = [lance.FragmentMetadata.from_json(row.fragment) for row in answers]
    lance.LanceDataset.commit(path, lance.LanceOperation.Overwrite(schema, fragments))
    return "lance", path


def _arrow_of(schema: Any) -> pa.Schema:
    from lancelet.spark.spark_arrow import spark_arrow

    return pa.schema([pa.field(field.name, field.type) for field in spark_arrow(schema)])


def _fragments(path: str, batches: Batches) -> Iterator[pa.RecordBatch]:
    import json
    from itertools import chain

    import lance

    first = next(iter(batches), None)
    if first is None:
        return
    reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
    made = lance.fragment.write_fragments(reader, path)
    yield pa.RecordBatch.from_pydict({"fragment": [json.dumps(item.to_json()) for item in made]})


_FIRST = """
import sys, time
from bench.spark import digest
from bench.spark_tables import all_processes, session
spark = session()
spark.range(1).collect()
began = time.perf_counter()
found = digest(spark.read.format(sys.argv[1]).load(sys.argv[2]).select("id"))
print(time.perf_counter() - began, all_processes(), found[0][0])
spark.stop()
"""


def first_use() -> Case[State]:
    """A process that makes a session and adds up a column: what only the first use of a session costs.

    Once more with Python workers forked from a daemon that has lancelet imported.
    """

    used = [0.0]

    def run(kind: str, path: Callable[[str], str], daemon: str = "pyspark.daemon") -> Callable[[State], object]:
        def once(_: State) -> object:
            command = [sys.executable, "-c", _FIRST, kind, path("wide")]
            environment = {**os.environ, "BENCH_DAEMON": daemon}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            _, seconds, found = done.stdout.split()[-3:]
            used[0] += float(seconds)
            return found

        return once

    contenders = {
        "lancelet": run("lance", lance_table),
        "preloaded": run("lance", lance_table, "lancelet.spark.daemon"),
        "Parquet": run("parquet", parquet_files),
    }
    return Case("first use, session included", lambda _: None, contenders, "Parquet", clock=lambda: used[0])
