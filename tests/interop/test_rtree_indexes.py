"""RTREE indexes: pylance finds geometries by ours, we read its own; both after rows were appended, deleted, moved."""

from __future__ import annotations

import struct
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.indices import IndexConfig as TheirConfig

import lancelet
from lancelet.errors import Unsupported
from lancelet.index.answers import Domain, Skipped
from lancelet.index.queries import Intersects
from lancelet.indices import IndexConfig
from lancelet.ops.index.segments import open_segment
from lancelet.storage import open_store
from lancelet.table.paths import Places
from lancelet.table.snapshot import open_snapshot

POINT = pa.struct([pa.field("x", pa.float64(), nullable=False), pa.field("y", pa.float64(), nullable=False)])
LINE = pa.list_(pa.field("vertices", POINT, nullable=False))
AREA = pa.list_(pa.field("rings", LINE, nullable=False))
ROWS = 500


def geometry(name: str, x: float, y: float) -> object:
    at, beyond = {"x": x, "y": y}, {"x": x + 2, "y": y + 3}
    if name == "wkb":
        return struct.pack("<BIdd", 1, 1, x, y)
    corners = [at, {"x": x + 2, "y": y}, beyond, at]
    return {"point": at, "linestring": [at, beyond], "polygon": [corners]}[name]


TYPES = {"point": POINT, "linestring": LINE, "polygon": AREA, "wkb": pa.binary()}


def rows(name: str, first: int, count: int) -> pa.Table:
    draw = np.random.default_rng(first)
    places = draw.random((count, 2)) * 200 - 100
    made = [None if at % 17 == 3 else geometry(name, *place) for at, place in enumerate(places.tolist())]
    metadata = {"ARROW:extension:name": f"geoarrow.{name}", "ARROW:extension:metadata": "{}"}
    schema = pa.schema([pa.field("g", TYPES[name], metadata=metadata), pa.field("i", pa.int64())])
    return pa.table([pa.array(made, TYPES[name]), pa.array(range(first, first + count))], schema=schema)


def areas(seed: int) -> list[tuple[float, float, float, float]]:
    draw = np.random.default_rng(seed)
    middles, sizes = draw.random((6, 2)) * 200 - 100, draw.random(6) * 60
    return [(x, y, x + size, y + size) for (x, y), size in zip(middles.tolist(), sizes.tolist(), strict=True)]


def check(path: Path) -> None:
    theirs = lance.dataset(path)
    for low_x, low_y, high_x, high_y in areas(5):
        corners = f"{low_x} {low_y}, {high_x} {low_y}, {high_x} {high_y}, {low_x} {high_y}, {low_x} {low_y}"
        condition = f"st_intersects(g, st_geomfromtext('POLYGON (({corners}))'))"
        assert "ScalarIndexQuery" in theirs.scanner(filter=condition).explain_plan()
        wanted = theirs.to_table(filter=condition, columns=["i"], use_scalar_index=False)["i"].to_pylist()
        assert theirs.to_table(filter=condition, columns=["i"])["i"].to_pylist() == wanted
        assert set(wanted) <= set(near(path, Intersects(low_x, low_y, high_x, high_y)))
    missing = theirs.to_table(filter="g IS NULL", columns=["i"], use_scalar_index=False)["i"].to_pylist()
    assert missing
    assert theirs.to_table(filter="g IS NULL", columns=["i"])["i"].to_pylist() == missing
    ours = lancelet.dataset(path)
    assert "g_idx" in ours.scanner(filter="g IS NULL").explain_plan()
    assert ours.to_table(filter="g IS NULL", columns=["i"])["i"].to_pylist() == missing
    assert ours.count_rows("g IS NOT NULL") == theirs.count_rows("g IS NOT NULL")


def near(path: Path, query: Intersects) -> list[int]:
    """The rows that the index names, and those that it does not cover."""
    snapshot = open_snapshot(open_store(str(path)))
    covered, found = set(), []
    for metadata in snapshot.indexes():
        index = open_segment(snapshot, Places.of(snapshot), metadata)
        assert not isinstance(index, Skipped)
        answer = index.search(query)
        assert not answer.exact
        names = answer.mask.listed.to_values().tolist()
        system = {"with_row_id": True} if index.domain is Domain.ROW_IDS else {"with_row_address": True}
        table = lance.dataset(path).to_table(columns=["i"], **system)
        column = table.column_names[-1]
        by_name = dict(zip(table[column].to_pylist(), table["i"].to_pylist(), strict=True))
        found += [by_name[name] for name in names if name in by_name]
        covered |= set(lance.dataset(path).describe_indices()[0].segments[0].fragment_ids)
    rest = [item for item in lance.dataset(path).get_fragments() if item.fragment_id not in covered]
    return found + [row for item in rest for row in item.to_table(columns=["i"])["i"].to_pylist()]


@pytest.mark.parametrize("by", ["pylance", "lancelet"])
@pytest.mark.parametrize("page_size", [16, 4096])
@pytest.mark.parametrize("name", TYPES)
def test_geometries_are_found_by_an_index_of_either(tmp_path: Path, name: str, page_size: int, by: str) -> None:
    path = tmp_path / "t"
    lance.write_dataset(rows(name, 0, ROWS), path, max_rows_per_file=200)
    if by == "pylance":
        lance.dataset(path).create_scalar_index("g", TheirConfig("rtree", {"page_size": page_size}))
    else:
        lancelet.dataset(path).create_scalar_index("g", IndexConfig("rtree", {"page_size": page_size}))
    check(path)
    stats = lancelet.dataset(path).stats.index_stats("g_idx")
    (one,), (their,) = stats["indices"], lance.dataset(path).stats.index_stats("g_idx")["indices"]
    assert {name: their[name] for name in one} == one
    pages, level = 0, -(-int(one["num_items"] or 0) // page_size)
    while level > 1:
        pages, level = pages + level, -(-level // page_size)
    assert (one["num_items"], one["num_pages"]) == (ROWS - 30, pages + 1)


@pytest.mark.parametrize("stable", [False, True])
def test_an_index_keeps_up_with_its_table(tmp_path: Path, stable: bool) -> None:
    path = tmp_path / "t"
    lance.write_dataset(rows("point", 0, ROWS), path, max_rows_per_file=200, enable_stable_row_ids=stable)
    lancelet.dataset(path).create_scalar_index("g", IndexConfig("rtree", {"page_size": 32}))
    lance.write_dataset(rows("point", ROWS, 100), path, mode="append")
    lancelet.dataset(path).delete("i % 7 = 2")
    check(path)
    lancelet.dataset(path).optimize.optimize_indices()
    assert lancelet.dataset(path).stats.index_stats("g_idx")["num_unindexed_rows"] == 0
    check(path)
    lancelet.dataset(path).optimize.compact_files()
    check(path)


def test_a_table_of_nothing_and_geometries_of_no_point_are_indexed(tmp_path: Path) -> None:
    made = rows("linestring", 0, 3)
    empty = pa.table([pa.array([[], None, [{"x": 1.0, "y": 2.0}]], LINE), pa.array([0, 1, 2])], schema=made.schema)
    for number, table in enumerate((empty, empty.slice(0, 0))):
        path = tmp_path / str(number)
        lance.write_dataset(table, path)
        lancelet.dataset(path).create_scalar_index("g", "RTREE")
        condition = "st_intersects(g, st_geomfromtext('POINT (1 2)'))"
        assert lance.dataset(path).to_table(filter=condition)["i"].to_pylist() == ([2] if number == 0 else [])


def test_lines_and_areas_as_well_known_binary_are_refused(tmp_path: Path) -> None:
    line = struct.pack("<BIIdddd", 1, 2, 2, 0, 0, 1, 1)
    dataset = lancelet.write_dataset(pa.table({"g": pa.array([line], pa.binary())}), tmp_path / "t")
    with pytest.raises(Unsupported, match="points alone"):
        dataset.create_scalar_index("g", "RTREE")
