"""Random and damaged JSONB and JSON: a result, or a refusal by name, never a crash; text that comes out is JSON."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lancelet import kernels
from lancelet.errors import Corrupt, InvalidInput, Unsupported

many = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=25,
)
# Headers and entries of all kinds, with small counts and lengths, so that they often fit together.
words = st.builds(
    lambda tag, count: (tag << 28 | count).to_bytes(4, "big"),
    st.integers(0, 15),
    st.integers(0, 12) | st.sampled_from([2**28 - 1, 2**27]),
)


@pytest.fixture(params=[name for name in kernels.variants() if name != "reference"] or ["reference"], scope="session")
def modules(request: pytest.FixtureRequest):
    return kernels.load(request.param)


def _decoded(modules, documents: list[bytes]) -> list[bytes] | None:
    """The texts; None if they were refused. The documents lie at the end of their memory."""
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    try:
        ends, text = modules["jsonb"].decode(
            offsets, np.frombuffer(b"".join(documents), np.uint8), np.ones(len(documents), np.uint8)
        )
    except (Corrupt, Unsupported):
        return None
    return [text[start:end].tobytes() for start, end in pairwise(ends)]


@many
@given(document=st.lists(words | st.binary(max_size=3), max_size=12).map(b"".join))
def test_any_bytes_become_json_or_are_refused(modules, document):
    for text in _decoded(modules, [document]) or []:
        json.loads(text)


@many
@given(value=values, damage=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=3))
def test_damaged_documents_become_json_or_are_refused(modules, value, damage):
    text = np.frombuffer(json.dumps(value).encode(), np.uint8)
    _, stored = modules["jsonb_encode"].encode(np.array([0, len(text)]), text, np.ones(1, np.uint8))
    damaged = bytearray(stored.tobytes())
    for at, byte in damage:
        damaged[at % len(damaged)] = byte
    for made in _decoded(modules, [bytes(damaged), bytes(damaged[: damage[0][0] % len(damaged)])]) or []:
        json.loads(made)


@many
@given(value=values, damage=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=4))
def test_damaged_text_becomes_jsonb_or_is_refused(modules, value, damage):
    text = bytearray(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    for at, byte in damage:
        text[at % len(text)] = byte
    data = np.frombuffer(bytes(text), np.uint8)
    try:
        ends, stored = modules["jsonb_encode"].encode(np.array([0, len(data)]), data, np.ones(1, np.uint8))
    except InvalidInput:
        return
    (made,) = _decoded(modules, [stored[: ends[1]].tobytes()])
    json.loads(made)
