"""Substrait messages of other producers than pyarrow: functions by many names, types by variations, damage."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lancelet.errors import LanceletError
from lancelet.expr import evaluate, keep, parse_filter
from lancelet.expr.from_substrait import translated_message
from lancelet.format.protos import substrait_pb2 as wire

ROWS = pa.table(
    {
        "x": pa.array([1, 2, None, 300], pa.int16()),
        "s": pa.array(["abc", "B", None, ""]),
        "st": pa.array(
            [{"a": {"b": 1}}, None, {"a": None}, {"a": {"b": 4}}], pa.struct({"a": pa.struct({"b": pa.int8()})})
        ),
        "l": pa.array([[1, 2], [], None, [4]], pa.list_(pa.int64())),
        "m": pa.array([[("k", 1)], [], None, [("k", 4)]], pa.map_(pa.string(), pa.int64())),
        "t": pa.array([dt.datetime(2020, 5, 1), None, dt.datetime(1969, 1, 1), None], pa.timestamp("us")),
    }
)
I16, I64, I8 = ({kind: {}} for kind in ("i16", "i64", "i8"))
STRING: dict[str, Any] = {"string": {}}
SCHEMA = {
    "names": ["x", "s", "st", "a", "b", "l", "m", "t"],
    "struct": {
        "types": [
            I16,
            STRING,
            {"struct": {"types": [{"struct": {"types": [I8]}}]}},
            {"list": {"type": I64}},
            {"map": {"key": STRING, "value": I64}},
            {"precision_timestamp": {"precision": 6}},
        ]
    },
}


def column(place: int, **child: Any) -> dict[str, Any]:
    """A column by its place, or something below it."""
    step = {"field": place, **({"child": child} if child else {})}
    return {"selection": {"direct_reference": {"struct_field": step}, "root_reference": {}}}


def constant(**value: Any) -> dict[str, Any]:
    return {"literal": value}


def call(name: str, *arguments: Any) -> dict[str, Any]:
    """A function; of an argument that is a word only the word is said."""
    given = [{"enum": each} if isinstance(each, str) else {"value": each} for each in arguments]
    return {"scalar_function": {"function_reference": name, "arguments": given}}


def numbered(node: Any, names: list[str]) -> Any:
    """Function names as the numbers by which a message declares them."""
    if isinstance(node, dict):
        made = {key: numbered(value, names) for key, value in node.items()}
        if isinstance(made.get("function_reference"), str):
            if made["function_reference"] not in names:
                names.append(made["function_reference"])
            made["function_reference"] = names.index(made["function_reference"])
        return made
    return [numbered(each, names) for each in node] if isinstance(node, list) else node


def message(node: dict[str, Any]) -> bytes:
    names: list[str] = []
    expression = numbered(node, names)
    declared = [{"extension_function": {"function_anchor": place, "name": name}} for place, name in enumerate(names)]
    made = wire.ExtendedExpression(extensions=declared, referred_expr=[{"expression": expression}], base_schema=SCHEMA)
    return made.SerializeToString()


X = column(0)


@pytest.mark.parametrize(
    ("node", "kept"),
    [
        (call("gt:any_any", X, constant(i64=1)), [1, 3]),
        (call("between:any_any_any", X, constant(i32=1), constant(i32=2)), [0, 1]),
        (call("equal", X, constant(i8=44, type_variation_reference=1)), []),
        (call("equal", column(0), constant(i16=300, type_variation_reference=1)), [3]),
        (call("is_distinct_from", X, constant(i16=1)), [1, 2, 3]),
        (call("add", X, X, X), None),
        (call("equal", call("add", X, X, X), constant(i64=6)), [1]),
        (
            call("and", call("is_not_null", X), call("not", call("equal", X, constant(i64=2))), constant(boolean=True)),
            [0, 3],
        ),
        (call("xor", call("equal", X, constant(i64=1)), constant(boolean=False)), [0]),
        (call("like", column(1), constant(string="%b_")), [0]),
        (call("starts_with:str_str", column(1), constant(fixed_char="a")), [0]),
        (
            call(
                "equal",
                call("substring", column(1), constant(i32=2), constant(i32=1)),
                constant(var_char={"value": "b"}),
            ),
            [0],
        ),
        (call("equal", call("char_length", column(1)), constant(i64=0)), [3]),
        (call("equal", call("upper", column(1)), constant(string="B")), [1]),
        (call("equal", call("extract:req_ts", "YEAR", column(5)), constant(i64=2020)), [0]),
        (call("lt", column(5), constant(precision_timestamp={"precision": 3, "value": 0})), [2]),
        (
            call(
                "equal", column(2, struct_field={"field": 0, "child": {"struct_field": {"field": 0}}}), constant(i8=4)
            ),
            [3],
        ),
        (call("equal", column(3, list_element={"offset": 1}), constant(i64=2)), [0]),
        (call("equal", column(4, map_key={"map_key": {"string": "k"}}), constant(i64=4)), [3]),
        (call("array_has", column(3), constant(i64=4)), [3]),
        ({"singular_or_list": {"value": X, "options": [constant(i64=1), constant(null={"i64": {}}), X]}}, [0, 1, 3]),
        (call("equal", {"cast": {"type": STRING, "input": X, "failure_behavior": 2}}, constant(string="2")), [1]),
        (call("is_null", {"cast": {"type": I8, "input": X, "failure_behavior": 1}}), [2, 3]),
        (
            call(
                "equal",
                {"if_then": {"ifs": [{"if": call("lt", X, constant(i64=2)), "then": constant(i64=7)}], "else": X}},
                constant(i64=7),
            ),
            [0],
        ),
        (call("equal", X, constant(decimal={"value": (20).to_bytes(16, "little"), "precision": 5, "scale": 1})), [1]),
        (call("lt", {"literal": {"date": 0}}, column(5)), [0]),
    ],
)
def test_a_message_keeps_the_rows_that_it_describes(node: dict[str, Any], kept: list[int] | None) -> None:
    if kept is None:
        assert evaluate(translated_message(message(node), ROWS.schema), ROWS).to_pylist() == [3, 6, None, 900]
    else:
        assert keep(parse_filter(message(node), ROWS.schema), ROWS).nonzero()[0].tolist() == kept


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (call("no_such_function", X), "no_such_function"),
        (call("char_lengt", column(1)), "did you mean 'char_length'"),
        (call("between", X), "between with 1 arguments"),
        (column(9), "field 9 of 6"),
        (call("equal", X, constant()), "empty constant"),
        (call("equal", X, {"literal": {"date": 2**31 - 1}}), "cannot compare"),
        ({"window_function": {}}, "other than columns"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(node: dict[str, Any], why: str) -> None:
    node.pop("window_function", None)
    with pytest.raises(LanceletError, match=why):
        parse_filter(message(node), ROWS.schema)


def test_columns_are_those_that_a_message_names_wherever_they_stand() -> None:
    written = bytes((pc.field("s") == "B").to_substrait(pa.schema({"q": pa.int8(), "s": pa.string()})))
    assert keep(parse_filter(written, ROWS.schema), ROWS).tolist() == [False, True, False, False]


def test_damaged_messages_raise_nothing_but_errors_of_ours() -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    whole = message(call("and", call("like", column(1), constant(string="a%")), call("gt", X, constant(i64=3))))
    for _ in range(3000):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            keep(parse_filter(bytes(damaged), ROWS.schema), ROWS)
        except LanceletError:
            continue
        except Exception as error:
            raise AssertionError(f"seed {seed}: {bytes(damaged)!r}") from error
