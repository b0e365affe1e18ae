"""The plainest conditions mean what the parser makes of them."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from lancelet.errors import LanceletError
from lancelet.expr.parse import _is_plain_name, _Text, parse_filter
from lancelet.expr.quick import quick_condition
from lancelet.expr.tree import Expr

TYPES = {
    "id": pa.int64(),
    "number": pa.int8(),
    "real": pa.float32(),
    "text": pa.string(),
    "date": pa.large_string(),
    "case": pa.int32(),
    "null": pa.int64(),
    "interval": pa.int64(),
    "flag": pa.bool_(),
    "price": pa.decimal128(9, 2),
    "day": pa.date32(),
    "A": pa.uint64(),
}
SCHEMA = pa.schema(TYPES)
VALUES = (
    "0",
    "7",
    "-3",
    "300",
    "-300",
    "007",
    "- 5",
    "1.5",
    "'x'",
    "''",
    "'a AND b'",
    "'it''s'",
    '"x"',
    "NULL",
    "99999999999999999999",
)


def parsed(text: str) -> Expr | str:
    try:
        return _Text(text, SCHEMA).condition()
    except LanceletError as error:
        return type(error).__name__


def comparison(draw: Random) -> str:
    name, how = draw.choice([*TYPES, "a", "ID"]), draw.choice(["=", "<", "<=", ">", ">=", "!="])
    space = draw.choice(["", " "])
    return f"{name}{space}{how}{space}{draw.choice(VALUES)}"


@pytest.mark.parametrize("seed", range(6))
def test_a_condition_that_is_read_quickly_means_what_the_parser_makes_of_it(seed: int) -> None:
    draw, quick = Random(seed), 0
    for _ in range(250):
        parts = [comparison(draw) for _ in range(draw.choice([1, 1, 2, 3]))]
        text = draw.choice([" AND ", " and ", " OR ", " AND NOT ", "\nAnd\t"]).join(parts)
        found = quick_condition(text, SCHEMA, _is_plain_name)
        if found is not None:
            quick += 1
            assert found == parsed(text), text
    assert quick > 10


@pytest.mark.parametrize("text", ["id = 5", "id >= 5 AND id < 9 and text = 'x'", "number = 300", "real > 7"])
def test_the_plainest_conditions_are_read_quickly(text: str) -> None:
    assert quick_condition(text, SCHEMA, _is_plain_name) is not None
    assert parse_filter(text, SCHEMA) == parsed(text)
