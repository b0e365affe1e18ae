"""Feature flags refuse, bit by bit and word by word, where pylance refuses, and are kept where it keeps them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lancelet.errors import Corrupt, InvalidInput, Unsupported
from lancelet.format.flags import check_readable, check_writable, flags_for
from lancelet.format.manifest_file import parse_manifest_file, write_manifest_file
from lancelet.format.names import manifest_path

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.mark.parametrize("bit", range(20))
@pytest.mark.parametrize("words", ["reader", "writer", "both"])
def test_a_flag_refuses_where_it_refuses_pylance(tmp_path: Path, flagless: Path, bit: int, words: str) -> None:
    place = tmp_path / "table"
    shutil.copytree(flagless, place)
    path = place / manifest_path(1)
    file = parse_manifest_file(path.read_bytes())
    reader, writer = ((1 << bit) * (words in (word, "both")) for word in ("reader", "writer"))
    manifest = replace(file.manifest, reader_flags=reader, writer_flags=writer)
    path.write_bytes(write_manifest_file(manifest, transaction=file.transaction()))
    opens = accepts(lambda: lance.dataset(str(place)).count_rows())
    appends = accepts(lambda: lance.write_dataset(ROWS, str(place), mode="append"))
    if bit == 1 and reader:
        # Not the flag but the fragments refuse, which have no row ids.
        with pytest.raises(InvalidInput, match="no row ids"):
            flags_for(manifest)
        return
    assert accepts(lambda: check_readable(manifest)) == opens
    assert accepts(lambda: check_writable(manifest)) == appends
    if appends == "yes":
        after = parse_manifest_file((place / manifest_path(2)).read_bytes()).manifest
        assert flags_for(replace(after, reader_flags=reader, writer_flags=writer)) == (
            after.reader_flags,
            after.writer_flags,
        )


@pytest.fixture(scope="module")
def flagless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table without any flag set."""
    place = tmp_path_factory.mktemp("flagless") / "table"
    lance.write_dataset(ROWS, str(place))
    return place


def accepts(act: Callable[[], object]) -> str:
    """Whether something is done, or found corrupt, or refused."""
    try:
        act()
    except (Corrupt, Unsupported) as error:
        return type(error).__name__
    except (ValueError, OSError) as error:
        return "Corrupt" if "corrupt" in str(error) else "Unsupported"
    return "yes"
