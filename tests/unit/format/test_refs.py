"""Tags and branches: their JSON is read in every form there was, written in one, and checked."""

from __future__ import annotations

import json

import pytest

from lancelet.errors import Corrupt
from lancelet.format.refs import Branch, BranchPoint, Tag, parse_branch, parse_tag, write_branch, write_tag

TAG = Tag(5, "a/b", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", 99, {"k": "ä"}, {"later": [1, None]})
BRANCH = Branch(4, "main/x", (BranchPoint(1, "ab"), BranchPoint(4, "cd")), 17, 88, {"k": "v"}, {"later": {}})


def test_tags_and_branches_survive_being_written_with_keys_of_newer_writers() -> None:
    assert parse_tag(write_tag(TAG)) == TAG
    assert parse_branch(write_branch(BRANCH)) == BRANCH


def test_the_first_forms_are_read() -> None:
    assert parse_tag(b'{"version": 3, "manifestSize": 7}') == Tag(3, manifest_size=7)
    old = b'{"parent_branch": "p", "parent_version": 3, "create_at": 9, "manifest_size": 7}'
    assert parse_branch(old) == Branch(3, "p", created_at=9, manifest_size=7)


def test_new_branches_have_ids_of_their_own() -> None:
    assert BranchPoint(1).id != BranchPoint(1).id
    assert len(BranchPoint(1).id) == 32


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "is no JSON"),
        (b"\xff", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b"[1]", "type list"),
        (b"{}", "version None"),
        (b'{"version": "3"}', "version '3'"),
        (b'{"version": true}', "version True"),
        (b'{"version": -1}', "version -1"),
        (b'{"version": 1, "branch": 4}', "branch 4"),
        (b'{"version": 1, "metadata": {"a": 1}}', "metadata"),
        (b" " * (2 << 20), "bytes long"),
    ],
)
def test_a_tag_that_makes_no_sense_is_corrupt_and_names_its_file(content: bytes, why: str) -> None:
    with pytest.raises(Corrupt, match=why) as caught:
        parse_tag(content, uri="t.json")
    assert caught.value.uri == "t.json"


@pytest.mark.parametrize(
    "identifier", [3, {"version_mapping": 3}, {"version_mapping": [[1]]}, {"version_mapping": [["1", "a"]]}]
)
def test_a_branch_with_a_broken_line_is_corrupt(identifier: object) -> None:
    with pytest.raises(Corrupt, match=r"identifier|version_mapping"):
        parse_branch(json.dumps({"parentVersion": 1, "identifier": identifier}).encode())
