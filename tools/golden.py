"""Writes the tables of tests/golden with the pylance that is on the path: ``python tools/golden.py FOLDER``.

Run once for each old release, with ``pip install --no-deps --target OLD pylance==X`` and ``PYTHONPATH=OLD``; the
results are committed, because old releases may stop being installable. Beside each table lies what it holds.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa

ROWS = 300
FORMATS: dict[str, dict[str, object]] = {
    "default": {},
    "legacy": {"use_legacy_format": True},
    "v2": {"use_legacy_format": False},
    "2.0": {"data_storage_version": "2.0"},
    "2.1": {"data_storage_version": "2.1"},
}


def columns() -> dict[str, pa.Array]:
    """A column of each kind that the oldest releases knew."""
    draw = np.random.default_rng(3)
    rows = range(ROWS)
    vectors = pa.array(draw.standard_normal(ROWS * 8).astype("f4"))
    return {
        "i64": pa.array([None if i % 7 == 3 else i * 37 % 1000 for i in rows], pa.int64()),
        "i32": pa.array(list(rows), pa.int32()),
        "f32": pa.array(draw.standard_normal(ROWS).astype("f4")),
        "b": pa.array([None if i % 11 == 0 else i % 3 == 0 for i in rows]),
        "s": pa.array([None if i % 5 == 1 else f"word {i % 17}" for i in rows]),
        "u": pa.array([f"unique value {i} {i * i}" for i in rows]),
        "bin": pa.array([bytes([i % 256]) * (i % 9) for i in rows], pa.binary()),
        "ts": pa.array([i * 10**6 for i in rows], pa.timestamp("us", "UTC")),
        "vec": pa.FixedSizeListArray.from_arrays(vectors, 8),
        "l": pa.array([[i, i + 1][: i % 3] for i in rows], pa.list_(pa.int32())),
        "ls": pa.array([[f"t{i}"] * (i % 3) for i in rows], pa.list_(pa.string())),
        "st": pa.array([{"x": i, "y": f"z{i % 4}"} for i in rows], pa.struct([("x", pa.int32()), ("y", pa.string())])),
        "d": pa.array([f"cat{i % 5}" for i in rows]).dictionary_encode(),
        "dec": pa.array([Decimal(i) for i in rows], pa.decimal128(20, 2)),
    }


def accepted(options: dict[str, object]) -> dict[str, pa.Array]:
    """The columns that this release can write and read in a format; old releases panic on some."""
    found = {}
    for name, array in columns().items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                lance.write_dataset(pa.table({name: array}), f"{folder}/t", **options)
                lance.dataset(f"{folder}/t").to_table()
            except BaseException as error:  # noqa: BLE001 - a panic of the old release is no Exception
                print(f"{lance.__version__} cannot hold {name}: {type(error).__name__}", file=sys.stderr)
                continue
        found[name] = array
    return found


def main(folder: Path) -> None:
    """Write one table for each format that the release knows."""
    for name, options in FORMATS.items():
        table = accepted(options)
        if not table:
            continue
        place = folder / f"{lance.__version__}-{name}"
        shutil.rmtree(place, ignore_errors=True)
        lance.write_dataset(pa.table(table), str(place), **options)
        held = lance.dataset(str(place)).to_table()
        options_of_file = pa.ipc.IpcWriteOptions(compression="zstd")
        with (
            pa.OSFile(f"{place}.arrow", "wb") as out,
            pa.ipc.new_file(out, held.schema, options=options_of_file) as file,
        ):
            file.write_table(held)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
