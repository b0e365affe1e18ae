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

from demo import columns, corpus
from lancelet.errors import AlreadyExists
from lancelet.storage.store import Store

NAMES = ("package", "name", "text")
Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Written:
    """One object that a task wrote: the driver's manifest names it, or nobody does."""

    path: str
    rows: int
    columns: dict[str, columns.Column]
    digest: str
    kernel_seconds: float


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


def ingest(store: Store, task: corpus.Task) -> Written:
    """Read the task's documents and write them, packed, as one new object that nothing refers to yet."""
    rows = list(corpus.documents(task))
    strings = {name: pa.array([row[at] for row in rows], pa.large_string()) for at, name in enumerate(NAMES)}
    began, packed, bodies, position = time.perf_counter(), {}, [], 0
    for name, values in strings.items():
        packed[name], body = columns.pack(values, position)
        bodies.append(body)
        position += len(body)
    seconds = time.perf_counter() - began
    path = f"data/{uuid.uuid4().hex}.packed"
    with store.writer(path) as writer:
        for body in bodies:
            writer.write(body)
    return Written(path, len(rows), packed, digest(strings), seconds)


def digest(strings: dict[str, pa.LargeStringArray]) -> str:
    """A fingerprint of the values, whatever their buffers look like."""
    state = hashlib.sha256()
    for values in strings.values():
        for text in values.to_pylist():
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
    return [
        Written(**{**item, "columns": {name: columns.Column(**facts) for name, facts in item["columns"].items()}})
        for item in manifest["objects"]
    ]


def load(store: Store, item: Written, names: Iterable[str]) -> dict[str, pa.LargeStringArray]:
    """Some columns of an object: only their bytes are read."""
    chosen = {name: item.columns[name] for name in names}
    bodies = store.read(item.path, [(column.start, column.length) for column in chosen.values()])
    return {name: columns.unpack(column, body) for (name, column), body in zip(chosen.items(), bodies, strict=True)}


def verify(store: Store, item: Written) -> bool:
    """Whether an object reads back as exactly what was written."""
    return digest(load(store, item, NAMES)) == item.digest


def search(store: Store, word: str, item: Written) -> Found:
    """How many documents of each package hold a word; the column of names is never read."""
    began = time.perf_counter()
    read = load(store, item, ("package", "text"))
    seconds = time.perf_counter() - began
    hits = read["package"].filter(pc.match_substring(read["text"], word, ignore_case=True))
    counts = {pair["values"]: pair["counts"] for pair in hits.value_counts().to_pylist()}
    taken = [item.columns[name] for name in read]
    return Found(
        counts, item.rows, sum(column.length for column in taken), sum(column.text_bytes for column in taken), seconds
    )
