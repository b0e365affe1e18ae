"""A URI finds its store, and errors tell what was meant instead."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lancelet.config import Options
from lancelet.errors import InvalidInput
from lancelet.storage import REMOTE_SCHEMES, open_store
from lancelet.storage.paths import join_uri, split_uri


@pytest.mark.parametrize(
    ("uri", "root"),
    [
        ("{tmp}/plain", "{tmp}/plain"),
        ("{tmp}/trailing/", "{tmp}/trailing"),
        ("{tmp}/50%/a#b c?d", "{tmp}/50%/a#b c?d"),
        ("{tmp}/a%20b", "{tmp}/a%20b"),
        ("file://{tmp}/a%20b", "{tmp}/a b"),
        ("file://localhost{tmp}/x", "{tmp}/x"),
        ("file:{tmp}/x", "{tmp}/x"),
        ("FILE://{tmp}/x", "{tmp}/x"),
        ("file-object-store://{tmp}/x", "{tmp}/x"),
        ("{tmp}/a/../b", "{tmp}/b"),
    ],
)
def test_a_local_place_has_one_name_however_it_is_written(uri: str, root: str, tmp_path: Path) -> None:
    store = open_store(uri.format(tmp=tmp_path))
    assert store.uri == root.format(tmp=tmp_path)
    store.put("a", b"1")
    assert Path(store.uri, "a").read_bytes() == b"1"


@pytest.mark.parametrize("given", ["some/table", "~/table", "./table", "a:b"])
def test_relative_paths_are_taken_letter_by_letter(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_store(given).uri == os.path.normpath(tmp_path / given)


def test_paths_may_be_path_objects(tmp_path: Path) -> None:
    assert open_store(tmp_path / "x").uri == str(tmp_path / "x")


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("foo://bar/x", r"unknown scheme 'foo'.*known are .*s3://"),
        ("s3+ddb://bucket/table?ddbTableName=t", "external manifest store"),
        ("file://host/x", "names the machine 'host'"),
        ("file:///a?b", "cannot hold '\\?'.*%3F"),
        ("file:///a#b", "cannot hold '#'.*%23"),
        ("memory://", "memory://name"),
        ("memory://a/../b", "not an object path"),
        ("", "names no directory"),
    ],
)
def test_what_cannot_be_opened_is_refused_with_what_can(uri: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        open_store(uri)


def test_durability_is_an_option(tmp_path: Path) -> None:
    assert "durable=True" in repr(open_store(tmp_path, options=Options(durable=True)))


def test_local_and_memory_stores_do_not_load_the_remote_ones(tmp_path: Path) -> None:
    code = (
        "import sys; from lancelet.storage import open_store\n"
        f"open_store({str(tmp_path)!r}); open_store('memory://a')\n"
        "sys.exit(any('obstore' in name or 'remote' in name for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("scheme", sorted(REMOTE_SCHEMES))
def test_remote_schemes_are_told_from_paths(scheme: str) -> None:
    assert split_uri(f"{scheme.upper()}://bucket/key") == (scheme, "bucket/key")


def test_names_in_errors_have_single_slashes() -> None:
    assert [join_uri("a", "b"), join_uri("memory://a/", "b"), join_uri("a", "")] == ["a/b", "memory://a/b", "a"]
