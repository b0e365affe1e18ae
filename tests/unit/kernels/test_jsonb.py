"""JSONB kernels: which bytes a text becomes, which text bytes become, and how both are refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from lancelet.errors import Corrupt, InvalidInput, Unsupported
from lancelet.kernels import jsonb, jsonb_encode
from lancelet.kernels.jsonb_layout import MOST_LEVELS


def encode(*texts: str) -> list[str]:
    made = _each(*jsonb_encode.encode(*_flat([text.encode() for text in texts])))
    return [document.hex() for document in made]


def decode(*documents: str) -> list[str]:
    made = _each(*jsonb.decode(*_flat([bytes.fromhex(document) for document in documents])))
    return [text.decode() for text in made]


def _flat(documents):
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    return offsets, np.frombuffer(b"".join(documents), np.uint8), np.ones(len(documents), np.uint8)


def _each(offsets, data):
    return [data[start:end].tobytes() for start, end in pairwise(offsets)]


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("null", "20000000 00000000"),
        ("true", "20000000 40000000"),
        ("false", "20000000 30000000"),
        ('"é"', "20000000 10000002 c3a9"),
        ("0", "20000000 20000001 00"),
        ("255", "20000000 20000002 50ff"),
        ("-129", "20000000 20000003 40ff7f"),
        ("-2147483649", "20000000 20000009 40ffffffff7fffffff"),
        ("18446744073709551615", "20000000 20000009 50ffffffffffffffff"),
        ("18446744073709551616", "20000000 20000009 6043f0000000000000"),
        ("-0.0", "20000000 20000009 608000000000000000"),
        ("[]", "80000000"),
        ("{}", "40000000"),
        ("[1,[true]]", "80000002 20000002 50000008 5001 80000001 40000000"),
        ('{"b":1,"a":2}', "40000002 10000001 10000001 20000002 20000002 6162 5002 5001"),
    ],
)
def test_a_document_is_stored_as_its_layout_says_and_comes_back(text, stored):
    assert encode(text) == [stored.replace(" ", "")]
    assert decode(stored)[0] == {
        "18446744073709551616": "1.8446744073709552e+19",
        '{"b":1,"a":2}': '{"a":2,"b":1}',
    }.get(text, text)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("", "null"),
        (" \n", "null"),
        ("NULL", "null"),
        ("tRUE", "true"),
        ("[,1,]", "[null,1,null]"),
        ("{a: 1, $b: 'x'}", '{"a": 1, "$b": "x"}'),
        ("+.5e3", "500.0"),
        ("007.", "7"),
        ("0xFF", "255"),
        ("-0x1.8", "-1.5"),
        ("[1\\n,\\t2]", "[1,2]"),
        ('"\\u{00e9}"', '"é"'),
        ('"\\ud834\\udd1e"', '"𝄞"'),
        ('"\\ud834 alone"', '"\\\\ud834 alone"'),
    ],
)
def test_what_is_taken_beside_json_means(text, same):
    assert encode(text) == encode(same)


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        (0x3EE4F8B588E368F1, "0.00001"),
        (0x3EB0C6F7A0B5ED8D, "1e-6"),
        (0x4341C37937E08000, "1e+16"),
        (0x430C6BF526340000, "1000000000000000.0"),
        (1, "5e-324"),
        (0xFFEFFFFFFFFFFFFF, "-1.7976931348623157e+308"),
        (0x405EDD2F1A9FBE77, "123.456"),
        (0x7FF8000000000000, "null"),
    ],
)
def test_floating_point_numbers_have_the_fewest_digits(bits, text):
    assert decode(f"200000002000000960{bits:016x}") == [text]


@pytest.mark.parametrize(
    ("text", "position"),
    [('{"a":', 5), ("[1 2]", 3), ('{"a":1,"a":2}', 12), ("1e+", 3), ('"\\x41"', 2), ("nul", 3), ('{"a":1,}', 7)],
)
def test_a_text_that_is_not_json_is_refused_by_row_and_byte(text, position):
    with pytest.raises(InvalidInput, match=rf"^row 2 is not JSON: .* at byte {position}$"):
        encode("1", "[]", text)


@pytest.mark.parametrize(
    "document",
    [
        "2000",
        "20000000",
        "00000000",
        "ffffffffffffffff",
        "80000002 20000001 00",
        "8fffffff 00000000",
        "80000001 50000008 80000001 10000004 61626364",
        "40000001 20000001 20000001 0000",
        "40000001 1fffffff 20000001 0000",
        "20000000 50000004 80000000",
        "20000000 20000004 40616263",
        "20000000 20000000",
        "20000000 70000000",
        "20000000 10000001 ff",
    ],
)
def test_bytes_that_are_not_jsonb_are_corrupt(document):
    with pytest.raises(Corrupt, match=r"^row 1 is not JSONB: .* at byte"):
        decode("80000000", document)


@pytest.mark.parametrize(
    "document", ["20000000 2000000a 70 0000000000003039 02", "20000000 60000005 10 00004e20"], ids=["decimal", "date"]
)
def test_values_that_json_text_never_becomes_are_unsupported(document):
    with pytest.raises(Unsupported, match="decimal number or an extension value"):
        decode(document)


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}")])
def test_depth_has_a_bound_that_is_said(begin, end):
    if not jsonb_encode.__file__.endswith(".py"):
        deepest = begin * (MOST_LEVELS - 1) + "1" + end * (MOST_LEVELS - 1)
        assert decode(*encode(deepest)) == [deepest]
    with pytest.raises(InvalidInput, match="131,072 levels"):
        encode(begin * (MOST_LEVELS + 1))


def test_a_scalar_within_an_array_may_have_a_header_of_its_own():
    assert decode("80000001 50000008 20000000 40000000") == ["[true]"]


def test_order_and_repetition_of_stored_keys_stay():
    assert decode("40000002 10000001 10000001 20000001 20000001 62620000") == ['{"b":0,"b":0}']
