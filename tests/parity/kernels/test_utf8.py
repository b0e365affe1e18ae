"""UTF-8: every variant finds the first value that Python's own decoder refuses, and no other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lancelet.errors import InvalidInput

few = settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
#: Bytes at which the rules change.
EDGES = (0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF)
EDGES += (0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF)


def expected(values: list[bytes]) -> int:
    for at, value in enumerate(values):
        try:
            value.decode()
        except UnicodeDecodeError:
            return at
    return -1


def found(modules, values: list[bytes], before: int = 0, kind: type = np.int32) -> int:
    data = np.frombuffer(b"\xff" * before + b"".join(values) + b"\xff", np.uint8)
    offsets = np.cumsum([before, *map(len, values)]).astype(kind)
    return modules["utf8"].find_invalid(data, offsets)


@few
@given(
    values=st.lists(st.one_of(st.text(max_size=9).map(str.encode), st.binary(max_size=3)), max_size=9),
    before=st.integers(0, 5),
    kind=st.sampled_from([np.int32, np.int64]),
)
def test_the_first_value_that_is_no_text_is_found(modules, values, before, kind):
    assert found(modules, values, before, kind) == expected(values)


def test_every_sequence_of_edges_is_told_as_python_tells_it(modules):
    draw = np.random.default_rng(1)
    for size in (1, 2, 3, 4):
        for _ in range(1500):
            value = bytes(draw.choice(EDGES, size).tolist())
            assert found(modules, [value]) == expected([value]), value
            assert found(modules, [b"a" + value, b"b"]) == expected([b"a" + value]), value


@pytest.mark.parametrize("place", [0, 1, 2, 3, 4093, 4094, 4095, 4096, 4097, 8190, 12287])
@pytest.mark.parametrize("text", ["é", "東", "🦊"])
def test_characters_may_lie_across_blocks_but_not_across_values(modules, place, text):
    whole = b"x" * place + text.encode() + b"y" * 9000
    assert found(modules, [whole]) == -1
    assert found(modules, [whole[: place + 1], whole[place + 1 :]]) == 0
    assert found(modules, [whole[:place], whole[place:]]) == -1
    assert found(modules, [whole[: place + 1] + b"z" * 5000]) == 0


@pytest.mark.parametrize("offsets", [[-1, 1], [0, 9], [2, 1], []])
def test_offsets_outside_the_bytes_are_refused(modules, offsets):
    with pytest.raises(InvalidInput):
        modules["utf8"].find_invalid(np.zeros(3, np.uint8), np.array(offsets, np.int64))
