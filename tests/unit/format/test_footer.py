"""Footers and offset tables: what is written is read back, and what lies outside the file is refused."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelet.errors import Corrupt, LanceletError, Unsupported
from lancelet.format.footer import (
    FOOTER_SIZE,
    Footer,
    LegacyFooter,
    parse_footer,
    parse_offset_table,
    parse_version,
    write_footer,
    write_legacy_footer,
    write_offset_table,
)
from lancelet.format.versions import FileVersion

SIZE = 1000
GOOD = Footer(FileVersion.V2_1, 100, 200, 300, 2, 3)


@pytest.mark.parametrize("version", [v for v in FileVersion if v >= FileVersion.V2_0])
def test_a_footer_is_read_back(version: FileVersion) -> None:
    footer = Footer(version, 100, 200, 300, 2, 3)
    written = write_footer(footer)
    assert len(written) == FOOTER_SIZE
    assert parse_footer(b"\0" * 9 + written, SIZE) == footer
    assert (footer.column_table, footer.global_table) == ((200, 48), (300, 32))


def test_version_2_0_is_written_as_0_3() -> None:
    assert write_footer(Footer(FileVersion.V2_0, 0, 0, 0, 0, 0))[-8:] == b"\0\0\3\0LANC"


def test_a_legacy_footer_is_read_back() -> None:
    footer = LegacyFooter(FileVersion.V0_1, 77)
    assert parse_footer(write_legacy_footer(footer), 500) == footer


@pytest.mark.parametrize(
    ("footer", "message"),
    [
        (Footer(FileVersion.V2_1, 961, 0, 0, 0, 0), "column metadata at 961"),
        (Footer(FileVersion.V2_1, 0, 961, 0, 0, 0), "column offset table at 961"),
        (Footer(FileVersion.V2_1, 0, 900, 0, 0, 4), "column offset table at 900..964"),
        (Footer(FileVersion.V2_1, 0, 0, 2**64 - 1, 1, 0), "global buffer offset table"),
        (Footer(FileVersion.V2_1, 0, 0, 0, 2**32 - 1, 0), "global buffer offset table"),
        (Footer(FileVersion.V2_1, 0, 0, 0, 0, 2**32 - 1), "column offset table"),
        (LegacyFooter(FileVersion.V0_1, 985), "metadata at 985"),
    ],
)
def test_positions_and_counts_outside_the_file_are_corrupt(footer: Footer | LegacyFooter, message: str) -> None:
    data = write_footer(footer) if isinstance(footer, Footer) else write_legacy_footer(footer)
    with pytest.raises(Corrupt, match=message) as caught:
        parse_footer(data, SIZE, uri="a.lance")
    assert caught.value.uri == "a.lance"


@pytest.mark.parametrize(
    ("tail", "kind", "message"),
    [
        (b"", Corrupt, "ends after 0 bytes"),
        (b"LANC", Corrupt, "ends after 4 bytes"),
        (b"\2\0\1\0LANC", Corrupt, "ends after 8 bytes"),
        (b"\0\0\2\0LANC", Corrupt, "ends after 8 bytes"),
        (bytes(36) + b"PAR1", Corrupt, "b'PAR1'"),
        (bytes(32) + struct.pack("<HH4s", 2, 9, b"LANC"), Unsupported, "2.9 is unknown"),
    ],
)
def test_a_tail_that_is_no_footer_is_refused(tail: bytes, kind: type[LanceletError], message: str) -> None:
    with pytest.raises(kind, match=message):
        parse_footer(tail, SIZE)


def test_the_version_needs_only_the_last_eight_bytes() -> None:
    assert parse_version(write_footer(GOOD)[-8:]) is FileVersion.V2_1


@given(st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**40)), max_size=20))
def test_an_offset_table_is_read_back(ranges: list[tuple[int, int]]) -> None:
    table = parse_offset_table(write_offset_table(ranges), 2**42)
    assert [tuple(row) for row in table.tolist()] == ranges


@pytest.mark.parametrize("entry", [(101, 0), (0, 101), (100, 1), (2**64 - 1, 2), (2**63, 2**63)])
def test_an_entry_past_the_limit_is_corrupt(entry: tuple[int, int]) -> None:
    data = write_offset_table([(0, 100), (100, 0)]) + struct.pack("<QQ", *entry)
    with pytest.raises(Corrupt, match=f"global buffer 2 at {entry[0]}"):
        parse_offset_table(data, 100, what="global buffer")


def test_a_table_of_broken_size_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="17 bytes"):
        parse_offset_table(bytes(17), 100)


@given(st.binary(min_size=40, max_size=40), st.integers(40, 10_000))
def test_any_tail_gives_a_footer_within_the_file_or_a_named_error(tail: bytes, size: int) -> None:
    for data in (tail, tail[:32] + b"\2\0\2\0LANC", tail[:32] + b"\0\0\2\0LANC"):
        try:
            footer = parse_footer(data, size)
        except (Corrupt, Unsupported):
            continue
        if isinstance(footer, Footer):
            assert sum(footer.column_table) <= size
            assert sum(footer.global_table) <= size
