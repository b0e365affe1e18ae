"""What reading a data file asks of its store: how often, and for which bytes, and that plans say so beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lancelet.config import default_options
from lancelet.file import LanceFileReader, LanceFileWriter, page_map
from lancelet.file.data_file import open_file
from lancelet.storage import open_store
from lancelet.storage.counting import CountingStore
from lancelet.storage.memory import forget
from lancelet.storage.ranges import coalesce
from lancelet.storage.store import Range
from lancelet.testing.recipes import Recipe, recipes

PLACE = "memory://requests"
VERSIONS = ("2.0", "2.1", "2.2")
ROWS = 60_000
RECIPES = recipes()


class Recording(CountingStore):
    """A store that counts, and keeps the ranges of each read."""

    def __init__(self, place: str) -> None:
        super().__init__(open_store(place))
        self.rounds: list[list[Range]] = []

    def read(self, path: str, ranges: Sequence[Range]) -> list[memoryview]:
        self.rounds.append([one for one in ranges if one[1]])
        return super().read(path, ranges)


@pytest.fixture(autouse=True)
def place() -> Iterator[None]:
    yield
    forget(PLACE)


def table(rows: int = ROWS) -> pa.Table:
    draw = np.random.default_rng(5)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(draw.random(rows * 8, np.float32)), 8)
    return pa.table(
        {
            "number": draw.integers(0, 2**60, rows),
            "word": [f"{n} is a number in words" for n in draw.integers(0, 10**9, rows)],
            "list": pa.array([[n] * (n % 4) for n in range(rows)], pa.list_(pa.int32())),
            "point": pa.StructArray.from_arrays([pa.array(draw.random(rows)), vectors], ["x", "v"]),
        }
    )


def write(rows: pa.Table, version: str, max_page_bytes: int | None = None) -> None:
    with LanceFileWriter(f"{PLACE}/f.lance", rows.schema, version=version, max_page_bytes=max_page_bytes) as writer:
        writer.write_batch(rows)


def opened(columns: list[str] | None = None) -> tuple[LanceFileReader, Recording]:
    """A reader of a file that is not mapped, with its opening no longer counted."""
    store = Recording(PLACE)
    reader = LanceFileReader(
        "f.lance", columns=columns, _file=open_file(store, "f.lance", size=store.inner.size("f.lance"))
    )
    store.reset()
    store.rounds.clear()
    return reader, store


def pages_of(reader: LanceFileReader, prefix: str = "") -> list[Range]:
    found = page_map(reader).pages
    return [place for page in found if page.path.startswith(prefix) for place in page.buffers if place[1]]


def within(ranges: list[Range], places: list[Range]) -> bool:
    return all(any(a <= start and start + size <= a + n for a, n in places) for start, size in ranges)


@pytest.mark.parametrize("version", VERSIONS)
def test_opening_costs_one_request_where_the_size_is_known(version: str) -> None:
    write(table(), version)
    store = CountingStore(open_store(PLACE))
    size = store.inner.size("f.lance")
    open_file(store, "f.lance", size=size)
    assert store.reset().total == 1
    open_file(store, "f.lance")
    assert store.reset().total <= 2


def test_readers_of_known_size_open_without_asking_for_it(tmp_path: Path) -> None:
    path = tmp_path / "a.lance"
    with LanceFileWriter(path) as writer:
        writer.write_batch(table(10))
    assert LanceFileReader(path, size=path.stat().st_size).num_rows() == 10


def test_long_metadata_costs_one_request_more() -> None:
    names = pa.table({f"a column with a long name, number {at}": [at] for at in range(1500)})
    write(names, "2.2")
    store = CountingStore(open_store(PLACE))
    open_file(store, "f.lance", size=store.inner.size("f.lance"))
    assert store.reset().total <= 3


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("column", ["number", "word", "list", "point.x", "point"])
def test_a_projection_reads_only_bytes_of_its_columns(version: str, column: str) -> None:
    write(table(), version)
    reader, store = opened([column])
    reader.read_all().to_table()
    asked = [one for ranges in store.rounds for one in ranges]
    assert within(asked, pages_of(reader, column))
    assert sum(size for _, size in asked) == sum(size for _, size in set(asked))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_is_read_in_one_round_after_its_indexes_and_no_byte_twice(version: str) -> None:
    write(table(), version, max_page_bytes=200_000)
    reader, store = opened()
    assert reader.read_all().to_table().num_rows == ROWS
    asked = sorted(one for ranges in store.rounds for one in ranges)
    assert len(store.rounds) <= (2 if version != "2.0" else 4)
    assert all(start >= before + size for (before, size), (start, _) in pairwise(asked))
    assert sum(size for _, size in asked) <= sum(size for _, size in pages_of(reader))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stream_of_values_of_one_width_reads_what_fits_its_window_at_once(version: str) -> None:
    write(table(), version)
    reader, store = opened(["number", "point"])
    assert sum(batch.num_rows for batch in reader.read_all(batch_size=1000).to_batches()) == ROWS
    assert len(store.rounds) <= 2


@pytest.mark.parametrize("version", VERSIONS)
def test_a_long_scan_reads_hardly_a_byte_twice(version: str) -> None:
    rows = 2_000_000
    numbers = np.random.default_rng(1).integers(0, 2**60, rows)
    offsets = np.arange(0, rows * 3 + 1, 3, dtype=np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.resize(numbers, rows * 3)))
    words = pa.Array.from_buffers(
        pa.large_binary(),
        rows,
        [None, pa.py_buffer(offsets.astype(np.int64) * 4), pa.py_buffer(np.resize(numbers, rows * 2))],
    )
    write(pa.table({"number": numbers, "list": lists, "word": words}), version)
    reader, store = opened()
    assert sum(batch.num_rows for batch in reader.read_all(batch_size=1000).to_batches()) == rows
    assert len(store.rounds) > 4
    # Chunks that lie across the seams of windows belong to both.
    assert store.snapshot().bytes_read <= 1.002 * sum(size for _, size in pages_of(reader))


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_a_scan_of_any_encoding_reads_no_byte_twice(recipe: Recipe) -> None:
    for version in recipe.versions:
        write(recipe.table(), version)
        reader, store = opened()
        reader.read_all().to_table()
        asked = sorted(one for ranges in store.rounds for one in ranges)
        assert all(start >= before + size for (before, size), (start, _) in pairwise(asked))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("column", "most"), [("number", 40_000), ("word", 60_000), ("point.v", 60_000)])
def test_a_range_and_a_take_read_only_what_they_need(version: str, column: str, most: int) -> None:
    write(table(), version)
    reader, store = opened([column])
    everything = sum(size for _, size in pages_of(reader, column))
    reader.read_range(30_000, 100).to_table()
    assert store.reset().bytes_read < most < everything
    reader.take_rows([17, 40_000, 40_001]).to_table()
    assert store.reset().bytes_read < most


@pytest.mark.parametrize("version", VERSIONS)
def test_reads_take_at_most_two_rounds_for_each_level_of_lists(version: str) -> None:
    write(table(), version)
    reader, store = opened()
    reader.take_rows(range(0, ROWS, 1000)).to_table()
    assert len(store.rounds) <= (2 if version != "2.0" else 4)


def test_single_rows_far_apart_are_asked_for_together() -> None:
    write(table(), "2.2")
    reader, store = opened(["number"])
    reader.read_range(0, 1).to_table()
    store.reset()
    # The gap that is read rather than skipped joins all of these.
    reader.take_rows(range(0, ROWS, 500)).to_table()
    size = sum(size for _, size in pages_of(reader, "number"))
    assert store.reset().total <= 1 + size // default_options().largest_request


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
@pytest.mark.parametrize("rows", [None, slice(20, 25), [3, 3, 7, 29]], ids=["all", "range", "take"])
def test_a_plan_says_what_the_store_is_asked_for(recipe: Recipe, rows: slice | list[int] | None) -> None:
    for version in set(recipe.versions) - {"2.0"}:
        write(recipe.table(), version)
        reader, store = opened()
        first = reader.plan(rows=rows)
        assert not store.rounds
        if isinstance(rows, list):
            read = reader.take_rows(rows)
        elif rows is None:
            read = reader.read_all()
        else:
            read = reader.read_range(rows.start, rows.stop - rows.start)
        exact = reader.plan(rows=rows, read_indexes=True)
        store.rounds.clear()
        again = opened()
        read.to_table()
        assert exact.is_exact
        assert [sorted(r) for r in store.rounds if r] == [
            sorted(one for one in ranges if one[1])
            for ranges in (exact.index_ranges, exact.data_ranges)
            if any(s for _, s in ranges)
        ]
        # Where no index is known, it is named first.
        fresh, counted = again
        fresh_read = fresh.take_rows(rows) if isinstance(rows, list) else fresh.read_range(*_span(rows, fresh))
        fresh_read.to_table()
        if first.index_ranges:
            assert sorted(counted.rounds[0]) == sorted(one for one in first.index_ranges if one[1])
        requests = sum(len(_requests(ranges)) for ranges in store.rounds)
        assert exact.num_requests == requests


def _span(rows: slice | None, reader: LanceFileReader) -> tuple[int, int]:
    return (0, reader.num_rows()) if rows is None else (rows.start, rows.stop - rows.start)


def _requests(ranges: list[Range]) -> tuple[Range, ...]:
    options = default_options()
    return coalesce(ranges, gap=options.coalesce_gap, largest=options.largest_request).requests


@pytest.mark.parametrize("rows", [None, slice(20, 25), [3, 7, 29]], ids=["all", "range", "take"])
def test_a_plan_of_2_0_names_the_first_round(rows: slice | list[int] | None) -> None:
    for recipe in RECIPES:
        if "2.0" not in recipe.versions:
            continue
        write(recipe.table(), "2.0")
        reader, store = opened()
        plan = reader.plan(rows=rows)
        assert not store.rounds
        (reader.take_rows(rows) if isinstance(rows, list) else reader.read_range(*_span(rows, reader))).to_table()
        named = sorted(one for one in plan.index_ranges + plan.data_ranges if one[1])
        assert sorted(store.rounds[0] if store.rounds else []) == named, recipe
        if plan.is_exact:
            assert len(store.rounds) <= 1, recipe


def test_a_mapped_file_is_planned_as_if_it_were_not(tmp_path: Path) -> None:
    path = tmp_path / "a.lance"
    with LanceFileWriter(path) as writer:
        writer.write_batch(table(5000))
    plan = LanceFileReader(path).plan(["number", "word"], [5, 4000], read_indexes=True)
    assert plan.is_exact
    assert [page.name for page in plan.pages] == ["number", "word"]
    assert "2 request" in str(plan) or "1 request" in str(plan)
