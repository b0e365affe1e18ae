"""JSONB: every variant makes the same bytes of a text, the same text of bytes, and refuses the same of both."""

from __future__ import annotations

import json
import struct
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lancelet.errors import LanceletError
from lancelet.kernels.powers_of_ten import powers_of_ten
from lancelet.kernels.reference import jsonb as twin
from lancelet.kernels.reference import jsonb_encode as twin_encode

few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
many = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

strings = st.text(st.characters(codec="utf-8"), max_size=20)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**65), 2**65), st.floats(allow_nan=False, allow_infinity=False), strings
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(strings, inner, max_size=30),
    max_leaves=40,
)
# Pieces that meet in all sorts of ways: hardly anything of this is JSON, much of it nearly so.
characters = "\"'\\{}[]:, aéin+-.019fex\x0b\x1f"
words = (
    '\\u \\u{ d834 dd1e 0041 \\n \\x0C nan NULL tRue false infinity 0x E5 "a": {a: [1, $_ 1.5e-7 9999999999999999999'
)
limits = "18446744073709551616 -9223372036854775808"
pieces = st.sampled_from([*characters, *words.split(), *limits.split()])
numbers = st.from_regex(r"[-+]?(0x)?[0-9]{0,25}\.?[0-9]{0,25}([eE][-+]?[0-9]{0,4})?", fullmatch=True)


def flat(documents):
    """Documents as one array of bytes, with their offsets, and a mark for each that it is valid."""
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    return offsets, np.frombuffer(b"".join(documents), np.uint8), np.ones(len(documents), np.uint8)


def each(offsets, data):
    return [data[start:end].tobytes() for start, end in pairwise(offsets.tolist())]


def outcome(function, documents):
    """What a function makes of documents, or says of them."""
    try:
        return each(*function(*flat(documents)))
    except LanceletError as error:
        return type(error), str(error)


@few
@given(documents=st.lists(values, max_size=8), ascii_only=st.booleans())
def test_documents_become_the_same_bytes_and_come_back(modules, documents, ascii_only):
    texts = [json.dumps(value, ensure_ascii=ascii_only, sort_keys=False).encode() for value in documents]
    stored = outcome(modules["jsonb_encode"].encode, texts)
    assert stored == outcome(twin_encode.encode, texts)
    assert outcome(modules["jsonb"].decode, stored) == outcome(twin.decode, stored)


@many
@given(text=st.lists(pieces, max_size=12).map("".join))
def test_what_is_nearly_json_has_the_same_outcome(modules, text):
    documents = [b"[1]", text.encode()]
    assert outcome(modules["jsonb_encode"].encode, documents) == outcome(twin_encode.encode, documents)


@many
@given(text=numbers)
@example(text="1" + "0" * 400 + "e-400")
@example(text="9007199254740993")
@example(text="9007199254740993.0")
@example(text="2.2250738585072011e-308")
@example(text="4.9406564584124654e-324")
@example(text="1.7976931348623158e308")
@example(text="0x" + "f" * 33)
def test_numbers_are_read_alike(modules, text):
    assert outcome(modules["jsonb_encode"].encode, [text.encode()]) == outcome(twin_encode.encode, [text.encode()])


@pytest.mark.parametrize("seed", range(3))
def test_any_double_is_written_like_python_does_and_read_back(modules, seed):
    random = np.random.default_rng(seed)
    bits = random.integers(0, 2**64, 5000, np.uint64)
    short = random.integers(-(10**9), 10**9, 3000) / 10.0 ** random.integers(0, 12, 3000)
    edges = 2.0 ** np.arange(-1074, 1024)
    doubles = np.concatenate([bits.view(np.float64), short, edges, np.nextafter(edges, 0), np.nextafter(edges, np.inf)])
    doubles = doubles[np.isfinite(doubles)]
    head = bytes.fromhex("200000002000000960")
    stored = [head + struct.pack(">d", value) for value in doubles.tolist()]
    texts = each(*modules["jsonb"].decode(*flat(stored)))
    assert texts == each(*twin.decode(*flat(stored)))
    assert [float(text) for text in texts] == doubles.tolist()
    assert each(*modules["jsonb_encode"].encode(*flat(texts))) == stored


@pytest.mark.parametrize(
    "text", [b'"\xff"', b'"\xed\xa0\x80"', b"{\xc3", b'"\xf4\x90\x80\x80"', b'"\xe2\x82"', b"\x80"]
)
def test_text_that_is_not_utf8_is_refused_alike(modules, text):
    assert outcome(modules["jsonb_encode"].encode, [text]) == outcome(twin_encode.encode, [text])


@many
@given(value=values, at=st.integers(0, 10**6), byte=st.integers(0, 255), cut=st.integers(0, 10**6) | st.none())
@example(value={"00\x80\U00010000": [], "\U00010000": []}, at=187, byte=0, cut=35)
def test_damaged_bytes_have_the_same_outcome(modules, value, at, byte, cut):
    stored = bytearray(outcome(twin_encode.encode, [json.dumps(value).encode()])[0])
    stored[at % len(stored)] = byte
    documents = [bytes(stored[: None if cut is None else cut % (len(stored) + 1)])]
    assert outcome(modules["jsonb"].decode, documents) == outcome(twin.decode, documents)


@pytest.mark.parametrize("levels", [1, 2000])
def test_deep_documents_are_read_and_written(modules, levels):
    texts = [b"[" * levels + b"]" * levels, b'{"a":' * levels + b"1" + b"}" * levels]
    stored = outcome(modules["jsonb_encode"].encode, texts)
    assert outcome(modules["jsonb"].decode, stored) == texts


def test_many_keys_are_sorted(modules):
    random = np.random.default_rng(0)
    keys = [f"key {number:x}" for number in random.permutation(3000)] + ["", "a", "a\0", "é"]
    text = json.dumps(dict.fromkeys(keys, 1), ensure_ascii=False).encode()
    stored = outcome(modules["jsonb_encode"].encode, [text])
    assert stored == outcome(twin_encode.encode, [text])
    assert list(json.loads(outcome(modules["jsonb"].decode, stored)[0])) == sorted(keys, key=str.encode)


def test_powers_of_ten_are_rounded_as_asked():
    down, up = powers_of_ten(round_up=False).astype(object), powers_of_ten(round_up=True).astype(object)
    difference = (up[:, 0] - down[:, 0]) * 2**64 + up[:, 1] - down[:, 1]
    exact = difference == 0
    assert set(np.flatnonzero(exact) - 342) == set(range(56))
    assert (difference[~exact] == 1).all()


def test_null_slots_are_neither_looked_at_nor_filled(modules):
    offsets, data, validity = flat([b"[1]", b"not JSON", b"2", b""])
    validity[[1, 3]] = 0
    for kernels in (modules, {"jsonb": twin, "jsonb_encode": twin_encode}):
        ends, stored = kernels["jsonb_encode"].encode(offsets, data, validity)
        assert np.diff(ends).tolist() == [10, 0, 10, 0]
        assert each(*kernels["jsonb"].decode(ends, stored, validity)) == [b"[1]", b"", b"2", b""]


@pytest.mark.parametrize("offsets", [[0, 2], [1, 0, 1], [0, 1, 9], [-1, 0, 1]])
def test_offsets_that_cut_nothing_are_refused(modules, offsets):
    for function in (modules["jsonb"].decode, modules["jsonb_encode"].encode):
        with pytest.raises(LanceletError, match="offsets"):
            function(np.array(offsets), np.zeros(4, np.uint8), np.ones(2, np.uint8))
