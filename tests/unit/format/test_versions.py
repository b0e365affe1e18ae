"""File versions: names, aliases and numbers."""

from __future__ import annotations

import pytest

from lancelet.errors import InvalidInput, Unsupported
from lancelet.format.versions import FileVersion


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("0.1", FileVersion.V0_1),
        ("legacy", FileVersion.V0_1),
        ("2.0", FileVersion.V2_0),
        ("2.1", FileVersion.V2_1),
        ("2.2", FileVersion.V2_2),
        ("Stable", FileVersion.V2_2),
        ("next", FileVersion.V2_3),
        (FileVersion.V2_1, FileVersion.V2_1),
    ],
)
def test_a_name_or_alias_means_one_version(name: str | FileVersion, version: FileVersion) -> None:
    assert FileVersion.parse(name) is version


@pytest.mark.parametrize("name", ["", "2", "2.4", "newest", "v2.1"])
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"stable"):
        FileVersion.parse(name)


@pytest.mark.parametrize(
    ("numbers", "version"),
    [
        ((0, 0), FileVersion.V0_1),
        ((0, 1), FileVersion.V0_1),
        ((0, 2), FileVersion.V0_1),
        ((0, 3), FileVersion.V2_0),
        ((2, 0), FileVersion.V2_0),
        ((2, 1), FileVersion.V2_1),
        ((2, 2), FileVersion.V2_2),
        ((2, 3), FileVersion.V2_3),
    ],
)
def test_numbers_mean_one_version(numbers: tuple[int, int], version: FileVersion) -> None:
    assert FileVersion.from_numbers(*numbers) is version


@pytest.mark.parametrize("numbers", [(0, 4), (1, 0), (2, 4), (3, 0), (65535, 65535)])
def test_unknown_numbers_are_unsupported(numbers: tuple[int, int]) -> None:
    with pytest.raises(Unsupported, match=f"{numbers[0]}.{numbers[1]}"):
        FileVersion.from_numbers(*numbers)


@pytest.mark.parametrize("version", FileVersion)
def test_the_numbers_that_are_written_are_read_back(version: FileVersion) -> None:
    assert FileVersion.from_numbers(*version.footer_numbers) is version
    assert FileVersion.from_numbers(*version.manifest_numbers) is version
    assert FileVersion.parse(version.label) is version
