"""Values at a path of documents as a column to be indexed: all of one type, which is said or found out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from lancelet.encodings.json_paths import Found, JsonStep, find
from lancelet.encodings.json_values import CONTAINER, FALSE, NUMBER, STRING, TRUE, numbers_of, strings_of
from lancelet.errors import InvalidInput
from lancelet.format.index_details import JsonType
from lancelet.index.external_sort import IDS, VALUES, rows_of
from lancelet.kernels.jsonb_layout import FLOAT, INTEGER, UNSIGNED
from lancelet.rows.runs import Int64s

__all__ = ["VALUE_TYPES", "TypedRows", "type_of_values"]

#: The types that values are indexed as.
VALUE_TYPES: dict[JsonType, pa.DataType] = {
    JsonType.BOOLEAN: pa.bool_(),
    JsonType.INT64: pa.int64(),
    JsonType.FLOAT64: pa.float64(),
    JsonType.STRING: pa.string(),
}
_KINDS = {
    JsonType.BOOLEAN: (TRUE, FALSE),
    JsonType.INT64: (NUMBER,),
    JsonType.FLOAT64: (NUMBER,),
    JsonType.STRING: (STRING,),
}
_WORDS = ("null", "a text", "a number", "false", "true", "an object or array")


def type_of_values(kind: pa.DataType) -> JsonType:
    """What a type of values is called in details; UNSAID for those that no value of JSON has.

    >>> type_of_values(pa.int64()).name
    'INT64'
    """
    return next((name for name, each in VALUE_TYPES.items() if each == kind), JsonType.UNSAID)


class TypedRows:
    """Rows of documents as rows of values, of the type that is said, or of the first value's; text if there is none.

    Of integers and other numbers the type of the first decides, as pylance has it: a later one that does not fit is
    InvalidInput.
    """

    def __init__(self, rows: Iterable[pa.RecordBatch], steps: tuple[JsonStep, ...], path: str, kind: JsonType) -> None:
        self._rows, self._steps, self._path = iter(rows), steps, path
        self._waiting: list[pa.RecordBatch] = []
        self.kind = kind
        while self.kind is JsonType.UNSAID:
            batch = next(self._rows, None)
            if batch is None:
                self.kind = JsonType.STRING
                break
            self.kind = self._first(batch)
            self._waiting.append(batch if self.kind is not JsonType.UNSAID else _nulls(batch))

    @property
    def value_type(self) -> pa.DataType:
        """The type of the values."""
        return VALUE_TYPES[self.kind]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._waiting:
            yield self._typed(batch)
        self._waiting = []
        for batch in self._rows:
            yield self._typed(batch)

    def _first(self, batch: pa.RecordBatch) -> JsonType:
        found = find(batch.column(VALUES), self._steps)
        places = np.flatnonzero(found.kinds > 0)
        for place in places[:1].tolist():
            self._check(found, places[:1], (TRUE, FALSE, NUMBER, STRING), "a text, a number, true or false")
            if found.kinds[place] == NUMBER:
                return JsonType.INT64 if _are_integers(found, places[:1]) else JsonType.FLOAT64
            return JsonType.STRING if found.kinds[place] == STRING else JsonType.BOOLEAN
        return JsonType.UNSAID

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        documents = batch.column(VALUES)
        if pa.types.is_null(documents.type):
            return rows_of(pa.nulls(len(documents), self.value_type), batch.column(IDS))
        found = find(documents, self._steps)
        rows = np.flatnonzero(found.kinds > 0)
        self._check(found, rows, _KINDS[self.kind], str(self.value_type))
        return rows_of(self._values(found, rows), batch.column(IDS))

    def _values(self, found: Found, rows: Int64s) -> pa.Array:
        missing = found.kinds <= 0
        if self.kind is JsonType.BOOLEAN:
            return pa.array(found.kinds == TRUE, mask=missing)
        if self.kind is JsonType.STRING:
            places = np.zeros(len(missing), np.int64)
            places[rows] = np.arange(len(rows))
            return strings_of(found, rows).take(pa.array(places, mask=missing))
        if self.kind is JsonType.INT64 and not _are_integers(found, rows):
            hint = 'say "target_data_type": "Float64"'
            raise InvalidInput(f"values at {self._path!r} are int64 at first, and then no integers", hint=hint)
        made = np.zeros(len(missing), np.int64 if self.kind is JsonType.INT64 else np.float64)
        for which, numbers in numbers_of(found, rows):
            made[rows[which]] = numbers
        if self.kind is JsonType.FLOAT64:
            missing |= np.isnan(made)
        return pa.array(made, mask=missing)

    def _check(self, found: Found, rows: Int64s, kinds: tuple[int, ...], wanted: str) -> None:
        wrong = rows[~np.isin(found.kinds[rows], kinds)]
        if len(wrong):
            kind = int(found.kinds[wrong[0]])
            hint = "index a path with values of one type" if kind != CONTAINER else "index a path below it"
            raise InvalidInput(f"at {self._path!r} stands {_WORDS[kind]}, expected {wanted}", hint=hint)


def _nulls(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows without a value: nothing but what the index calls them is kept."""
    return rows_of(pa.nulls(batch.num_rows), batch.column(IDS))


def _are_integers(found: Found, rows: Int64s) -> bool:
    """Whether all of some numbers are stored as integers that fit 64 bits with a sign."""
    classes = found.data[found.starts[rows]] & 0x70
    if not bool(np.isin(classes, (0, INTEGER, UNSIGNED)).all()) or bool((classes == FLOAT).any()):
        return False
    return all(
        numbers.dtype.kind != "u" or int(numbers.max(initial=0)) < 2**63 for _, numbers in numbers_of(found, rows)
    )
