"""The page map names every page of every encoding, and its bytes are those of the file."""

from __future__ import annotations

from pathlib import Path

import lance.file
import pyarrow as pa
import pytest

from lancelet.errors import Corrupt
from lancelet.file import LanceFileReader, LanceFileWriter, page_map
from lancelet.testing.damage_parts import Parts
from lancelet.testing.recipes import Recipe, recipes

WRITERS = {"lancelet": LanceFileWriter, "pylance": lance.file.LanceFileWriter}


def write(recipe: Recipe, version: str, folder: Path, writer: str = "lancelet") -> str:
    table = recipe.table()
    path = str(folder / "a.lance")
    with WRITERS[writer](path, table.schema, version=version) as out:
        out.write_batch(table)
    return path


@pytest.mark.parametrize("recipe", recipes(), ids=str)
@pytest.mark.parametrize("writer", WRITERS)
def test_every_page_is_named_with_its_bytes(recipe: Recipe, writer: str, tmp_path: Path) -> None:
    for version in recipe.versions:
        path = write(recipe, version, tmp_path, writer)
        found = page_map(path)
        metadata = LanceFileReader(path).metadata()
        assert [page.num_bytes for page in found.pages] == [
            sum(buffer.size for buffer in page.buffers) for column in metadata.columns for page in column.pages
        ]
        assert all(page.path.split(".")[0] == "c" and page.encoding for page in found.pages)
        assert all(page.layout == "array" for page in found.pages) == (version == "2.0")
        table = found.to_table()
        table.validate(full=True)
        assert table.num_rows == len(found.pages)
        assert str(found).count("\n") == len(found.pages) + 1


@pytest.mark.parametrize(
    ("name", "version", "encoding"),
    [
        ("flat", "2.2", "MiniBlock(Flat(64))"),
        ("nullable", "2.0", "Nullable(Flat(64), validity=Flat(1))"),
        ("words-lz4", "2.2", "MiniBlock(General(lz4, Variable(64)), def=Rle(16, 8))"),
        ("words-fsst", "2.1", "MiniBlock(Fsst(Variable(32)))"),
        ("split", "2.2", "MiniBlock(General(zstd, ByteStreamSplit(32)))"),
        ("runs", "2.2", "MiniBlock(Rle(32, 8))"),
        ("vectors", "2.1", "FullZip(FixedSizeList(200, Flat(32)))"),
        ("constant", "2.2", "Constant(8 bytes)"),
        ("blobs", "2.2", "Blob(MiniBlock(PackedStruct(64+64)))"),
        ("packed-words", "2.2", "FullZip(PackedStruct(Flat(64) + Variable(32)))"),
    ],
)
def test_encodings_are_spelled_out(name: str, version: str, encoding: str, tmp_path: Path) -> None:
    recipe = next(one for one in recipes() if one.name == name)
    assert [page.encoding for page in page_map(write(recipe, version, tmp_path)).pages] == [encoding]


def test_pages_and_rows_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.lance"
    words = pa.table({"s": pa.array([{"w": ["a", "b"][n % 2] * 20} for n in range(3000)])})
    with LanceFileWriter(path, words.schema, data_cache_bytes=1) as writer:
        for batch in words.to_batches(max_chunksize=1000):
            writer.write_batch(batch)
    found = page_map(LanceFileReader(path)).pages
    assert [(page.path, page.page, page.first_row, page.rows) for page in found] == [
        ("s.w", at, at * 1000, 1000) for at in range(3)
    ]
    assert {page.dictionary_items for page in found} == {2}
    assert "of 2 items" in str(page_map(path))


def test_a_damaged_page_is_named(tmp_path: Path) -> None:
    path = Path(write(recipes()[0], "2.2", tmp_path))
    parts = Parts.of(path.read_bytes())
    column, number, page = parts.pages()[0]
    damaged = parts.with_page(column, number, type(page)(page.buffers, page.length, page.priority, b"\xff\xff"))
    path.write_bytes(damaged)
    with pytest.raises(Corrupt) as caught:
        page_map(path)
    assert (caught.value.column, caught.value.page) == ("c", 0)
    assert caught.value.byte_range is not None
