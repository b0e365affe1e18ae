"""Functions of JSON columns: what pylance gives for the same documents, paths and keys, and what Python finds there."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancelet
from lancelet.errors import InvalidInput, Unsupported
from lancelet.testing.agreement import disagreement

FIRST = (
    '{"a": 1, "b": "x", "c": [1, 2.5, "y", null, true, {"d": 3}], "e": {"f": {"g": null}}, "t": true, "n": null,'
    ' "5": 7, "s": "12", "fl": 1.0, "big": 12345678901234567890, "neg": -3.7, "fs": "1.5", "bs": "true"}'
)
DOCUMENTS = [
    FIRST,
    '[1, "a", [2, 3], {"a": 9}]',
    *("5", '"txt"', "null", "true", "{}", "[]", None),
    *('{"a": {"a": 2}}', '{"a": "1"}', '{"a": [5, 6]}', '{"a": 2.9}', '{"a": false}', '{"é b": "日本"}'),
]
PATHS = [
    "$.a",
    "a",
    "$.c[1]",
    "$",
    "",
    "$.e.f.g",
    "e.f",
    '$["a"]',
    '$."a"',
    "$[0]",
]
PATHS += ["$.c[9]", "$.a.a", "$.n", "$.nope", "$.", "$.c[", '$."é b"']
KEYS = ["a", "b", "c", "t", "n", "s", "5", "0", "-1", "fl", "big", "neg", "fs", "bs", "$.a", "é b"]
ITEMS = ["y", "1", "null", "true", "2.5", '"y"', '{"d":3}', "01", "a"]
EXPRESSIONS = [
    *(f"{name}(j, '{path}')" for name in ("json_extract", "json_exists", "json_array_length") for path in PATHS),
    *(f"json_get{kind}(j, '{key}')" for kind in ("", "_string", "_int", "_float", "_bool") for key in KEYS),
    *(f"json_array_contains(j, '{path}', '{item}')" for path in ("$.c", "$", "$.a", "$.nope") for item in ITEMS),
    *("json_get(json_get(j, 'a'), 'a')", "json_get(j, 0)", "json_extract(j, NULL)"),
    *("json_array_contains(j, '$.c', NULL)", "json_extract(s, '$.a')", "json_array_length(j)", "json_get_int(j, NULL)"),
    *(
        "contains_tokens(s, 'txt')",
        "contains_tokens(s, 'x 12')",
        "contains_tokens(s, 'tx')",
        "contains_tokens(s, 'a 1')",
    ),
    *("contains_tokens(s, '')", "contains_tokens(s, 'c-1')", "j"),
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    path = tmp_path_factory.mktemp("json") / "t"
    count = len(DOCUMENTS)
    documents = pa.ExtensionArray.from_storage(pa.json_(), pa.array(DOCUMENTS))
    keys = [["a", "b", "$.c[0]", None][number % 4] for number in range(count)]
    rows = pa.table({"id": range(count), "j": documents, "s": DOCUMENTS, "k": keys})
    lance.write_dataset(rows, path, data_storage_version="2.2")
    return lancelet.dataset(str(path)), lance.dataset(path)


def test_values_in_documents_are_those_that_pylance_finds(tables: tuple[Any, Any]) -> None:
    ours, theirs = tables
    for text in EXPRESSIONS:
        columns = {"id": "id", "v": text}
        told = disagreement(lambda c=columns: ours.to_table(columns=c), lambda c=columns: theirs.to_table(columns=c))
        # Pylance has an Arrow error where a value is of another kind.
        assert told is None or ("they raise" in told and "we InvalidInput" in told), (text, told)


@pytest.mark.parametrize("path", ["$.c[*]", "$.*", "$..a", "$.c[0,2]", "$.c?(@ == 1)", "$.a == 1", "$.c[last]"])
def test_paths_to_many_values_are_refused(tables: tuple[Any, Any], path: str) -> None:
    with pytest.raises((InvalidInput, Unsupported), match="path"):
        tables[0].to_table(columns={"v": f"json_extract(j, '{path}')"})


def test_what_is_no_path_is_refused(tables: tuple[Any, Any]) -> None:
    with pytest.raises(InvalidInput, match="no JSON path"):
        tables[0].count_rows(filter="json_exists(j, '$.c[')")


def generated(draw: Random, depth: int = 3) -> Any:
    kind = draw.randrange(8 if depth else 5)
    if kind >= 6:
        return {draw.choice(["a", "b", "", "key"]): generated(draw, depth - 1) for _ in range(draw.randrange(4))}
    if kind == 5:
        return [generated(draw, depth - 1) for _ in range(draw.randrange(4))]
    return [None, True, draw.randrange(-9, 9), draw.choice(["", "é", "text"]), draw.random()][kind]


@pytest.mark.parametrize("seed", range(3))
def test_python_finds_the_same_values_in_generated_documents(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    documents = [generated(draw) for _ in range(500)]
    texts = pa.array([None if draw.random() < 0.1 else json.dumps(item) for item in documents])
    rows = pa.table({"j": pa.ExtensionArray.from_storage(pa.json_(), texts)})
    dataset: Any = lancelet.write_dataset(rows, str(tmp_path / "t"), data_storage_version="2.2")
    for steps in (["a"], ["b", "a"], [1], ["key", 0], [0, "a", "b"], [""]):
        path = "$" + "".join(f"[{step}]" if isinstance(step, int) else f'["{step}"]' for step in steps)
        found = dataset.to_table(columns={"v": f"json_extract(j, '{path}')"})["v"].to_pylist()
        for text, value in zip(texts.to_pylist(), found, strict=True):
            wanted: Any = (json.loads(text),) if text is not None else ()
            for step in steps:
                inner = wanted[0] if wanted else None
                there = isinstance(inner, list) if isinstance(step, int) else isinstance(inner, dict)
                there = there and (step < len(inner) if isinstance(step, int) else step in inner)
                wanted = (inner[step],) if there else ()
            assert (value is None) == (not wanted)
            if wanted:
                assert json.loads(value) == wanted[0], (path, text)
