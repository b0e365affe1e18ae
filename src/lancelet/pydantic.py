"""Schemas from models of pydantic: what Arrow type stands for each annotation. Needs the extra ``pydantic``."""

from __future__ import annotations

import types
from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import date, datetime
from enum import Enum
from typing import Any, Union, get_args, get_origin

import pyarrow as pa
from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

__all__ = ["FixedSizeListMixin", "MultiVector", "Vector", "get_extras", "is_nullable", "pydantic_to_schema"]

_TYPES: dict[type, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.utf8(),
    bool: pa.bool_(),
    bytes: pa.binary(),
    date: pa.date32(),
}


class FixedSizeListMixin(ABC):
    """What a type of vectors tells of itself."""

    @staticmethod
    @abstractmethod
    def dim() -> int:
        """The number of values of a vector."""

    @staticmethod
    @abstractmethod
    def value_arrow_type() -> pa.DataType:
        """The type of each value."""

    @staticmethod
    def nullable() -> bool:
        """Whether a row may have none."""
        return True

    @classmethod
    def arrow_type(cls) -> pa.DataType:
        """The type of the column."""
        return pa.list_(cls.value_arrow_type(), cls.dim())


def Vector(dim: int, value_type: pa.DataType = pa.float32(), nullable: bool = True) -> type[FixedSizeListMixin]:  # noqa: B008, N802 - a constant; the name is pylance's
    """A type for fields that hold a vector of ``dim`` numbers.

    >>> class Item(BaseModel):
    ...     embedding: Vector(4)
    >>> pydantic_to_schema(Item).field("embedding").type
    FixedSizeListType(fixed_size_list<item: float>[4])
    """
    checked = _numbers(dim)

    class FixedSizeList(_vectors("FixedSizeList", dim, value_type, nullable, checked)):  # type: ignore[misc]
        pass

    return FixedSizeList


def MultiVector(dim: int, value_type: pa.DataType = pa.float32(), nullable: bool = True) -> type[FixedSizeListMixin]:  # noqa: B008, N802 - a constant; the name is pylance's
    """A type for fields that hold any number of vectors of ``dim`` numbers.

    >>> class Item(BaseModel):
    ...     embeddings: MultiVector(4)
    >>> pydantic_to_schema(Item).field("embeddings").type
    ListType(list<item: fixed_size_list<item: float>[4]>)
    """
    checked = core_schema.list_schema(items_schema=_numbers(dim))

    class MultiVectorList(_vectors("MultiVector", dim, value_type, nullable, checked)):  # type: ignore[misc]
        @staticmethod
        def is_multi_vector() -> bool:
            """Whether a value is a list of vectors."""
            return True

        @classmethod
        def arrow_type(cls) -> pa.DataType:
            """The type of the column."""
            return pa.list_(pa.list_(value_type, dim))

    return MultiVectorList


def _numbers(dim: int) -> CoreSchema:
    return core_schema.list_schema(min_length=dim, max_length=dim, items_schema=core_schema.float_schema())


def _vectors(
    name: str, dimension: int, value_type: pa.DataType, may_be_null: bool, checked: CoreSchema
) -> type[FixedSizeListMixin]:
    """A list that knows its type, and checks what is made one."""

    class Vectors(list[Any], FixedSizeListMixin):
        def __repr__(self) -> str:
            return f"{name}(dim={dimension})"

        @staticmethod
        def dim() -> int:
            return dimension

        @staticmethod
        def value_arrow_type() -> pa.DataType:
            return value_type

        @staticmethod
        def nullable() -> bool:
            return may_be_null

        @classmethod
        def __get_pydantic_core_schema__(cls, _source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
            return core_schema.no_info_after_validator_function(cls, checked)

    return Vectors


def get_extras(field: Any, key: str) -> Any:
    """What a field says under a key of its ``json_schema_extra``; None if nothing.

    >>> from pydantic import Field
    >>> get_extras(Field(json_schema_extra={"tz": "UTC"}), "tz")
    'UTC'
    """
    extra = field.json_schema_extra
    return extra.get(key) if isinstance(extra, dict) else None


def is_nullable(field: Any) -> bool:
    """Whether a field may have no value: by its annotation alone, whatever its default is.

    >>> class Item(BaseModel):
    ...     a: int = 5
    ...     b: int | None
    >>> [is_nullable(field) for field in Item.model_fields.values()]
    [False, True]
    """
    annotation = field.annotation
    if type(None) in _members(annotation):
        return True
    return _is_a(annotation, FixedSizeListMixin) and bool(annotation.nullable())


def pydantic_to_schema(model: type[BaseModel]) -> pa.Schema:
    """The Arrow schema of a model: models within it are structs, enumerations of text are dictionaries.

    ``Field(json_schema_extra={"tz": ...})`` gives a ``datetime`` its time zone. TypeError for annotations that no
    Arrow type stands for.

    >>> class Item(BaseModel):
    ...     id: int
    ...     words: list[str]
    ...     at: datetime | None = None
    >>> pydantic_to_schema(Item)
    id: int64 not null
    words: list<item: string> not null
      child 0, item: string
    at: timestamp[us]
    """
    return pa.schema(_fields(model))


def _fields(model: type[BaseModel]) -> list[pa.Field]:
    return [
        pa.field(name, _type(field.annotation, field), is_nullable(field)) for name, field in model.model_fields.items()
    ]


def _members(annotation: object) -> tuple[object, ...]:
    """The members of a union; none where it is something else."""
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else ()


def _is_a(annotation: object, base: type) -> bool:
    return isinstance(annotation, type) and get_origin(annotation) is None and issubclass(annotation, base)


def _type(annotation: Any, field: Any) -> pa.DataType:
    """The Arrow type of an annotation; ``field`` is where it stands."""
    members = [item for item in _members(annotation) if item is not type(None)]
    if len(members) == 1:
        return _type(members[0], field)
    if get_origin(annotation) in (list, tuple) and not members:
        return pa.list_(_type(_item(annotation), field))
    if _is_a(annotation, BaseModel):
        return pa.struct(_fields(annotation))
    if _is_a(annotation, FixedSizeListMixin):
        return annotation.arrow_type()
    if _is_a(annotation, Enum):
        return _enumeration(annotation, field)
    if annotation is datetime:
        return pa.timestamp("us", tz=get_extras(field, "tz"))
    found = _TYPES.get(annotation) if isinstance(annotation, type) else None
    if found is None:
        raise TypeError(f"no Arrow type stands for {annotation}: choose another annotation, list[...] with its items")
    return found


def _item(annotation: object) -> object:
    """The annotation of the items of a list, or of a tuple of items of one kind."""
    kinds = {item for item in get_args(annotation) if item is not ...}
    if len(kinds) != 1:
        raise TypeError(f"no Arrow type stands for {annotation}: its items are of {len(kinds)} kinds")
    return kinds.pop()


def _enumeration(kind: Iterable[Enum], field: object) -> pa.DataType:
    """Enumerations of text are dictionaries, those of values of one other type that type, and all others text."""
    kinds = {type(member.value) for member in kind}
    if kinds == {str}:
        return pa.dictionary(pa.int32(), pa.utf8())
    return _type(kinds.pop(), field) if len(kinds) == 1 else pa.utf8()
