"""Building a JSON index: documents become the values at its path, and these an index of the type that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

import pyarrow as pa

from lancelet.encodings.json_paths import parse_json_path
from lancelet.errors import InvalidInput, Unsupported
from lancelet.format.index_details import JsonDetails, parse_json_details, write_json_details
from lancelet.index.building import Built, Target
from lancelet.index.merging import Part
from lancelet.index.scalar.json.target import parameters_of, stored_type, target_of
from lancelet.index.scalar.json.values import TypedRows, type_of_values

__all__ = ["TYPE_URL", "Inner", "build_json", "like_json", "merge_jsons", "takes_documents"]

TYPE_URL = "/lance.index.pb.JsonIndexDetails"
_Rows: TypeAlias = Iterable[pa.RecordBatch]
_Parameters: TypeAlias = Mapping[str, object]


class Inner(Protocol):
    """The type of index that holds the values."""

    @property
    def name(self) -> str:
        """As users name it."""

    @property
    def builds_by_address(self) -> bool:
        """Whether it calls rows by address where they have stable ids."""

    @property
    def build(self) -> Callable[[_Rows, pa.DataType, Target, _Parameters], Built]:
        """What builds it."""

    @property
    def merge(self) -> Callable[[Sequence[Part], _Rows, pa.DataType, Target, _Parameters], Built]:
        """What merges segments of it."""

    @property
    def like(self) -> Callable[[Part], dict[str, object]]:
        """The parameters of a segment of it."""

    def check(self, column: str, kind: pa.DataType, parameters: _Parameters) -> None:
        """Raise where it does not take a column or a parameter."""


def takes_documents(kind: pa.DataType) -> bool:
    """Whether a column may hold documents.

    >>> takes_documents(pa.large_binary()), takes_documents(pa.string())
    (True, False)
    """
    return bool(pa.types.is_large_binary(kind) or pa.types.is_binary(kind))


def build_json(rows: _Rows, target: Target, parameters: _Parameters, inner: Callable[[str], Inner]) -> Built:
    """Write the index of rows that come in the order of the table, each a document and what the row is called."""
    wanted = target_of(parameters)
    kind = inner(wanted.kind)
    refuse_stable(target.stable_row_ids, kind)
    typed = TypedRows(rows, wanted.steps, wanted.path, wanted.data_type)
    kind.check(wanted.path, typed.value_type, wanted.parameters)
    return _wrapped(kind.build(typed, typed.value_type, target, wanted.parameters), wanted.path, typed.value_type)


def refuse_stable(stable_row_ids: bool, kind: Inner) -> None:
    """Raise where nobody could tell what the rows of an index are called."""
    if stable_row_ids and kind.builds_by_address:
        found = f"a JSON index of type {kind.name} cannot be over a table with stable row ids"
        raise Unsupported(found, hint="BITMAP and NGRAM can")


def _wrapped(built: Built, path: str, kind: pa.DataType) -> Built:
    details = JsonDetails(path, built.details, type_of_values(kind))
    return replace(built, details=replace(built.details, type_url=TYPE_URL, value=write_json_details(details)))


def merge_jsons(parts: Sequence[Part], rows: _Rows, target: Target, inner: Callable[[JsonDetails], Inner]) -> Built:
    """Write the index of what segments hold and of new rows, whose values must be of the segments' type."""
    details = [parse_json_details(part.details.value) for part in parts]
    first = details[0]
    if any(parse_json_path(item.path) != parse_json_path(first.path) for item in details):
        raise InvalidInput(f"segments are over different paths, {first.path!r} and others")
    kind = inner(first)
    kinds = [stored_type(part.files, kind.name, item) for part, item in zip(parts, details, strict=True)]
    value_type = kinds[0]
    if value_type is None or any(other != value_type for other in kinds):
        raise Unsupported(f"segments have values of types {', '.join(map(str, kinds))}", hint="train the index anew")
    unwrapped = [replace(part, details=item.target) for part, item in zip(parts, details, strict=True)]
    typed = TypedRows(rows, parse_json_path(first.path), first.path, type_of_values(value_type))
    return _wrapped(kind.merge(unwrapped, typed, value_type, target, kind.like(unwrapped[0])), first.path, value_type)


def like_json(part: Part, inner: Callable[[JsonDetails], Inner]) -> dict[str, object]:
    """The parameters that a segment was built with."""
    details = parse_json_details(part.details.value)
    kind = inner(details)
    found = stored_type(part.files, kind.name, details)
    data_type = type_of_values(found if found is not None else pa.null())
    return parameters_of(details, kind.name, kind.like(replace(part, details=details.target)), data_type)
