"""Addresses: a version named so that every process opens the same, and never another in its place."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from lancelet.errors import InvalidInput, NotFound
from lancelet.ops.write import append, create
from lancelet.spark.address import Address, opened
from lancelet.storage import open_store
from lancelet.table.branches import create_branch
from lancelet.table.snapshot import open_snapshot
from lancelet.table.tags import create_tag

ROWS = pa.table({"x": [1, 2, 3]})


def two_versions(place: Path) -> None:
    store = open_store(str(place))
    create(store, ROWS)
    append(open_snapshot(store), ROWS)


def test_versions_tags_branches_and_moments_are_found(tmp_path: Path) -> None:
    two_versions(tmp_path)
    store = open_store(str(tmp_path))
    create_tag(store, "first", 1)
    create_branch(open_snapshot(store, version=1), "side")
    uri = str(tmp_path)
    assert Address(uri=uri).open().version == 2
    assert Address(uri=uri, version=1).open().count_rows() == 3
    assert Address(uri=uri, tag="first").open().version == 1
    side = Address(uri=uri, branch="side").open()
    assert (side.branch, side.count_rows()) == ("side", 3)
    assert Address(uri=uri, branch="main").open().version == 2
    assert Address(uri=uri, timestamp="2999-01-01").open().version == 2


def test_a_pinned_address_opens_the_same_version_later_and_elsewhere(tmp_path: Path) -> None:
    two_versions(tmp_path)
    address = Address(uri=str(tmp_path))
    pinned = address.pinned(address.open())
    append(open_snapshot(open_store(str(tmp_path))), ROWS)
    there = pickle.loads(pickle.dumps(pinned))
    assert opened(there)[0].version == 2
    assert opened(there)[0] is opened(pinned)[0]
    assert pinned.newest().open().version == 3


def test_a_table_made_anew_is_another(tmp_path: Path) -> None:
    place = tmp_path / "t"
    create(open_store(str(place)), ROWS)
    pinned = Address(uri=str(place)).pinned(Address(uri=str(place)).open())
    shutil.rmtree(place)
    create(open_store(str(place)), ROWS)
    with pytest.raises(NotFound, match="made anew meanwhile"):
        opened(pinned)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    two_versions(tmp_path)
    uri = str(tmp_path)
    with pytest.raises(NotFound, match="no version 7"):
        Address(uri=uri, version=7).open()
    with pytest.raises(NotFound, match="nobody"):
        Address(uri=uri, branch="nobody").open()
    with pytest.raises(NotFound, match="nothing"):
        Address(uri=uri, tag="nothing").open()
    with pytest.raises(InvalidInput, match="'soon', which is no moment"):
        Address(uri=uri, timestamp="soon").open()
    with pytest.raises(NotFound, match="there is no table"):
        Address(uri=str(tmp_path / "none")).open()


def test_credentials_are_not_shown() -> None:
    assert "hidden" not in repr(Address(uri="s3://b/t", storage_options={"secret_access_key": "hidden"}))
