"""Paths into JSON documents, as ``json_extract`` and indexes take them: names of fields and numbers of items.

$    $.name    $.name.inner    $."odd name"    $['name']    $.items[0]    name
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.encodings.values import Bytes, Variable, from_arrow
from lancelet.errors import InvalidInput, Unsupported
from lancelet.kernels import jsonb_find
from lancelet.rows.runs import Int64s

__all__ = ["Found", "JsonStep", "find", "key_step", "parse_json_path"]

_STEP = re.compile(
    r"""\.?\s*(?P<name>[^\W\d][\w-]*)|\.(?P<digits>\d[\w-]*)
    |\.\s*(?P<quoted>"(?:[^"\\]|\\.)*")
    |\[\s*(?P<number>\d{1,18})\s*\]
    |\[\s*(?:(?P<double>"(?:[^"\\]|\\.)*")|'(?P<single>[^'\\]*)')\s*\]""",
    re.VERBOSE,
)
#: What longer languages of paths have besides.
_OTHERS = re.compile(r"\*|\?|@|\.\.|\blast\b|\bto\b|,|\(|[-:]")


@dataclass(frozen=True, slots=True)
class JsonStep:
    """One step of a path: to the field of a name, or to the item of a number; None and -1 where it is no such step."""

    name: str | None
    number: int = -1


def parse_json_path(text: str) -> tuple[JsonStep, ...]:
    """The steps of a path. InvalidInput for what is none, Unsupported for wildcards, ranges and conditions.

    >>> [(step.name, step.number) for step in parse_json_path('$.a."b c"[2]')]
    [('a', -1), ('b c', -1), (None, 2)]
    """
    rest = text.strip().removeprefix("$")
    steps: list[JsonStep] = []
    at = 0
    while at < len(rest):
        found = _STEP.match(rest, at)
        if found is None or (steps and found["name"] is not None and rest[at] != "."):
            break
        if found["number"] is not None:
            steps.append(JsonStep(None, int(found["number"])))
        else:
            steps.append(JsonStep(_name(found)))
        at = found.end()
    if at == len(rest):
        return tuple(steps)
    if _OTHERS.search(rest, at):
        hint = "paths have names of fields and numbers of items: $.name[0]"
        raise Unsupported(f"JSON path {text!r} has steps that are not offered, at {rest[at:]!r}", hint=hint)
    raise InvalidInput(f"{text!r} is no JSON path, at {rest[at:]!r}", hint="a path looks like $.name[0]")


def _name(found: re.Match[str]) -> str:
    quoted = found["quoted"] or found["double"]
    if quoted is not None:
        name: str = json.loads(quoted)
        return name
    return next(one for one in (found["name"], found["digits"], found["single"]) if one is not None)


def key_step(key: str) -> JsonStep:
    """The step of ``json_get``: a field by its name, as it is; of an array the item whose number the name spells.

    >>> key_step("a.b"), key_step("7").number
    (JsonStep(name='a.b', number=-1), 7)
    """
    return JsonStep(key, int(key) if key.isascii() and key.isdecimal() and len(key) < 18 else -1)


@dataclass(frozen=True, slots=True)
class Found:
    """Values at a path: of each document the kind, -1 where there is none, and where in ``data`` the value lies.

    Kinds: 0 null, 1 string, 2 number, 3 false, 4 true, 5 object or array.
    """

    kinds: np.ndarray[tuple[int], np.dtype[np.int8]]
    starts: Int64s
    sizes: Int64s
    data: Bytes


def find(documents: pa.Array, steps: Sequence[JsonStep]) -> Found:
    """The values at a path of documents stored as JSONB.

    >>> from lancelet.encodings.json import json_from_text
    >>> find(json_from_text(pa.array(['{"a": true}', "[]", None])), parse_json_path("$.a")).kinds.tolist()
    [4, -1, -1]
    """
    values = from_arrow(documents)
    if not isinstance(values, Variable):
        raise InvalidInput(f"documents given as {documents.type}, expected JSONB")
    valid = np.ones(len(documents), np.uint8)
    if documents.null_count:
        valid = documents.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
    names = [b"" if step.name is None else step.name.encode() for step in steps]
    found = jsonb_find.find(
        values.offsets.astype(np.int64, copy=False),
        values.data,
        valid,
        np.frombuffer(b"".join(names), np.uint8),
        np.cumsum([len(name) for name in names], dtype=np.int64),
        np.array([step.name is not None for step in steps], np.uint8),
        np.array([step.number for step in steps], np.int64),
    )
    return Found(*found, values.data)
