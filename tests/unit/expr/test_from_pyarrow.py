"""pyarrow expressions, read as they are and through Substrait, keep the rows that pyarrow keeps by them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lancelet.errors import InvalidInput, Unsupported
from lancelet.expr import evaluate, keep, parse_filter
from lancelet.expr.from_pyarrow import translated

FIELD = pc.field
DAY = dt.date(2020, 2, 29)
NOON = dt.datetime(2020, 2, 29, 12, 30, 15)
ROWS = pa.table(
    {
        "i": pa.array([1, 2, None, 4, -5], pa.int32()),
        "u": pa.array([1, 200, None, 4, 0], pa.uint8()),
        "f": pa.array([0.5, -1.5, None, 4.0, 100.0]),
        "b": pa.array([True, False, None, True, False]),
        "c": pa.array([True, None, False, False, True]),
        "s": pa.array(["abc", "Bcd", None, "  pad ", ""]),
        "t": pa.array(["abc", "x", "y", None, ""], pa.large_string()),
        "d": pa.array([DAY, dt.date(1969, 12, 31), None, dt.date(2021, 1, 3), DAY]),
        "ts": pa.array([NOON, None, dt.datetime(1960, 1, 1), NOON, NOON], pa.timestamp("us")),
        "ns": pa.array([NOON, None, dt.datetime(1960, 1, 1), NOON, NOON], pa.timestamp("ns", "UTC")),
        "m": pa.array([Decimal("1.25"), Decimal("-2.50"), None, Decimal(4), Decimal(0)], pa.decimal128(10, 2)),
        "l": pa.array([[1, 2], [], None, [4], [5, None]], pa.list_(pa.int64())),
        "st": pa.array(
            [{"x": 1, "a.b": {"z": "q"}}, {"x": None, "a.b": None}, None, {"x": 4, "a.b": {"z": "r"}}, None],
            pa.struct([("x", pa.int8()), ("a.b", pa.struct([("z", pa.string())]))]),
        ),
        "bin": pa.array([b"a", b"\x00\xff", None, b"", b"abc"]),
        "k": pa.array(["x", "y", None, "x", "z"]).dictionary_encode(),
        "w": pa.array([dt.timedelta(1), None, dt.timedelta(-1), dt.timedelta(0), dt.timedelta(2)]),
    }
)

CONDITIONS = [
    FIELD("i") > 1,
    FIELD("i") == 2.0,
    pc.scalar(1) < FIELD("u"),
    FIELD("u").isin([200, 4]),
    FIELD("f") >= -1.5,
    FIELD("i").is_null(),
    FIELD("i").is_valid(),
    FIELD("f").is_null(nan_is_null=True),
    FIELD("b") & FIELD("c"),
    FIELD("b") | ~FIELD("c"),
    ~(FIELD("b") & FIELD("c")),
    pc.xor(FIELD("b"), FIELD("c")),
    pc.and_not_kleene(FIELD("b"), FIELD("c")),
    FIELD("i") + FIELD("u") == 2,
    FIELD("i") * 2 - 1 > 2,
    FIELD("f") / 2 < 1,
    pc.negate(FIELD("i")) > 0,
    pc.abs(FIELD("f")) > 1,
    pc.power(FIELD("i"), 2) == 4,
    pc.sqrt(pc.abs(FIELD("f"))) > 1.3,
    pc.round(FIELD("f"), ndigits=0, round_mode="half_towards_infinity") == 1,
    pc.is_finite(FIELD("f")),
    pc.is_inf(FIELD("f")),
    pc.bit_wise_and(FIELD("i"), 1) == 1,
    FIELD("i").cast(pa.float64()) > 1.5,
    FIELD("i").cast(pa.string()) == "4",
    pc.starts_with(FIELD("s"), "ab"),
    pc.starts_with(FIELD("s"), "b", ignore_case=True),
    pc.ends_with(FIELD("s"), "d"),
    pc.match_substring(FIELD("s"), "bc"),
    pc.match_substring(FIELD("s"), "BC", ignore_case=True),
    pc.match_like(FIELD("s"), "%c_"),
    pc.match_substring_regex(FIELD("s"), "^[a-z]+$"),
    pc.match_substring_regex(FIELD("s"), "^B", ignore_case=True),
    pc.utf8_lower(FIELD("s")) == "bcd",
    pc.utf8_length(FIELD("t")) == 3,
    pc.binary_length(FIELD("bin")) > 1,
    pc.utf8_trim_whitespace(FIELD("s")) == "pad",
    pc.utf8_ltrim(FIELD("s"), " a") == "bc",
    pc.utf8_slice_codeunits(FIELD("s"), 1, 3) == "bc",
    pc.utf8_slice_codeunits(FIELD("s"), 1) == "cd",
    pc.replace_substring(FIELD("s"), "b", "X") == "aXc",
    pc.replace_substring_regex(FIELD("s"), "[bc]", "") == "a",
    pc.find_substring(FIELD("s"), "c") == 2,
    pc.binary_join_element_wise(FIELD("s"), FIELD("s"), "-") == "abc-abc",
    pc.if_else(FIELD("i") > 1, FIELD("u"), 7) == 4,
    pc.case_when(pc.make_struct(FIELD("b"), FIELD("c")), 1, 2, 3) == 2,
    pc.coalesce(FIELD("i"), FIELD("f"), 9) == 9,
    pc.min_element_wise(FIELD("i"), 3) == 3,
    pc.max_element_wise(FIELD("i"), FIELD("f"), skip_nulls=False) > 1,
    FIELD("st", "x") > 1,
    FIELD("st", "a.b", "z") == "q",
    pc.struct_field(FIELD("st"), ["a.b", "z"]) == "r",
    pc.struct_field(FIELD("st"), [0]) == 1,
    pc.list_value_length(FIELD("l")) == 2,
    pc.year(FIELD("d")) == 2020,
    pc.day_of_week(FIELD("d")) == 5,
    pc.day_of_week(FIELD("d"), count_from_zero=False, week_start=7) == 1,
    pc.iso_week(FIELD("d")) == 53,
    pc.second(FIELD("ts")) == 15,
    pc.floor_temporal(FIELD("ts"), unit="month") == pa.scalar(dt.datetime(2020, 2, 1), pa.timestamp("us")),
    FIELD("d") == DAY,
    FIELD("ts") > NOON - dt.timedelta(1),
    FIELD("ns") == pa.scalar(NOON, pa.timestamp("ns", "UTC")),
    FIELD("m") == Decimal("1.25"),
    FIELD("m") < Decimal("1.00"),
    FIELD("bin") == b"\x00\xff",
    FIELD("k") == "x",
    FIELD("w") > dt.timedelta(0),
    pc.scalar(True),
    pc.scalar(None).cast(pa.bool_()),
]


@pytest.mark.parametrize("condition", CONDITIONS, ids=[str(each).replace("\n", " ") for each in CONDITIONS])
def test_a_pyarrow_expression_keeps_the_rows_that_pyarrow_keeps(condition: pc.Expression) -> None:
    wanted = ROWS.add_column(0, "row", pa.array(range(len(ROWS)))).filter(condition)["row"].to_pylist()
    assert keep(parse_filter(condition, ROWS.schema), ROWS).nonzero()[0].tolist() == wanted


def in_substrait(condition: pc.Expression) -> tuple[pa.Table, bytes] | None:
    """The columns that pyarrow can write of, and the message; None if it cannot say the condition in Substrait.

    Of ``ignore_case`` it says nothing in a message, without telling.
    """
    if "ignore_case=true" in str(condition):
        return None
    rows = ROWS.drop_columns(["k", "w"])
    try:
        return rows, bytes(condition.to_substrait(rows.schema, allow_arrow_extensions=True))
    except (pa.ArrowException, KeyError):
        return None


@pytest.mark.parametrize("condition", CONDITIONS, ids=[str(each).replace("\n", " ") for each in CONDITIONS])
def test_what_pyarrow_writes_in_substrait_keeps_the_same_rows(condition: pc.Expression) -> None:
    said = in_substrait(condition)
    if said is None:
        return
    rows, message = said
    wanted = keep(parse_filter(condition, rows.schema), rows).tolist()
    assert keep(parse_filter(message, rows.schema), rows).tolist() == wanted


def test_most_conditions_can_be_said_in_substrait() -> None:
    assert sum(in_substrait(each) is not None for each in CONDITIONS) > 40


def test_a_null_is_never_known_to_be_among_others() -> None:
    for condition, kept in [
        (FIELD("i").isin([1, None]), [0]),
        (~FIELD("i").isin([1]), [1, 3, 4]),
        (~FIELD("i").isin([1, None]), []),
        (pc.is_in(FIELD("i"), pa.array([1, None]), skip_nulls=True), [0]),
        (FIELD("i").isin(pa.array([], pa.int64())), []),
    ]:
        assert keep(parse_filter(condition, ROWS.schema), ROWS).nonzero()[0].tolist() == kept


def test_plain_and_is_null_where_a_side_is_and_a_null_condition_takes_the_other_value() -> None:
    """The second as pylance has it, of which Substrait knows no other."""
    both = translated(pc.and_(FIELD("b"), FIELD("c")), ROWS.schema)
    assert evaluate(both, ROWS).to_pylist() == [True, None, None, False, False]
    either = translated(pc.or_(FIELD("b"), FIELD("c")), ROWS.schema)
    assert evaluate(either, ROWS).to_pylist() == [True, None, None, True, True]
    chosen = translated(pc.if_else(FIELD("b"), 1, 2), ROWS.schema)
    assert evaluate(chosen, ROWS).to_pylist() == [1, 2, 2, 1, 2]


def test_columns_are_found_by_their_places_too() -> None:
    rows = ROWS.select(["i", "st"])
    assert keep(parse_filter(FIELD(0) > 1, rows.schema), rows).nonzero()[0].tolist() == [1, 3]
    with pytest.raises(Unsupported, match="name columns, not places"):
        parse_filter(FIELD(0) > 1, ROWS.schema)


def test_an_unknown_column_or_function_is_named_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match=r"no column 'st\.y'.*'?x"):
        parse_filter(FIELD("st", "y") > 1, ROWS.schema)
    with pytest.raises(Unsupported, match=r"utf8_swapcase.*utf8_upper"):
        parse_filter(pc.utf8_swapcase(FIELD("s")) == "Abc", ROWS.schema)
    with pytest.raises(InvalidInput, match="expected a condition"):
        parse_filter(FIELD("i") + 1, ROWS.schema)


def test_long_chains_of_conditions_are_read_without_recursion() -> None:
    chain = reduce(lambda one, two: one & two, [FIELD("i") != 100 + number for number in range(1500)])
    assert keep(parse_filter(chain, ROWS.schema), ROWS).nonzero()[0].tolist() == [0, 1, 3, 4]


def test_structs_are_made_and_values_keep_their_type() -> None:
    made = translated(pc.make_struct(FIELD("i"), FIELD("s"), field_names=["one", "two"]), ROWS.schema)
    assert made.type == pa.struct([("one", pa.int32()), ("two", pa.string())])
    assert evaluate(made, ROWS).to_pylist()[0] == {"one": 1, "two": "abc"}


@pytest.mark.parametrize("damage", [lambda data: data[:20], lambda data: b"\xff" + data, lambda _: b"", lambda _: b"x"])
def test_bytes_that_are_no_message_are_refused(damage: Callable[[bytes], bytes]) -> None:
    message = bytes((FIELD("i") > 1).to_substrait(ROWS.select(["i"]).schema))
    with pytest.raises(ValueError):
        parse_filter(damage(message), ROWS.schema)
