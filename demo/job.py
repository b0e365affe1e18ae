"""Plan, run, commit: tasks that Spark carries to its Python workers, and one atomic put by the driver."""

from __future__ import annotations

import hashlib
import json
import pickle
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from demo import corpus
from lancelet.errors import AlreadyExists
from lancelet.file import LanceFileReader, LanceFileSession
from lancelet.storage.store import Store

SCHEMA = pa.schema([("package", pa.string()), ("name", pa.string()), ("text", pa.large_string())])
Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Written:
    """One data file that a task wrote: the driver's manifest names it, or nobody does."""

    path: str
    rows: int
    size: int
    text_bytes: int
    #: A fingerprint of the rows.
    digest: str
    write_seconds: float


@dataclass(frozen=True, slots=True)
class Found:
    """What a search task saw of one object."""

    packages: dict[str, int]
    rows: int
    bytes_read: int
    text_bytes: int
    decode_seconds: float


def distribute(spark: SparkSession, tasks: list[Task], run: Callable[[Task], Result]) -> list[Result]:
    """Run each task in a Spark task of its own and return the results in order."""
    work = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(
        partial(_worker, tasks, run), "number long, result binary"
    )
    answers = {row.number: row.result for row in work.collect()}
    return [pickle.loads(answers[number]) for number in range(len(tasks))]


def _worker(
    tasks: list[Task], run: Callable[[Task], Result], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            result = pickle.dumps(run(tasks[number]))
            yield pa.RecordBatch.from_pydict({"number": [number], "result": [result]})


def ingest(place: str, task: corpus.Task) -> Written:
    """Read the task's documents and write them as one new data file that nothing refers to yet."""
    packages, names, texts = zip(*corpus.documents(task), strict=True)
    table = pa.table([packages, names, texts], schema=SCHEMA)
    path = f"data/{uuid.uuid4().hex}.lance"
    began = time.perf_counter()
    with LanceFileSession(place).open_writer(path, schema=SCHEMA) as writer:
        writer.write_batch(table)
    seconds = time.perf_counter() - began
    return Written(path, table.num_rows, writer.size_bytes or 0, table.nbytes, digest(table), seconds)


def digest(table: pa.Table) -> str:
    """A fingerprint of the rows, whatever their buffers look like."""
    state = hashlib.sha256()
    for column in table.columns:
        for text in column.to_pylist():
            state.update(text.encode() + b"\0")
    return state.hexdigest()


def commit(store: Store, written: list[Written], racers: int) -> tuple[int, int]:
    """Publish all objects as version 1, by several committers at once; returns how many won and how many were told."""
    manifest = json.dumps({"version": 1, "objects": [asdict(item) for item in written]}).encode()

    def attempt(_: int) -> bool:
        try:
            store.put_if_absent("_manifests/1.json", manifest)
        except AlreadyExists:
            return False
        return True

    with ThreadPoolExecutor(racers) as pool:
        won = sum(pool.map(attempt, range(racers)))
    return won, racers - won


def snapshot(store: Store) -> list[Written]:
    """What version 1 consists of, read back from its manifest."""
    manifest = json.loads(bytes(store.read_all("_manifests/1.json")))
    return [Written(**item) for item in manifest["objects"]]


def load(place: str, item: Written, names: Iterable[str]) -> tuple[pa.Table, LanceFileReader]:
    """Some columns of a file: only their bytes are read."""
    reader = LanceFileSession(place).open_reader(item.path, columns=[*names])
    return reader.read_all().to_table(), reader


def verify(place: str, item: Written) -> bool:
    """Whether a file reads back as exactly what was written."""
    table, _ = load(place, item, SCHEMA.names)
    return digest(table) == item.digest


def search(place: str, word: str, item: Written) -> Found:
    """How many documents of each package hold a word; the column of names is never read."""
    began = time.perf_counter()
    read, reader = load(place, item, ("package", "text"))
    seconds = time.perf_counter() - began
    hits = read["package"].filter(pc.match_substring(read["text"], word, ignore_case=True))
    counts = {pair["values"]: pair["counts"] for pair in hits.value_counts().to_pylist()}
    package, _, text = reader.file_statistics().columns
    return Found(counts, item.rows, package.size_bytes + text.size_bytes, read.nbytes, seconds)
