"""Data files whose metadata is damaged: Corrupt or Unsupported, never another error, and soon."""

from __future__ import annotations

import random
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lancelet.errors import Corrupt, Unsupported
from lancelet.format.arrow import schema_to_arrow
from lancelet.format.columns import parse_column
from lancelet.format.fields import parse_file_descriptor
from lancelet.format.footer import LegacyFooter, parse_footer, parse_offset_table
from lancelet.format.legacy import parse_framed, parse_legacy_manifest, parse_legacy_metadata

TABLE = pa.table(
    {
        "number": list(range(2000)),
        "word": [f"word {n % 9}" for n in range(2000)],
        "list": pa.array([[n] * (n % 3) for n in range(2000)]),
        "vector": pa.array([[1.0, 2.0]] * 2000, pa.list_(pa.float32(), 2)),
        "dictionary": pa.array(["a", "b"] * 1000).dictionary_encode(),
        "large": ["x" * 400 + str(n) for n in range(2000)],
    }
)
DAMAGES = 300


def read_everything(data: bytes) -> None:
    """Parse all that a file says about itself."""
    footer = parse_footer(data, len(data))
    if isinstance(footer, LegacyFooter):
        metadata = parse_legacy_metadata(parse_framed(data[footer.metadata_position :], "metadata"))
        parse_legacy_manifest(parse_framed(data[metadata.manifest_position or 0 :], "manifest"))
        return
    start, size = footer.global_table
    for at, length in parse_offset_table(data[start : start + size], len(data)).tolist()[:1]:
        schema_to_arrow(parse_file_descriptor(data[at : at + length]).schema)
    start, size = footer.column_table
    for at, length in parse_offset_table(data[start : start + size], len(data)).tolist():
        for page in parse_column(data[at : at + length], footer.version, len(data)).pages:
            page.describe(footer.version)


def damaged(data: bytes, metadata_start: int, seed: int) -> bytes:
    """The file with a few bytes of its metadata changed, and sometimes cut off."""
    draw = random.Random(seed)
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 8])):
        place = draw.randrange(metadata_start, len(changed))
        changed[place] = draw.choice([0, 255, draw.randrange(256), changed[place] ^ 1 << draw.randrange(8)])
    return bytes(changed[: draw.randrange(len(changed))] if draw.random() < 0.1 else changed)


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1", "2.2"])
def test_damaged_metadata_is_named(tmp_path: Path, version: str) -> None:
    lance.write_dataset(TABLE, tmp_path / "t", data_storage_version=version)  # type: ignore[arg-type]
    (path,) = (tmp_path / "t/data").glob("*.lance")
    data = path.read_bytes()
    read_everything(data)
    footer = parse_footer(data, len(data))
    start = footer.metadata_position if isinstance(footer, LegacyFooter) else footer.column_metadata_start
    refused = 0
    for seed in range(DAMAGES):
        try:
            read_everything(damaged(data, start - 300, seed))
        except (Corrupt, Unsupported):
            refused += 1
    assert refused > DAMAGES // 10
