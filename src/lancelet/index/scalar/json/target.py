"""The index that holds the values at a path: of which type it is, and of which type its values are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from lancelet.encodings.json_paths import JsonStep, parse_json_path
from lancelet.errors import InvalidInput
from lancelet.format.index_details import JsonDetails, JsonType
from lancelet.index.files import IndexFiles
from lancelet.index.scalar.json.values import VALUE_TYPES

__all__ = ["TARGETS", "JsonTarget", "parameters_of", "stored_type", "target_of"]

#: Types that can be targets, and the file and column that show the type of their values, if any do.
TARGETS: dict[str, tuple[str, str] | None] = {
    "BTREE": ("page_lookup.lance", "max"),
    "BITMAP": ("bitmap_page_lookup.lance", "keys"),
    "ZONEMAP": ("zonemap.lance", "max"),
    "NGRAM": None,
    "BLOOMFILTER": None,
}
_NAMES = {
    "Boolean": JsonType.BOOLEAN,
    "Int64": JsonType.INT64,
    "Float64": JsonType.FLOAT64,
    "Utf8": JsonType.STRING,
}


@dataclass(frozen=True, slots=True)
class JsonTarget:
    """What is asked for: the index over the values at a path."""

    path: str
    steps: tuple[JsonStep, ...]
    kind: str
    parameters: dict[str, object]
    data_type: JsonType


def target_of(parameters: Mapping[str, object]) -> JsonTarget:
    """The target that parameters name; InvalidInput where they do not.

    >>> target_of({"path": "$.a", "target_index_type": "btree"}).kind
    'BTREE'
    """
    path, kind = parameters.get("path"), parameters.get("target_index_type")
    if not isinstance(path, str) or not isinstance(kind, str):
        hint = 'parameters look like {"path": "$.name", "target_index_type": "btree"}'
        raise InvalidInput("a JSON index needs a path and a target_index_type, both text", hint=hint)
    if kind.upper() not in TARGETS:
        raise InvalidInput(f"a JSON index is no {kind!r} index", hint=f"types are: {', '.join(TARGETS)}")
    more = parameters.get("target_index_parameters")
    try:
        inner = json.loads(more) if isinstance(more, str) else dict(more or {})  # type: ignore[call-overload]
    except (ValueError, TypeError):
        raise InvalidInput(f"target_index_parameters are {more!r}, expected a JSON object") from None
    named = parameters.get("target_data_type")
    if named is not None and named not in _NAMES:
        raise InvalidInput(f"target_data_type is {named!r}", hint=f"types are: {', '.join(_NAMES)}")
    data_type = JsonType.UNSAID if named is None else _NAMES[str(named)]
    return JsonTarget(path, parse_json_path(path), kind.upper(), inner, data_type)


def parameters_of(
    details: JsonDetails, kind: str, inner: Mapping[str, object], data_type: JsonType
) -> dict[str, object]:
    """The parameters that an index like one that exists is made with."""
    made: dict[str, object] = {"path": details.path, "target_index_type": kind.lower()}
    if inner:
        made["target_index_parameters"] = json.dumps(dict(inner))
    named = next((name for name, each in _NAMES.items() if each is data_type), None)
    return made if named is None else made | {"target_data_type": named}


def stored_type(files: IndexFiles, kind: str, details: JsonDetails) -> pa.DataType | None:
    """The type of the values that a target holds; None where nothing says."""
    if kind == "NGRAM":
        return pa.string()
    place = TARGETS[kind]
    if place is None:
        return VALUE_TYPES.get(JsonType(details.data_type)) if details.data_type in list(JsonType) else None
    return files.open(place[0]).kind(place[1])
