"""Indexes that pylance built answer as a look at each row would: types, nulls, duplicates, several fragments."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.indices import IndexConfig

from lancelet.file import LanceFileReader
from lancelet.format.arrow import field_to_arrow
from lancelet.index.answers import Domain, OpenIndex, Skipped
from lancelet.index.open import open_index
from lancelet.index.queries import Between, Equals
from lancelet.index.scalar.bloom_filter.filters import hashable
from lancelet.ops.index.create import create_scalar_index
from lancelet.storage import open_store
from lancelet.table.paths import Places
from lancelet.table.snapshot import open_snapshot
from lancelet.testing.index_cases import (
    VALUE_TYPES,
    lists_of,
    query_about,
    query_about_lists,
    true_and_null,
    values_of,
)

warnings.filterwarnings("ignore", category=UserWarning)

ROWS, ROWS_PER_FRAGMENT = 900, 400


def open_only_index(path: Path) -> OpenIndex:
    """The one index of a table."""
    snapshot = open_snapshot(open_store(str(path)))
    (metadata,) = snapshot.indexes()
    fields = {item.id: item for item in snapshot.schema.walk()}
    store, folder = Places.of(snapshot).index(metadata)
    stable = bool(snapshot.manifest.reader_flags & 2)
    kind = field_to_arrow(fields[metadata.fields[0]]).type
    found = open_index(store, folder, metadata, kind, stable_row_ids=stable)
    assert not isinstance(found, Skipped)
    return found


def row_names(path: Path, column: str) -> np.ndarray:
    """What the index calls each row, in the order of the table."""
    return np.asarray(
        lance.dataset(path).to_table(columns=[], with_row_id=column == "_rowid", with_row_address=column == "_rowaddr")[
            column
        ]
    )


def check(path: Path, values: pa.Array, draw: random.Random, queries: int = 25, *, may_refuse: bool = False) -> None:
    """Ask the only index of a table about its values."""
    index = open_only_index(path)
    column = "_rowid" if index.domain is Domain.ROW_IDS else "_rowaddr"
    names = row_names(path, column)
    about = query_about_lists if pa.types.is_list(values.type) else query_about
    for _ in range(queries):
        query = about(values, draw)
        true, null = true_and_null(values, query)
        if not index.answers(query):
            assert may_refuse
            continue
        answer = index.search(query)
        listed, nulls = (set(rows.to_values().tolist()) for rows in (answer.mask.listed, answer.mask.nulls))
        if answer.exact:
            assert listed == set(names[true].tolist()), query
        else:
            assert listed >= set(names[true].tolist()), query
        assert nulls == set(names[null].tolist()), query
        assert set(index.search(query, nulls=False).mask.listed.to_values().tolist()) >= listed
        estimate = index.estimate(query)
        assert estimate is None or estimate >= 0


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
@pytest.mark.parametrize("name", VALUE_TYPES)
def test_an_index_of_pylance_answers_as_a_look_at_each_row(tmp_path: Path, name: str, kind: str) -> None:
    draw = random.Random(f"{name} {kind}")
    values = values_of(VALUE_TYPES[name], ROWS, draw)
    dataset = lance.write_dataset(pa.table({"x": values}), tmp_path / "t", max_rows_per_file=ROWS_PER_FRAGMENT)
    dataset.create_scalar_index("x", kind)
    check(tmp_path / "t", values, draw)


@pytest.mark.parametrize("name", VALUE_TYPES)
def test_a_label_list_of_pylance_answers_as_a_look_at_each_row(tmp_path: Path, name: str) -> None:
    draw = random.Random(name)
    # Of zeros pylance stores both signs, and asks for the one that is meant.
    values = lists_of(VALUE_TYPES[name], ROWS, draw)
    dataset = lance.write_dataset(pa.table({"x": values}), tmp_path / "t", max_rows_per_file=ROWS_PER_FRAGMENT)
    dataset.create_scalar_index("x", "LABEL_LIST")
    check(tmp_path / "t", values, draw)


@pytest.mark.parametrize("name", VALUE_TYPES)
def test_a_zone_map_of_pylance_leaves_out_no_row(tmp_path: Path, name: str) -> None:
    draw = random.Random(name)
    values = values_of(VALUE_TYPES[name], ROWS, draw)
    dataset = lance.write_dataset(pa.table({"x": values}), tmp_path / "t", max_rows_per_file=ROWS_PER_FRAGMENT)
    dataset.create_scalar_index("x", IndexConfig("zonemap", {"rows_per_zone": 30}))
    check(tmp_path / "t", values, draw)


@pytest.mark.parametrize("name", [name for name, kind in VALUE_TYPES.items() if hashable(kind)])
def test_a_bloom_filter_of_pylance_leaves_out_no_row_and_is_ours_bit_for_bit(tmp_path: Path, name: str) -> None:
    draw = random.Random(name)
    values = values_of(VALUE_TYPES[name], ROWS, draw)
    dataset = lance.write_dataset(pa.table({"x": values}), tmp_path / "t", max_rows_per_file=ROWS_PER_FRAGMENT)
    parameters = {"number_of_items": 30, "probability": 0.01}
    dataset.create_scalar_index("x", IndexConfig("bloomfilter", parameters))
    check(tmp_path / "t", values, draw, may_refuse=True)
    theirs = filters_of(tmp_path / "t")
    create_scalar_index(open_snapshot(open_store(str(tmp_path / "t"))), "x", "BLOOMFILTER", parameters=parameters)
    assert filters_of(tmp_path / "t").equals(theirs)


def filters_of(path: Path) -> pa.Table:
    """The zones of the only index of a table, and their filters."""
    (segment,) = lance.dataset(path).describe_indices()[0].segments
    return LanceFileReader(path / "_indices" / segment.uuid / "bloomfilter.lance").read_all().to_table()


def test_a_zone_map_leaves_out_most_rows_of_sorted_values(tmp_path: Path) -> None:
    values = pa.array([float(at) if at % 5 else None for at in range(1000)])
    dataset = lance.write_dataset(pa.table({"x": values}), tmp_path / "t", max_rows_per_file=300)
    dataset.create_scalar_index("x", IndexConfig("zonemap", {"rows_per_zone": 50}))
    index = open_only_index(tmp_path / "t")
    assert index.estimate(Equals(pa.scalar(444.0))) == 50
    assert index.estimate(Between(pa.scalar(100.0), pa.scalar(199.0))) == 100
    assert index.estimate(Equals(pa.scalar(5000.0))) == 0
    assert index.statistics() == {"num_zones": 20, "rows_per_zone": 50}


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1", "2.2"])
def test_indexes_of_tables_of_every_version_are_read(tmp_path: Path, version: str, kind: str) -> None:
    draw = random.Random(version)
    values = values_of(pa.int64(), ROWS, draw, nulls=0)
    dataset = lance.write_dataset(pa.table({"x": values}), tmp_path / "t", data_storage_version=version)
    dataset.create_scalar_index("x", kind)
    check(tmp_path / "t", values, draw)


@pytest.mark.parametrize(("kind", "domain"), [("BTREE", Domain.ADDRESSES), ("BITMAP", Domain.ROW_IDS)])
def test_rows_with_stable_ids_are_called_by_what_the_type_stores(tmp_path: Path, kind: str, domain: Domain) -> None:
    draw = random.Random(kind)
    table = pa.table({"x": pa.array(range(1000))})
    dataset = lance.write_dataset(table, tmp_path / "t", max_rows_per_file=300, enable_stable_row_ids=True)
    # Rows that move keep their ids, so that ids and addresses differ from here on.
    dataset.update({"x": "x + 1000"}, where="x % 3 = 0")
    dataset.create_scalar_index("x", kind)
    values = lance.dataset(tmp_path / "t").to_table()["x"].combine_chunks()
    assert open_only_index(tmp_path / "t").domain is domain
    check(tmp_path / "t", values, draw)


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
def test_many_pages_are_searched_at_their_ends_and_taken_whole_between(tmp_path: Path, kind: str) -> None:
    draw = random.Random(7)
    numbers = np.random.default_rng(7).integers(0, 60_000, 100_000)
    values = pa.array(numbers, mask=numbers % 13 == 0)
    lance.write_dataset(pa.table({"x": values}), tmp_path / "t").create_scalar_index("x", kind)
    check(tmp_path / "t", values, draw, queries=12)


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
@pytest.mark.parametrize("values", [[], [None, None], [1]])
def test_indexes_over_nothing_and_over_nulls_alone_are_read(
    tmp_path: Path, values: list[int | None], kind: str
) -> None:
    array = pa.array(values, pa.int64())
    lance.write_dataset(pa.table({"x": array}), tmp_path / "t").create_scalar_index("x", kind)
    check(tmp_path / "t", array, random.Random(1))
