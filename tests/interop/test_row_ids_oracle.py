"""Stored row ids and row versions, in every form that pylance gives them, are those that it scans."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import lance
import numpy as np
import pyarrow as pa
import pytest

from lancelet.format import row_ids
from lancelet.format.manifest_file import parse_manifest_file, write_manifest_file
from lancelet.format.names import manifest_path


def gaps(place: Path) -> None:
    """A table whose row ids have few gaps, then many, then hardly any ids between them, then no order."""
    table = pa.table({"id": np.arange(100_000), "s": ["a"] * 100_000})
    lance.write_dataset(table, str(place), enable_stable_row_ids=True)
    for where in ("id % 5000 = 7", "id % 3 = 0", "id > 3000 and id % 20000 != 1"):
        lance.dataset(str(place)).delete(where)
        lance.dataset(str(place)).optimize.compact_files(materialize_deletions_threshold=0.0)
    backwards = pa.table({"id": np.arange(0, 1000)[::-1], "s": ["x"] * 1000})
    clauses = lance.dataset(str(place)).merge_insert("id")
    clauses.when_matched_update_all().when_not_matched_insert_all().execute(backwards)
    lance.dataset(str(place)).optimize.compact_files(materialize_deletions_threshold=0.0)


def test_row_ids_and_versions_equal_what_pylance_scans(tmp_path: Path) -> None:
    place = tmp_path / "table"
    gaps(place)
    columns = ["_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]
    seen: set[type] = set()
    for entry in lance.dataset(str(place)).versions():
        ds = lance.dataset(str(place), version=entry["version"])
        manifest = parse_manifest_file((place / manifest_path(ds.version)).read_bytes()).manifest
        for fragment, theirs in zip(manifest.fragments, ds.get_fragments(), strict=True):
            if fragment.inline_row_ids is None:
                continue
            assert fragment.physical_rows is not None
            segments = row_ids.parse_row_ids(fragment.inline_row_ids, rows=fragment.physical_rows)
            assert row_ids.write_row_ids(segments) == fragment.inline_row_ids
            seen |= {type(item) for item in segments}
            scan = theirs.scanner(columns=columns).to_table()
            live = scan["_rowaddr"].to_numpy() & 0xFFFFFFFF
            assert np.array_equal(numbers(segments)[live], scan["_rowid"].to_numpy())
            for stored, column in (
                (fragment.inline_created_at_versions, "_row_created_at_version"),
                (fragment.inline_last_updated_at_versions, "_row_last_updated_at_version"),
            ):
                if stored is not None:
                    runs = row_ids.parse_versions(stored, rows=fragment.physical_rows)
                    assert row_ids.write_versions(runs) == stored
                    spread = np.concatenate([np.full(len(run.span), run.version) for run in runs])
                    assert np.array_equal(spread[live], scan[column].to_numpy())
    assert seen == {*get_args(row_ids.Segment)} - {row_ids.PlainArray}


def numbers(segments: tuple[row_ids.Segment, ...]) -> np.ndarray:
    """All numbers of a sequence."""
    pieces: list[np.ndarray] = []
    for item in segments:
        match item:
            case row_ids.Range(start, end):
                pieces.append(np.arange(start, end))
            case row_ids.RangeWithHoles(start, end, holes):
                pieces.append(np.setdiff1d(np.arange(start, end), holes.values()))
            case row_ids.RangeWithBitmap(start, end):
                pieces.append(np.arange(start, end)[item.bits()])
            case row_ids.SortedArray(array) | row_ids.PlainArray(array):
                pieces.append(array.values())
    return np.concatenate(pieces)


NUMBERS = np.array([5, 9, 3, 70_000, 1 << 33, 12, 0, 8], np.uint64)


@pytest.mark.parametrize(
    "segments",
    [
        [row_ids.Range(3, 7), row_ids.Range(0, 3), row_ids.Range(10, 11)],
        [row_ids.RangeWithHoles(7, 17, row_ids.PackedArray.of(np.array([8, 15], np.uint64)))],
        [row_ids.RangeWithBitmap(7, 17, bytes([0b10111111, 0b1]))],
        [row_ids.SortedArray(row_ids.PackedArray.of(np.sort(NUMBERS)))],
        [row_ids.SortedArray(row_ids.PackedArray.of(np.sort(NUMBERS % 100_000)))],
        [row_ids.PlainArray(row_ids.PackedArray.of(NUMBERS))],
        [
            row_ids.PlainArray(row_ids.PackedArray.of(NUMBERS[:4])),
            row_ids.PlainArray(row_ids.PackedArray.of(NUMBERS[4:])),
        ],
        [row_ids.PlainArray(row_ids.PackedArray.of(NUMBERS[:3])), row_ids.Range(20, 25)],
    ],
)
def test_pylance_scans_the_row_ids_that_we_write(tmp_path: Path, segments: list[row_ids.Segment]) -> None:
    place = tmp_path / "table"
    lance.write_dataset(pa.table({"id": range(8)}), str(place), enable_stable_row_ids=True)
    path = place / manifest_path(1)
    file = parse_manifest_file(path.read_bytes())
    fragment = replace(file.manifest.fragments[0], inline_row_ids=row_ids.write_row_ids(segments))
    manifest = replace(file.manifest, fragments=file.manifest.fragments.changed({0: fragment}), next_row_id=1 << 34)
    path.write_bytes(write_manifest_file(manifest, transaction=file.transaction()))
    scanned = lance.dataset(str(place)).to_table(columns=[], with_row_id=True)["_rowid"].to_numpy()
    assert scanned.tolist() == numbers(tuple(segments)).tolist()
