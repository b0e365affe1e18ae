"""Declarations of pipelines in YAML: read as they are meant, refused by the place of what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lancelet.errors import InvalidInput, NotFound
from lancelet.pipeline import (
    Cleanup,
    Embed,
    FilesSource,
    Function,
    Index,
    LanceSource,
    Pipeline,
    PythonSource,
    SqlSource,
    Transform,
    Write,
    load,
    loads,
)

LEAST = """
name: docs
source: {files: /data/*.json, format: json}
write: {table: /data/t.lance}
"""


def test_a_whole_declaration_is_what_it_says() -> None:
    read = loads("""
name: docs
source:
  files: [/data/*.csv, "/more/*.csv"]
  format: csv
  schema: id long, text string
  options: {header: true, maxColumns: 7}
functions:
  words: {python: "texts:words", returns: int}
transform:
  - select: {id: id, text: trim(text)}
    where: text is not null
  - sql: select *, words(text) as words from input
embed: {column: text, into: vector, dimension: 64}
write: {table: /data/t.lance, mode: merge, key: id, enable_stable_row_ids: yes, inputs_per_commit: 1_000}
index:
  - {column: id}
  - {column: words, type: BITMAP, parameters: {a: 1, b: 0.5, c: true, d: x}}
cleanup: {retention_hours: 24}
""")
    assert read == Pipeline(
        name="docs",
        source=FilesSource(
            files=("/data/*.csv", "/more/*.csv"),
            format="csv",
            schema="id long, text string",
            options={"header": "true", "maxColumns": "7"},
        ),
        functions={"words": Function(python="texts:words", returns="int")},
        transform=(
            Transform(select={"id": "id", "text": "trim(text)"}, where="text is not null"),
            Transform(sql="select *, words(text) as words from input"),
        ),
        embed=(Embed(column="text", into="vector", dimension=64),),
        write=Write(table="/data/t.lance", mode="merge", key="id", enable_stable_row_ids=True, inputs_per_commit=1000),
        index=(
            Index(column="id"),
            Index(column="words", type="BITMAP", parameters={"a": 1, "b": 0.5, "c": True, "d": "x"}),
        ),
        cleanup=Cleanup(retention_hours=24),
    )


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("{sql: select 1 as id, key: id}", SqlSource(sql="select 1 as id", key="id")),
        ("{lance: s3://b/t, columns: [id, a.b]}", LanceSource(lance="s3://b/t", columns=("id", "a.b"))),
        (
            "{inputs: 'm:names', rows: 'm:rows', schema: id long}",
            PythonSource(inputs="m:names", rows="m:rows", schema="id long"),
        ),
    ],
)
def test_a_source_is_known_by_its_first_word(text: str, source: object) -> None:
    assert loads(f"name: a\nsource: {text}\nwrite: {{table: t}}").source == source


def test_steps_named_without_more_are_as_usual() -> None:
    assert loads(LEAST + "cleanup:\n").cleanup == Cleanup()


def test_one_step_need_not_be_a_list() -> None:
    assert loads(LEAST + "index: {column: id}\n").index == (Index(column="id"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the declaration is empty [uri=p.yml]; it has name, source and write"),
        ("- 1", "the declaration is a list, expected a mapping [uri=p.yml:1:1]"),
        ("a: [", "the declaration is no YAML: expected the node content, but found '<stream end>' [uri=p.yml:1:5]"),
        ("name: a\nname: b", "name is given twice [uri=p.yml:2:1]"),
        ("name: a", "source is missing [uri=p.yml:1:1]"),
        ("name: a b\n" + LEAST.split("\n", 2)[2], "the name is 'a b', expected letters, digits and _.- only"),
        ("name: a\nsorce: {}", "sorce is unknown [uri=p.yml:2:1]; did you mean source?"),
        ("name: a\nsource: {}", "source says nowhere to read from [uri=p.yml:2:9]; give one of files, sql, frame"),
        ("name: a\nsource: {sql: x, files: y}", "source has sql and files [uri=p.yml:2:9]"),
        ("name: a\nsource: {sql: x}", "source.key is missing [uri=p.yml:2:9]"),
        ("name: a\nsource: {files: x, format: jso}", "the format of files is 'jso', expected one of text, json, csv"),
        (
            LEAST + "embed: {column: a, into: b, dimension: many}",
            "embed[0].dimension is 'many', expected a whole",
        ),
        (LEAST + "embed: {column: a, into: b, dimension: 0}", "dimension is 0, expected at least 1 [uri=p.yml:5:8]"),
        (LEAST + "embed: [{column: a, into: b}, {column: c, into: b}]", "several embeddings go into one column: b, b"),
        (LEAST + "transform: {sql: x, where: y}", "a transform says several things at once [uri=p.yml:5:12]"),
        (LEAST + "transform: {select: {a: [b]}}", "transform[0].select.a is a list, expected a text [uri=p.yml:5:25]"),
        (LEAST + "index: {column: }", "index[0].column is empty, expected a text [uri=p.yml:5:16]"),
        (LEAST.replace("}\n", ", mode: upsert}\n").replace("json, mode: upsert", "json"), "mode is 'upsert', expected"),
        ("name: a\nwrite: {table: t, mode: merge}", "mode merge has no key"),
        ("name: ${LANCELET_NO_SUCH}", "name needs the variable LANCELET_NO_SUCH, which the environment lacks"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        loads(text, name="p.yml")
    assert message in str(caught.value)
    assert str(caught.value.uri).startswith("p.yml")


def test_variables_of_the_environment_are_put_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCELET_BUCKET", "s3://b")
    text = LEAST.replace("/data/t.lance", "'${LANCELET_BUCKET}/${LANCELET_NO_SUCH:-t}.lance'")
    assert loads(text).write.table == "s3://b/t.lance"


def test_a_file_knows_its_folder(tmp_path: Path) -> None:
    (tmp_path / "p.yml").write_text(LEAST)
    assert load(tmp_path / "p.yml").folder == str(tmp_path.resolve())
    with pytest.raises(NotFound, match="there is no declaration"):
        load(tmp_path / "q.yml")
