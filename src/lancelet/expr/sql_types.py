"""SQL's names of types as Arrow types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lancelet.errors import InvalidInput, Unsupported
from lancelet.expr.names import nearest

__all__ = ["sql_type"]

_PLAIN: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "MEDIUMINT": pa.int32(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UMEDIUMINT": pa.uint32(),
    "UINT": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "CHAR": pa.string(),
    "NCHAR": pa.string(),
    "VARCHAR": pa.string(),
    "NVARCHAR": pa.string(),
    "TEXT": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "BLOB": pa.binary(),
    "DATE": pa.date32(),
    "DATE32": pa.date32(),
}
_POINTS = ("TIMESTAMP", "DATETIME", "TIMESTAMPNTZ", "TIMESTAMPTZ", "TIMESTAMPLTZ")
_DECIMALS = ("DECIMAL", "BIGDECIMAL", "DECIMAL32", "DECIMAL64", "DECIMAL128", "DECIMAL256")
_UNITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}


def sql_type(node: Any, *, statement: bool = False) -> pa.DataType:
    """The type that a node of sqlglot's names.

    Times are in microseconds where nothing else is asked for, in statements in nanoseconds, as pylance has it.
    """
    name = str(getattr(node.this, "name", node.this))
    found = _PLAIN.get(name)
    if found is not None:
        return found
    parameters = [str(each.this) if type(each).__name__ == "DataTypeParam" else each for each in node.expressions]
    if name in _POINTS:
        zone = "UTC" if name in ("TIMESTAMPTZ", "TIMESTAMPLTZ") else None
        return pa.timestamp(_unit(parameters, statement), zone)
    if name == "TIME":
        unit = _unit(parameters, True)
        return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    if name in _DECIMALS:
        return _decimal(parameters)
    if name in ("ARRAY", "LIST") and len(node.expressions) == 1:
        return pa.list_(sql_type(node.expressions[0], statement=statement))
    if name == "STRUCT" and all(type(each).__name__ == "ColumnDef" for each in node.expressions):
        return pa.struct(
            [(each.this.name, sql_type(each.args["kind"], statement=statement)) for each in node.expressions]
        )
    if name == "USERDEFINED":
        written = node.sql()
        raise InvalidInput(
            f"there is no type {written!r}", hint=nearest(written.lower(), sorted(map(str.lower, _PLAIN)))
        )
    raise Unsupported(
        f"type {node.sql()!r} is not offered in casts", hint="arrow_cast(value, 'Int64') takes Arrow types"
    )


def _unit(parameters: list[Any], statement: bool) -> str:
    digits = int(parameters[0]) if parameters else (9 if statement else 6)
    if digits not in _UNITS:
        raise InvalidInput(f"{digits} digits of a second are asked for, expected 0, 3, 6 or 9")
    return _UNITS[digits]


def _decimal(parameters: list[Any]) -> pa.DataType:
    if not parameters:
        return pa.decimal128(38, 10)
    precision, scale = int(parameters[0]), int(parameters[1]) if len(parameters) > 1 else 0
    if not (1 <= precision <= 76 and 0 <= scale <= precision):
        raise InvalidInput(f"decimal({precision}, {scale}) has no such digits, expected at most 76 of which scale are")
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
