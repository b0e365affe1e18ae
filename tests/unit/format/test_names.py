"""Names in a table's folder: each leads back to what it was made of, and nothing else passes for one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelet.errors import InvalidInput
from lancelet.format.names import (
    ManifestName,
    NamingScheme,
    branch_of_path,
    branch_path,
    data_file_name,
    manifest_path,
    new_detached_version,
    parse_hint,
    parse_manifest_name,
)


@given(st.integers(0, (1 << 63) - 1))
def test_a_manifest_name_leads_back_to_its_version(version: int) -> None:
    assert parse_manifest_name(manifest_path(version)) == ManifestName(version, NamingScheme.V2)
    assert parse_manifest_name(manifest_path(version, NamingScheme.V1)) == ManifestName(version, NamingScheme.V1)


@given(st.lists(st.integers(0, (1 << 63) - 1), min_size=2))
def test_names_of_the_second_scheme_sort_the_newest_first(versions: list[int]) -> None:
    assert sorted(versions, key=manifest_path) == sorted(versions, reverse=True)


def test_detached_versions_have_names_of_their_own_in_both_schemes() -> None:
    version = new_detached_version()
    assert manifest_path(version) == manifest_path(version, NamingScheme.V1) == f"_versions/d{version}.manifest"
    name = parse_manifest_name(manifest_path(version))
    assert name == ManifestName(version, None)
    assert name.detached
    assert version != new_detached_version()


@pytest.mark.parametrize(
    "name",
    [
        *("latest_version_hint.json", "1.manifest.tmp", "x1.manifest", "d5.manifest", ".manifest", "-1.manifest"),
        *("99999999999999999999.manifest", "d99999999999999999999.manifest", "1.MANIFEST", "٣.manifest"),
        *("1.manifest-30e0b950-14b3-4fa9-b651-c37762ba20be", "123456789012345678901.manifest"),
    ],
)
def test_other_files_pass_for_no_manifest(name: str) -> None:
    assert parse_manifest_name(name) is None


@pytest.mark.parametrize("version", [-1, 1 << 64])
def test_a_number_that_is_no_version_has_no_name(version: int) -> None:
    with pytest.raises(InvalidInput, match="no version"):
        manifest_path(version)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"7", b'{"version":"7"}', b'{"version":true}', b'{"version":-1}', b"\xff", b"[" * 100_000],
)
def test_a_hint_that_says_nothing_is_no_error(data: bytes) -> None:
    assert parse_hint(data) is None


def test_a_hint_of_another_form_still_counts() -> None:
    assert parse_hint(b' {"more": [1], "version": 12 }\n') == 12


def test_data_files_have_names_that_spread() -> None:
    assert re.fullmatch(r"[01]{24}[0-9a-f]{26}\.lance", data_file_name())
    assert data_file_name() != data_file_name()


@pytest.mark.parametrize("name", ["a", "feature/x", "a%2Fb", "ä b", "x.json"])
def test_a_branch_is_found_by_the_name_of_its_file(name: str) -> None:
    assert branch_of_path(branch_path(name)) == name
    assert "/" not in branch_path(name).removeprefix("_refs/branches/")
