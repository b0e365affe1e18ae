"""Pipelines on Spark: what runs bring into the table when nothing or something changed, or a run was stopped."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

import lancelet
from lancelet.errors import Conflict, InvalidInput, NotFound, Unsupported
from lancelet.events import Event, subscribe
from lancelet.pipeline import (
    Cleanup,
    Embed,
    FilesSource,
    FrameSource,
    Index,
    LanceSource,
    Pipeline,
    PythonSource,
    RunFigures,
    SqlSource,
    Transform,
    Write,
    load,
    open_embedder,
    plan,
    run,
)
from lancelet.pipeline.lock import held
from lancelet.spark.table import LanceTable
from lancelet.storage import open_store

ANIMALS = "cats and dogs have fur and paws"
METALS = "iron and copper come of ore and rust"


def put(folder: Path, name: str, *rows: Mapping[str, object]) -> Path:
    """A file of JSON lines; written again it has another time."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / name
    before = place.stat().st_mtime if place.exists() else 0.0
    place.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    if before:
        os.utime(place, (before + 5, before + 5))
    return place


def rows(table: Path, *names: str) -> list[tuple[Any, ...]]:
    """The rows of a table as pylance reads them, in order."""
    columns = lance.dataset(str(table)).to_table(columns=list(names)).to_pydict()
    return sorted(zip(*(columns[name] for name in names), strict=True), key=repr)


def counts(figures: RunFigures) -> tuple[object, ...]:
    """Inputs that were new, changed, gone, and as they were."""
    facts = figures.step("inputs").facts
    return facts["new"], facts["changed"], facts["gone"], facts["same"]


def vectors_of(values: list[str]) -> Any:
    """A model of one's own: lengths and vowels."""
    return np.array([[len(value), sum(letter in "aeiou" for letter in value)] for value in values], np.float32)


def documents(home: Path, **changes: Any) -> Pipeline:
    usual: dict[str, Any] = {
        "name": "docs",
        "source": FilesSource(files=str(home / "in" / "*.json"), format="json", schema="id long, text string"),
        "transform": (Transform(where="text is not null"), Transform(sql="select *, length(text) as n from input")),
        "write": Write(table=str(home / "t")),
    }
    return Pipeline(**{**usual, **changes})


def test_a_pipeline_from_files_to_a_searched_table_and_again_with_changes(spark: SparkSession, tmp_path: Path) -> None:
    source, table = tmp_path / "in", tmp_path / "t"
    put(source, "a.json", {"id": 1, "text": ANIMALS}, {"id": 2, "text": "dogs and cats with paws"})
    put(source, "b [1].json", {"id": 3, "text": METALS}, {"id": 4, "text": "rust is iron, copper is not"})
    put(source, "none.json", {"id": 5, "text": None})
    (tmp_path / "p.yml").write_text("""
name: docs
source: {files: in/*.json, format: json, schema: "id long, text string"}
transform: {where: text is not null}
embed: {column: text, into: vector, dimension: 2}
write: {table: t, inputs_per_commit: 2, enable_stable_row_ids: true}
compact:
index: {column: id}
cleanup: {retention_hours: 24}
""")
    pipeline = load(tmp_path / "p.yml")
    assert "3 new, 0 changed, 0 gone, 0 as they were" in str(plan(spark, pipeline))
    assert not table.exists()

    seen: list[Event] = []
    with subscribe(seen.append):
        first = run(spark, pipeline)
    assert counts(first) == (3, 0, 0, 0)
    assert first.version_before is None
    assert rows(table, "id", "text")[0] == (1, ANIMALS)
    assert [event.facts["step"] for event in seen if event.name == "pipeline.step.end"] == [
        "inputs",
        "learn",
        "write",
        "compact",
        "index",
        "cleanup",
    ]
    query = open_embedder(str(table)).embed(["a cat"])[0]
    found = LanceTable.forPath(spark, table).search({"column": "vector", "q": query, "k": 2}, columns=["id"])
    assert {row.id for row in found.collect()} == {1, 2}

    again = run(spark, pipeline)
    assert (again.idle, counts(again), again.version) == (True, (0, 0, 0, 3), first.version)

    put(source, "a.json", {"id": 1, "text": "no cats any more"})
    put(source, "c.json", {"id": 6, "text": METALS})
    (source / "b [1].json").unlink()
    told = plan(spark, pipeline)
    assert not told.idle
    assert "1 new, 1 changed, 1 gone, 1 as they were" in str(told)
    second = run(spark, pipeline)
    assert counts(second) == (1, 1, 1, 1)
    assert rows(table, "id", "text") == [(1, "no cats any more"), (6, METALS)]
    assert len(lance.dataset(str(table)).get_fragments()) == 1
    assert second.step("learn").idle
    assert lancelet.dataset(str(table)).describe_indices()[0].num_rows_indexed == 2

    # What is gone with a restore is made again, and what is as it was then is not.
    LanceTable.forPath(spark, table).restoreToVersion(first.version or 0)
    assert counts(run(spark, pipeline)) == (1, 1, 1, 1)
    assert rows(table, "id") == [(1,), (6,)]


def test_a_run_that_was_stopped_is_gone_on_with(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(6):
        put(tmp_path / "in", f"{number}.json", {"id": number, "text": f"text {number}"})
    embed = Embed(column="text", into="vector", function=vectors_of, dimension=2)
    pipeline = documents(tmp_path, embed=(embed,), write=Write(table=str(tmp_path / "t"), inputs_per_commit=2))

    class Stop(Exception):
        pass

    def stop(event: Event) -> None:
        if event.name == "pipeline.commit":
            raise Stop

    with pytest.raises(Stop), subscribe(stop):
        run(spark, pipeline)
    there = rows(tmp_path / "t", "id")
    assert 0 < len(there) < 6
    rest = run(spark, pipeline)
    assert counts(rest)[::3] == (6 - len(there), len(there))
    assert rows(tmp_path / "t", "id", "n", "vector") == [(at, 6, [6.0, 1.0]) for at in range(6)]
    assert run(spark, pipeline).idle

    # Another model means that all vectors are of the other.
    other = replace(pipeline, embed=(replace(embed, function=lambda values: 2 * vectors_of(values)),))
    assert counts(run(spark, other)) == (0, 6, 0, 0)
    assert rows(tmp_path / "t", "id", "vector") == [(at, [12.0, 2.0]) for at in range(6)]
    store = open_store(str(tmp_path / "t"))
    with held(store, "_lancelet/pipelines/docs", "docs"), pytest.raises(Conflict, match="another run of pipeline docs"):
        run(spark, other)


def test_rows_are_merged_by_key_beside_columns_and_rows_of_others(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    spark.createDataFrame(
        [(1, "old", "kept"), (9, "theirs", "kept")], "id long, name string, note string"
    ).write.format("lance").save(str(table), mode="append")
    given: list[tuple[int, str]] = [(1, "one"), (2, "two"), (3, "three")]

    def frame(session: SparkSession) -> DataFrame:
        return session.createDataFrame(given, "id long, name string")

    pipeline = Pipeline(
        name="names",
        source=FrameSource(frame=frame, key="id"),
        write=Write(table=str(table), mode="merge", key="id", removed="delete"),
    )
    first = run(spark, pipeline)
    assert first.step("write").facts["updated"] == 1
    everything = ("id", "name", "note")
    expected = [(1, "one", "kept"), (2, "two", None), (3, "three", None), (9, "theirs", "kept")]
    assert rows(table, *everything) == expected
    assert run(spark, pipeline).idle
    given[1:] = [(2, "zwei")]
    assert counts(run(spark, pipeline)) == (0, 1, 1, 1)
    assert rows(table, *everything) == [(1, "one", "kept"), (2, "zwei", None), (9, "theirs", "kept")]
    given.append((2, "twice"))
    with pytest.raises(InvalidInput, match="the source has 2 rows with the key '2'"):
        run(spark, pipeline)


def inputs() -> dict[str, str]:
    return {"x": "1", "y": "1"}


def rows_of(name: str) -> list[dict[str, object]]:
    return [{"id": f"{name}{at}", "words": ["a", name]} for at in range(2)]


def test_functions_name_inputs_and_make_rows_and_append_keeps_all(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    pipeline = Pipeline(
        name="made",
        source=PythonSource(inputs=inputs, rows=rows_of, schema="id string, words array<string>"),
        transform=(Transform(explode="words", select={"id": "id", "word": "words"}),),
        write=Write(table=str(table), mode="append"),
    )
    run(spark, pipeline)
    assert rows(table, "id", "word")[:2] == [("x0", "a"), ("x0", "x")]
    changed = replace(pipeline, source=replace(pipeline.source, inputs=lambda: {"y": "2"}))
    assert counts(run(spark, changed)) == (0, 1, 1, 0)
    assert len(rows(table, "id")) == 12
    assert run(spark, changed).idle


def test_another_table_is_followed_by_its_row_ids(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "source"
    lancelet.write_dataset(
        [{"id": at, "x": at} for at in range(20)], str(table), max_rows_per_file=5, enable_stable_row_ids=True
    )
    pipeline = Pipeline(
        name="copy",
        source=LanceSource(lance=str(table), columns=("id", "x"), filter="id <> 3"),
        write=Write(table=str(tmp_path / "t")),
        index=(Index(column="id"),),
        cleanup=Cleanup(retention_hours=0),
    )
    assert counts(run(spark, pipeline)) == (19, 0, 0, 0)
    source = LanceTable.forPath(spark, table)
    source.update("id = 7", {"x": "-1"})
    source.delete("id < 3")
    assert counts(run(spark, pipeline)) == (0, 1, 3, 15)
    assert rows(tmp_path / "t", "id", "x") == sorted([(at, at) for at in range(4, 20) if at != 7] + [(7, -1)], key=repr)
    assert [item["version"] for item in lance.dataset(str(tmp_path / "t")).versions()] == [
        lance.dataset(str(tmp_path / "t")).version
    ]


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"source": FilesSource(files="/nowhere/*.json", format="json")}, NotFound, "no file matches"),
        ({"index": (Index(column="id", type="BTREEE"),)}, Unsupported, "there is no index type 'BTREEE'"),
        ({"source": SqlSource(sql="select 1 as id", key="no")}, InvalidInput, "no column 'no' for its key"),
        (
            {"source": SqlSource(sql="select 1 as id", key="id"), "transform": (Transform(sql="select 1"),)},
            InvalidInput,
            r"transform\[0\] lost the column _input",
        ),
        (
            {
                "source": SqlSource(sql="select 1 as id", key="id"),
                "transform": (),
                "embed": (Embed(column="no", into="v", function=vectors_of),),
            },
            InvalidInput,
            "no column 'no' to embed",
        ),
    ],
)
def test_what_cannot_be_carried_out_is_said(
    spark: SparkSession, tmp_path: Path, changes: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        run(spark, documents(tmp_path, **changes))
    assert not (tmp_path / "t" / "data").exists()


def test_the_example_of_the_guide_is_true(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    guide = (Path(__file__).resolve().parents[2] / "docs" / "pipeline.md").read_text()
    for block in re.findall(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/pipeline.md", "exec"), {"__name__": "__main__"})
