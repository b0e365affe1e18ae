"""Indexes over paths of JSON documents: ours and pylance's answer in both libraries as a look at each document does."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import lance
import pyarrow as pa
import pytest
from lance.indices import IndexConfig as TheirConfig

import lancelet
from lancelet.errors import InvalidInput, Unsupported
from lancelet.indices import IndexConfig

VALUES: dict[str, list[object]] = {
    "int": [None, *range(-3, 20)],
    "string": [None, "a", "b", "abc", "", "zebra crossing"],
    "float": [None, 1.5, 2, 0.25, -7],
    "bool": [None, True, False],
}
QUESTIONS = {
    "int": ["{} = 5", "{} > 12", "{} IS NULL", "NOT ({} < 3)", "{} IN (1, 2)", "{} BETWEEN 2 AND 4"],
    "string": ["{} = 'a'", "{} >= 'b'", "{} IS NOT NULL", "contains({}, 'zebra')", "{} IN ('b', 'abc')"],
    "float": ["{} = 2", "{} < 2", "{} IS NULL"],
    "bool": ["{} = true", "{}", "NOT {}", "{} IS NULL"],
}
TARGETS = [
    (name, target)
    for name in VALUES
    for target in ("BTREE", "BITMAP", "ZONEMAP", "NGRAM", "BLOOMFILTER")
    if (target != "NGRAM" or name == "string") and (target != "BLOOMFILTER" or name == "int")
]


def documents(name: str, count: int, seed: int) -> pa.Array:
    draw = Random(f"{name} {seed}")
    choices = VALUES[name]
    made = [{"y": at} if at % 11 == 3 else {"x": draw.choice(choices), "y": at} for at in range(count)]
    if name == "float":
        made[0] = {"x": 1.5}
    return pa.array([None if at % 13 == 5 else json.dumps(item) for at, item in enumerate(made)], pa.json_())


def make(path: Path, name: str, **options: object) -> None:
    table = pa.table({"j": documents(name, 300, 0), "i": range(300)})
    lance.write_dataset(table, path, max_rows_per_file=100, **options)


def built(path: Path, target: str, by: str) -> None:
    said = {"path": "x", "target_index_type": target.lower()}
    if by == "pylance":
        lance.dataset(path).create_scalar_index("j", TheirConfig("json", said))
    else:
        lancelet.dataset(path).create_scalar_index("j", IndexConfig("json", said))


def rows(dataset: object, condition: str, **options: object) -> list[int]:
    found: list[int] = dataset.to_table(filter=condition, columns=["i"], **options)["i"].to_pylist()  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("by", ["pylance", "lancelet"])
@pytest.mark.parametrize(("name", "target"), TARGETS)
def test_an_index_over_a_path_answers_as_a_look_at_each_document(
    tmp_path: Path, name: str, target: str, by: str
) -> None:
    path = tmp_path / "t"
    make(path, name)
    built(path, target, by)
    (description,) = lancelet.dataset(path).describe_indices()
    assert (description.index_type, description.details["path"]) == ("Json", "x")
    ours, theirs = lancelet.dataset(path), lance.dataset(path)
    for question in QUESTIONS[name]:
        condition = question.format(f"json_get_{name}(j, 'x')")
        wanted = rows(theirs, condition, use_scalar_index=False)
        assert rows(theirs, condition) == wanted, condition
        assert rows(ours, condition) == wanted, condition
        assert rows(ours, condition, use_scalar_index=False) == wanted, condition


@pytest.mark.parametrize("by", ["pylance", "lancelet"])
def test_an_index_over_a_path_is_read_instead_of_the_documents(tmp_path: Path, by: str) -> None:
    make(tmp_path / "t", "int")
    built(tmp_path / "t", "BTREE", by)
    for dataset, sign in ((lancelet.dataset(tmp_path / "t"), "j_idx"), (lance.dataset(tmp_path / "t"), "ScalarIndex")):
        assert sign in dataset.scanner(filter="json_get_int(j, 'x') = 5").explain_plan()
        assert "ScalarIndexQuery" not in dataset.scanner(filter="json_get_int(j, 'y') = 5").explain_plan()


@pytest.mark.parametrize("target", ["BTREE", "BITMAP", "ZONEMAP"])
def test_a_question_about_another_type_than_the_index_has_is_answered_by_the_documents(
    tmp_path: Path, target: str
) -> None:
    make(tmp_path / "t", "int")
    built(tmp_path / "t", target, "lancelet")
    dataset = lancelet.dataset(tmp_path / "t")
    for condition in (
        "json_get_float(j, 'x') > 3",
        "json_get_string(j, 'x') = '5'",
        "NOT (json_get_float(j, 'x') > 3)",
    ):
        assert rows(dataset, condition) == rows(lance.dataset(tmp_path / "t"), condition, use_scalar_index=False)


@pytest.mark.parametrize("by", ["pylance", "lancelet"])
@pytest.mark.parametrize("target", ["BTREE", "BITMAP", "ZONEMAP"])
def test_rows_that_are_appended_changed_and_compacted_are_found(tmp_path: Path, target: str, by: str) -> None:
    path = tmp_path / "t"
    make(path, "int")
    built(path, target, by)
    table = pa.table({"j": documents("int", 60, 1), "i": range(300, 360)})
    lance.write_dataset(table, path, mode="append")
    lance.dataset(path).delete("i % 7 = 2")
    for _ in range(2):
        for question in QUESTIONS["int"]:
            condition = question.format("json_get_int(j, 'x')")
            wanted = rows(lance.dataset(path), condition, use_scalar_index=False)
            assert rows(lancelet.dataset(path), condition) == wanted
            assert rows(lance.dataset(path), condition) == wanted
        lancelet.dataset(path).optimize.optimize_indices()
        (description,) = lancelet.dataset(path).describe_indices()
        assert len(description.segments[-1].fragment_ids) == 4


def test_values_of_other_types_than_the_first_are_refused(tmp_path: Path) -> None:
    texts = ['{"x": 1}', '{"x": 2.5, "s": "a", "o": {"y": 1}}']
    dataset = lancelet.write_dataset(pa.table({"j": pa.array(texts, pa.json_())}), tmp_path / "t")
    with pytest.raises(InvalidInput, match="no integers"):
        dataset.create_scalar_index("j", IndexConfig("json", {"path": "x", "target_index_type": "btree"}))
    with pytest.raises(InvalidInput, match="an object or array"):
        dataset.create_scalar_index("j", IndexConfig("json", {"path": "$.o", "target_index_type": "btree"}))
    with pytest.raises(InvalidInput, match="needs a path"):
        dataset.create_scalar_index("j", IndexConfig("json", {"target_index_type": "btree"}))
    with pytest.raises(InvalidInput, match="is no 'label_list' index"):
        dataset.create_scalar_index("j", IndexConfig("json", {"path": "x", "target_index_type": "label_list"}))
    said = {"path": "x", "target_index_type": "btree", "target_data_type": "Float64"}
    dataset.create_scalar_index("j", IndexConfig("json", said))
    assert dataset.to_table(filter="json_get_float(j, 'x') > 2").num_rows == 1


def test_an_index_that_could_not_say_what_it_calls_rows_is_not_made_and_not_used(tmp_path: Path) -> None:
    make(tmp_path / "t", "int", enable_stable_row_ids=True)
    with pytest.raises(Unsupported, match="stable row ids"):
        built(tmp_path / "t", "ZONEMAP", "lancelet")
    built(tmp_path / "t", "ZONEMAP", "pylance")
    dataset = lancelet.dataset(tmp_path / "t")
    condition = "json_get_int(j, 'x') > 12"
    assert rows(dataset, condition) == rows(dataset, condition, use_scalar_index=False)
    built(tmp_path / "t", "BITMAP", "lancelet")
    assert rows(lance.dataset(tmp_path / "t"), condition) == rows(dataset, condition)


PATHS = (
    *("json_get_int(j, 'x')", "json_get_float(j, 'x')", "json_get_string(j, 'x')", "json_get_bool(j, 'b')"),
    *(
        "json_get(j, 'x')",
        "json_get_string(j, 's')",
        "json_get_int(json_get(j, 'a'), '1')",
        "json_extract(j, '$.a[1]')",
    ),
    *("json_extract(j, '$')", "json_extract(j, 's')", "json_extract(j, '$.\"a.b\"')", "json_exists(j, '$.a[0]')"),
    *("json_array_length(j, '$.a')", "json_array_contains(j, '$.a', 't')", "json_array_contains(j, '$.a', '2')"),
    *("json_get_int(j, 'a.b')", "json_get_float(j, 'f')", "json_get_int(j, 'f')", "json_extract(j, '$[\"o\"].y')"),
)


@pytest.mark.parametrize("function", PATHS)
def test_functions_of_documents_give_what_pylance_gives(tmp_path: Path, function: str) -> None:
    made = [
        {"x": 3, "s": 'é"q\n', "a": [1, 2, "t"], "b": True, "f": 2.5},
        {"x": "12", "a.b": 7, "o": {"y": [1, None]}, "b": "TRUE", "f": -2.5},
        {"x": 2.0, "a": [], "b": None, "s": "", "f": 10**17},
        {"x": None, "a": ["t"], "b": False, "f": "1e2"},
        {"x": True, "a": [[2]]},
        [],
        5,
        None,
    ]
    texts = [*(json.dumps(item) for item in made), None]
    lance.write_dataset(pa.table({"j": pa.array(texts, pa.json_())}), tmp_path / "t")
    theirs = lance.dataset(tmp_path / "t").to_table(columns={"v": function})
    ours = lancelet.dataset(tmp_path / "t").to_table(columns={"v": function})
    assert ours["v"].type == theirs["v"].type
    assert ours["v"].to_pylist() == theirs["v"].to_pylist()


@pytest.mark.parametrize("value", ["abc", [1], {"a": 1}, 2**63, 1e300])
def test_a_value_that_is_no_integer_is_refused_as_pylance_does(tmp_path: Path, value: object) -> None:
    lance.write_dataset(pa.table({"j": pa.array([json.dumps({"x": value})], pa.json_())}), tmp_path / "t")
    for library in (lance, lancelet):
        with pytest.raises(Exception, match=r"integer|number"):
            library.dataset(tmp_path / "t").to_table(columns={"v": "json_get_int(j, 'x')"})


@pytest.mark.parametrize("path", ["$..y", "$.x[*]", "x.[", "$.x ? (@ == 1)", "$.x[last]"])
def test_paths_that_are_not_offered_say_so(path: str) -> None:
    dataset = lancelet.write_dataset(
        pa.table({"j": pa.array(['{"x": 1}'], pa.json_())}), "memory://json-paths", mode="overwrite"
    )
    with pytest.raises((Unsupported, InvalidInput), match="JSON path"):
        dataset.to_table(columns={"v": f"json_extract(j, '{path}')"})
