"""pyarrow expressions as the steps that pyarrow itself writes when it pickles one.

They are the metadata of an Arrow file, in order and with keys that repeat; pyarrow's own reader gives one of each key:

    call=greater  field_ref=x  literal=0  end=greater          x > (column 0 of the file's one row)

The metadata stand in the file's footer, a flatbuffer: tables of fields, each found by an offset in the table's index.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lancelet.errors import InvalidInput, Unsupported

__all__ = ["Step", "steps_of"]

_MAGIC = b"ARROW1"
#: Which fields of their tables the schema and its metadata are.
_SCHEMA, _METADATA, _KEY, _VALUE = 1, 2, 0, 1


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what it does, the name it does it to, and the constant or options that go with it."""

    kind: str
    name: str
    value: pa.Scalar | None = None


def steps_of(expression: pc.Expression) -> Iterator[Step]:
    """The steps of an expression: functions before their arguments, ended by name.

    >>> [(step.kind, step.name) for step in steps_of(pc.field("x") > 3)]
    [('call', 'greater'), ('field_ref', 'x'), ('literal', '0'), ('end', 'greater')]
    """
    try:
        written = pa.py_buffer(expression.__reduce__()[1][0])
    except pa.ArrowNotImplementedError as error:
        raise Unsupported(f"the pyarrow expression cannot be read: {error}") from None
    values = pa.ipc.open_file(written).get_batch(0)
    for kind, name in _metadata(memoryview(written)):
        yield Step(kind, name, values.column(int(name))[0] if kind in ("literal", "options") else None)


def _metadata(data: memoryview) -> Iterator[tuple[str, str]]:
    if bytes(data[-6:]) != _MAGIC:
        raise InvalidInput("the pyarrow expression is not written as an Arrow file")
    length = _number(data, len(data) - 10, "<i")
    footer = data[len(data) - 10 - length : len(data) - 10]
    schema = _field(footer, _number(footer, 0, "<I"), _SCHEMA)
    vector = _field(footer, schema, _METADATA)
    for place in range(_number(footer, vector, "<I")):
        entry = vector + 4 + 4 * place
        table = entry + _number(footer, entry, "<I")
        yield _text(footer, _field(footer, table, _KEY)), _text(footer, _field(footer, table, _VALUE))


def _number(data: memoryview, place: int, layout: str) -> int:
    return int(struct.unpack_from(layout, data, place)[0])


def _field(data: memoryview, table: int, field: int) -> int:
    """Where what a field of a table refers to begins."""
    index = table - _number(data, table, "<i")
    offset = _number(data, index + 4 + 2 * field, "<H") if 4 + 2 * field < _number(data, index, "<H") else 0
    if not offset:
        raise InvalidInput("the pyarrow expression holds no steps")
    return table + offset + _number(data, table + offset, "<I")


def _text(data: memoryview, place: int) -> str:
    return bytes(data[place + 4 : place + 4 + _number(data, place, "<I")]).decode()
