"""Rows that are fitted to a table: order and gaps are made good at every depth, other types refused by name."""

from __future__ import annotations

from uuid import uuid4

import pyarrow as pa
import pytest

from lancelet.errors import InvalidInput
from lancelet.format.arrow import schema_from_arrow, schema_to_arrow
from lancelet.ops.fitting import conformed, fitting
from lancelet.ops.write import append, create
from lancelet.query.scan import scan
from lancelet.storage.memory import MemoryStore
from lancelet.table.outcome import committed
from lancelet.table.snapshot import open_snapshot

POINT = pa.struct([("x", pa.int64()), ("y", pa.string())])
TURNED = pa.struct([("y", pa.string()), ("x", pa.int64())])
HALF = pa.struct([("y", pa.string())])
VALUES = [{"x": 1, "y": "a"}, None, {"x": None, "y": None}, {"x": 4, "y": "d"}]


def around(kind: pa.DataType) -> dict[str, pa.DataType]:
    """A struct at every depth that files of 2.2 hold."""
    return {
        "struct": kind,
        "struct of struct": pa.struct([("in", kind)]),
        "list": pa.list_(kind),
        "large list": pa.large_list(kind),
        "map": pa.map_(pa.int8(), kind),
        "list of lists": pa.list_(pa.list_(kind)),
        "fixed-size list": pa.list_(kind, 2),
    }


def values(name: str) -> list[object]:
    match name:
        case "struct":
            return [*VALUES]
        case "struct of struct":
            return [{"in": value} for value in VALUES]
        case "map":
            return [[(1, VALUES[0]), (2, VALUES[3])], None, [], [(7, VALUES[1])]]
        case "list of lists":
            return [[VALUES, []], None, [], [[VALUES[0]], None]]
        case "fixed-size list":
            return [VALUES[:2], VALUES[2:], [VALUES[0], VALUES[0]], [VALUES[3], VALUES[0]]]
    return [VALUES, None, [], VALUES[:1]]


@pytest.mark.parametrize("name", around(POINT))
@pytest.mark.parametrize("given", [TURNED, HALF], ids=["turned", "half"])
@pytest.mark.parametrize("cut", [slice(None), slice(1, 3)], ids=["whole", "slice"])
def test_fields_of_structs_come_in_any_order_and_may_be_missing_at_any_depth(
    name: str, given: pa.DataType, cut: slice
) -> None:
    store = MemoryStore(f"memory://{uuid4()}")
    first = pa.table({"v": pa.array(values(name), around(POINT)[name])})
    committed(create(store, first))
    array = pa.array(values(name), around(given)[name])[cut]
    committed(append(open_snapshot(store), pa.table({"v": array})))
    expected = without_x(values(name)[cut]) if given == HALF else values(name)[cut]
    assert scan(open_snapshot(store)).read_all()["v"].to_pylist()[4:] == expected


def without_x(value: object) -> object:
    """The values as a table reads them of which nobody gave the field ``x``."""
    if isinstance(value, dict):
        return {key: None if key == "x" else without_x(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return tuple(map(without_x, value))
    return list(map(without_x, value)) if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("table", "rows", "found"),
    [
        (pa.int64(), pa.int32(), "type int32, expected int64"),
        (pa.string(), pa.large_string(), "type large_string, expected string"),
        (pa.int64(), pa.null(), "type null, expected int64"),
        (pa.string(), pa.dictionary(pa.int32(), pa.string()), "type dict:string:int32:false, expected string"),
        (pa.timestamp("us"), pa.timestamp("ns"), "expected timestamp:us:-"),
        (pa.list_(pa.int64()), pa.large_list(pa.int64()), "type large_list, expected list"),
        (pa.list_(pa.float32(), 2), pa.list_(pa.float32(), 3), "expected fixed_size_list:float:2"),
        (POINT, pa.struct([("x", pa.int32())]), r"expected int64 \[column=v.x\]"),
        (POINT, pa.struct([("z", pa.int64())]), "'v' has no column 'z'"),
        (pa.list_(POINT), pa.list_(pa.struct([("z", pa.int64())])), "'v.item' has no column 'z'"),
        (pa.struct([pa.field("x", pa.int8(), False), ("y", pa.int8())]), pa.struct([("y", pa.int8())]), "lack column"),
    ],
)
def test_other_types_are_refused_by_their_path(table: pa.DataType, rows: pa.DataType, found: str) -> None:
    with pytest.raises(InvalidInput, match=found):
        fitting(schema_from_arrow(pa.schema({"v": table})), schema_from_arrow(pa.schema({"v": rows})))


def test_views_and_names_of_items_make_no_difference() -> None:
    known = schema_from_arrow(pa.schema({"s": pa.string(), "l": pa.list_(pa.int64())}))
    given = pa.schema({"l": pa.list_(pa.field("element", pa.int64(), False)), "s": pa.string_view()})
    assert fitting(known, schema_from_arrow(given)).fields == known.fields


def test_rows_without_any_column_of_the_table_are_refused() -> None:
    known = schema_from_arrow(pa.schema({"s": pa.string()}))
    with pytest.raises(InvalidInput, match="none of the table's columns"):
        fitting(known, schema_from_arrow(pa.schema([])))


def test_batches_that_fit_are_handed_on_as_they_are() -> None:
    batch = pa.record_batch({"x": [1]})
    schema = schema_to_arrow(schema_from_arrow(batch.schema))
    assert next(conformed([batch], schema)) is batch
