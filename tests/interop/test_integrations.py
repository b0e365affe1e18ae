"""Polars, DuckDB, pandas and Hugging Face: their rows are written as pylance does, and they query with pushdown."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import duckdb
import lance
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lancelet
from lancelet.integrations.huggingface import to_hf_dataset, to_hf_iterable_dataset

NOON = datetime.datetime(2024, 5, 6, 12)


def frame() -> pl.DataFrame:
    """A column of every type that Polars has and tables hold."""
    return pl.DataFrame(
        {
            "int": [1, 2, None],
            "text": ["a", None, "ccc"],
            "bytes": [b"1", b"", None],
            "list": [["x"], [], None],
            "struct": [{"a": 1, "b": "x"}, None, {"a": 3, "b": None}],
            "array": pl.Series([[1.0, 2.0]] * 3, dtype=pl.Array(pl.Float32, 2)),
            "category": pl.Series(["u", "v", "u"], dtype=pl.Categorical),
            "choice": pl.Series(["u", "v", "u"], dtype=pl.Enum(["u", "v"])),
            "decimal": pl.Series([decimal.Decimal("1.20"), None, decimal.Decimal("-3.40")]),
            "date": [NOON.date(), None, NOON.date()],
            "moment": [NOON] * 3,
            "zoned": pl.Series([NOON] * 3).dt.replace_time_zone("UTC"),
            "span": [datetime.timedelta(seconds=1)] * 3,
            "time": [datetime.time(1, 2)] * 3,
            "flag": [True, None, False],
        }
    )


@pytest.mark.parametrize("name", frame().columns)
def test_columns_of_polars_are_written_as_pylance_does(tmp_path: Path, name: str) -> None:
    rows = frame().select(name)
    theirs = lance.write_dataset(rows, tmp_path / "theirs")
    for made in (lancelet.write_dataset(rows, tmp_path / "ours"), lancelet.write_dataset(rows.lazy(), tmp_path / "l")):
        assert made.schema == theirs.schema
        assert made.to_table() == theirs.to_table()
        assert lance.dataset(made.uri).to_table() == theirs.to_table()


def test_a_lazy_frame_is_worked_out_while_it_is_written(tmp_path: Path) -> None:
    source = pl.DataFrame({"x": range(10_000)})
    query = source.lazy().filter(pl.col("x") % 2 == 0).with_columns(t=pl.col("x").cast(pl.String))
    made = lancelet.write_dataset(query, tmp_path / "t", max_rows_per_file=2_000)
    assert len(made.get_fragments()) == 3
    assert pl.from_arrow(made.to_table()).equals(query.collect())
    merged = made.merge_insert("x").when_matched_update_all().when_not_matched_insert_all()
    assert merged.execute(query.with_columns(x=pl.col("x") + 9_000)) == {
        "num_inserted_rows": 4_500,
        "num_updated_rows": 500,
        "num_deleted_rows": 0,
    }


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> lancelet.LanceDataset:
    """A thousand rows in ten fragments, some deleted."""
    numbers = np.arange(1_000)
    rows = pa.table(
        {
            "i": numbers,
            "s": [f"v{number % 10}" for number in numbers.tolist()],
            "x": pa.array(numbers / 7, mask=numbers % 11 == 0),
            "nested": [{"a": number % 3, "b": None} for number in numbers.tolist()],
            "list": [[number] * (number % 3) for number in numbers.tolist()],
            "day": pa.array(numbers.astype("i4"), pa.date32()),
        }
    )
    made = lancelet.write_dataset(rows, tmp_path_factory.mktemp("queried") / "t", max_rows_per_file=100)
    made.delete("i % 13 = 5")
    return made


CONDITIONS = [
    (pl.col("i") > 500, "i > 500"),
    ((pl.col("i") > 5) & pl.col("s").is_in(["v1", "v2"]), "i > 5 AND s IN ('v1', 'v2')"),
    (pl.col("x").is_null() | (pl.col("x") < 3.5), "x IS NULL OR x < 3.5"),
    (~(pl.col("s") == "v3"), "NOT s = 'v3'"),
    (pl.col("s").str.starts_with("v1"), "s LIKE 'v1%'"),
    (pl.col("day") < datetime.date(1970, 3, 1), "day < DATE '1970-03-01'"),
    (pl.col("i").is_between(10, 20), "i BETWEEN 10 AND 20"),
    (pl.col("nested").struct.field("a") == 1, "nested.a = 1"),
    (pl.col("i") % 7 == 3, "i % 7 = 3"),
    (pl.lit(False), "1 = 0"),
]


@pytest.mark.parametrize(("expression", "text"), CONDITIONS, ids=[text for _, text in CONDITIONS])
def test_polars_and_duckdb_find_the_rows_that_a_scan_finds(
    table: lancelet.LanceDataset, expression: pl.Expr, text: str
) -> None:
    expected = table.to_table(columns=["i", "s", "list"], filter=text)
    query = pl.scan_pyarrow_dataset(table).filter(expression).select("i", "s", "list")
    assert query.collect()["i"].to_list() == expected["i"].to_pylist()
    assert query.collect().to_dicts() == expected.to_pylist()
    # By a replacement scan: DuckDB finds the variable by its name.
    queried = table
    found = duckdb.sql(f"SELECT i, s, list FROM queried WHERE {text}").to_arrow_table()
    assert sorted(found.to_pylist(), key=lambda row: row["i"]) == expected.to_pylist()
    assert queried.count_rows(text) == expected.num_rows


def test_only_the_bytes_of_what_is_asked_for_are_read(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    rows = pa.table({"k": np.arange(200_000), "wide": draw.random(200_000), "other": draw.random(200_000)})
    lancelet.write_dataset(rows, tmp_path / "t", max_rows_per_file=50_000)
    told: list[lancelet.ScanStatistics] = []
    queried = lancelet.dataset(tmp_path / "t", default_scan_options={"scan_stats_callback": told.append})

    def bytes_of(query: Any) -> int:
        told.clear()
        query()
        return sum(item.bytes_read for item in told)

    whole = bytes_of(queried.to_table)
    assert whole > 3_000_000
    for query in (
        lambda queried=queried: duckdb.sql("SELECT k FROM queried WHERE k < 100").fetchall(),
        lambda queried=queried: duckdb.sql("SELECT wide FROM queried WHERE k = 77777").fetchall(),
        lambda queried=queried: duckdb.sql("SELECT count(*) FROM queried").fetchall(),
        lambda: pl.scan_pyarrow_dataset(queried).filter(pl.col("k") < 100).select("k").collect(),
        lambda: pl.scan_pyarrow_dataset(queried).filter(pl.col("k") == 7).select("other").collect(),
    ):
        assert 0 < bytes_of(query) < whole / 4


def test_duckdb_joins_and_sums_tables(table: lancelet.LanceDataset) -> None:
    names = lancelet.write_dataset(pa.table({"s": ["v1", "v2"], "name": ["one", "two"]}), "memory://duck-names")
    queried = table
    found = duckdb.sql("SELECT name, count(*) n, max(i) FROM queried JOIN names USING (s) GROUP BY name ORDER BY name")
    alive = [number for number in range(1_000) if number % 13 != 5]
    expected = [
        (name, len(picked), max(picked))
        for name, last in (("one", 1), ("two", 2))
        if (picked := [number for number in alive if number % 10 == last])
    ]
    assert found.fetchall() == expected
    assert queried.count_rows() == len(alive)
    assert names.count_rows() == 2
    made = lancelet.write_dataset(duckdb.sql("SELECT range AS r, range::VARCHAR AS t FROM range(5)"), "memory://duck")
    assert made.to_table().to_pydict() == {"r": list(range(5)), "t": list("01234")}


@pytest.mark.parametrize("index", [None, ["a", "b", "c"]])
def test_frames_of_pandas_are_written_as_pylance_does(tmp_path: Path, index: list[str] | None) -> None:
    rows = pd.DataFrame(
        {"x": [1.5, None, 3], "n": pd.array([1, None, 3], "Int64"), "s": ["a", None, "c"], "d": [NOON] * 3},
        index=index,
    )
    rows["c"] = pd.Categorical(["u", "v", "u"])
    theirs = lance.write_dataset(rows, tmp_path / "theirs")
    ours = lancelet.write_dataset(rows, tmp_path / "ours")
    assert ours.schema == theirs.schema
    assert ours.to_table() == theirs.to_table()
    pd.testing.assert_frame_equal(ours.to_pandas(), theirs.to_pandas())
    narrow = pa.schema({"x": pa.float32()})
    assert lancelet.write_dataset(rows, tmp_path / "narrow", schema=narrow).schema == narrow


FEATURES = datasets.Features(
    {
        "label": datasets.ClassLabel(names=["cat", "dog"]),
        "text": datasets.Value("string"),
        "tokens": datasets.List(datasets.Value("int32")),
        "vector": datasets.List(datasets.Value("float32"), length=2),
    }
)
ROWS = {
    "label": [0, 1, 1, 0, None],
    "text": ["a", "b", None, "d", "e"],
    "tokens": [[1], [], None, [2, 3], [4]],
    "vector": [[0.0, 1.0]] * 5,
}


def hugging_face() -> datasets.Dataset:
    """Five rows with features that Arrow's types do not tell."""
    return datasets.Dataset.from_dict(ROWS, features=FEATURES)


def test_datasets_of_hugging_face_are_written_as_pylance_does(tmp_path: Path) -> None:
    theirs = lance.write_dataset(hugging_face(), tmp_path / "theirs")
    ours = lancelet.write_dataset(hugging_face(), tmp_path / "ours")
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert ours.to_table() == theirs.to_table()
    streamed = lancelet.write_dataset(hugging_face().to_iterable_dataset(), tmp_path / "streamed")
    assert streamed.to_table() == theirs.to_table()


def test_rows_that_hugging_face_chose_and_moved_are_the_ones_that_are_written(tmp_path: Path) -> None:
    chosen = hugging_face().select([3, 0, 1])
    # Pylance writes all five, in the order they had before.
    assert lance.write_dataset(chosen, tmp_path / "theirs").count_rows() == 5
    made = lancelet.write_dataset(chosen, tmp_path / "ours")
    assert made.to_table()["text"].to_pylist() == ["d", "a", "b"]


def test_a_stream_without_known_features_is_looked_into(tmp_path: Path) -> None:
    def rows() -> Iterator[dict[str, Any]]:
        for number in range(5):
            yield {"n": number, "t": str(number)}

    made = lancelet.write_dataset(datasets.IterableDataset.from_generator(rows), tmp_path / "t")
    assert made.to_table().to_pydict() == {"n": list(range(5)), "t": list("01234")}


def test_a_dictionary_of_datasets_is_refused_as_pylance_does(tmp_path: Path) -> None:
    splits = datasets.DatasetDict({"train": hugging_face()})
    for module in (lance, lancelet):
        with pytest.raises(ValueError, match=r"Dict|'train'"):
            module.write_dataset(splits, tmp_path / module.__name__)
    assert not (tmp_path / "lancelet").exists()


def test_a_table_is_read_into_hugging_face_with_its_features(tmp_path: Path) -> None:
    made = lancelet.write_dataset(hugging_face(), tmp_path / "t", max_rows_per_file=2)
    whole = to_hf_dataset(made)
    assert whole.features == FEATURES
    assert whole.to_dict() == hugging_face().to_dict()
    assert whole.features["label"].int2str(1) == "dog"
    stream = to_hf_iterable_dataset(made)
    assert stream.features == FEATURES
    assert stream.num_shards == 3
    assert list(stream) == list(hugging_face())
    assert [row["text"] for row in to_hf_iterable_dataset(made, ["text"], "label = 1")] == ["b", None]
    assert to_hf_dataset(made, ["text"], "label = 0")["text"][:] == ["a", "d"]
