"""Knobs: what field metadata asks for, and what it may not ask for."""

from __future__ import annotations

from typing import Any

import pytest

from lancelet.encodings.knobs import Knobs, parse_knobs
from lancelet.errors import InvalidInput
from lancelet.events import subscribe


def of(**keys: str) -> dict[str, str]:
    return {f"lance-encoding:{key.replace('_', '-')}": value for key, value in keys.items()}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, Knobs()),
        ({"compression": "zstd"}, Knobs()),
        (of(compression="none"), Knobs(compression="none")),
        (of(compression="zstd", compression_level="-5"), Knobs(compression="zstd", compression_level=-5)),
        (of(rle_threshold="0.25"), Knobs(rle_threshold=0.25)),
        (of(bss="ON"), Knobs(byte_stream_split="on")),
        (of(dict_divisor="10"), Knobs(dictionary_divisor=10)),
        (of(dict_divisor="0"), Knobs(dictionary_divisor=1)),
        (of(dict_size_ratio="1"), Knobs(dictionary_size_ratio=1.0)),
        (of(dict_max_size="12000"), Knobs(dictionary_max_bytes=12000)),
        (of(dict_values_compression="none"), Knobs(dictionary_compression="none")),
        (of(dict_values_compression_level="3"), Knobs(dictionary_compression_level=3)),
        (of(minichunk_size="-1"), Knobs(chunk_bytes=-1)),
        (of(structural_encoding="FullZip"), Knobs(structure="fullzip")),
    ],
)
def test_keys_set_their_knob_and_no_other(metadata: dict[str, str], expected: Knobs) -> None:
    assert parse_knobs(metadata) == expected


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("compression", "ZSTD", "none, fsst, lz4, zstd"),
        ("compression", "", "none, fsst, lz4, zstd"),
        ("dict-values-compression", "fsst", "lz4, zstd, none"),
        ("dict-size-ratio", "0", "a number above 0 and up to 1"),
        ("dict-size-ratio", "nan", "a number above 0 and up to 1"),
        ("dict-max-size", "many", "a number of bytes"),
        ("structural-encoding", "sparse", "miniblock, fullzip"),
    ],
)
def test_values_that_cannot_be_obeyed_are_refused_with_those_that_can(key: str, value: str, allowed: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_knobs({f"lance-encoding:{key}": value})
    assert f"lance-encoding:{key} is {value!r}" in str(caught.value)
    assert allowed in str(caught.value)


@pytest.mark.parametrize(
    "key", ["compression-level", "rle-threshold", "bss", "dict-divisor", "dict-size-ratio", "minichunk-size"]
)
def test_values_that_only_sizes_depend_on_are_passed_over_with_an_event(key: str) -> None:
    seen: list[dict[str, Any]] = []
    with subscribe(lambda event: seen.append(dict(event.facts))):
        assert parse_knobs({f"lance-encoding:{key}": "x"}) == Knobs()
    assert [(facts["key"], facts["value"]) for facts in seen] == [(f"lance-encoding:{key}", "x")]


def test_types_that_are_never_compressed_do_not_look_at_the_key() -> None:
    assert parse_knobs(of(compression="ZSTD"), compressible=False) == Knobs()
