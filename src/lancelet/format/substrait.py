"""Expressions as Substrait messages hold them, as frozen data: columns by name, functions by the name they declare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from google.protobuf.message import DecodeError

from lancelet.errors import Corrupt, InvalidInput, Unsupported
from lancelet.format.protos import substrait_pb2 as wire
from lancelet.format.substrait_types import constant_of, type_of

__all__ = [
    "Branches",
    "Conversion",
    "Field",
    "Invoke",
    "Item",
    "Node",
    "OneOf",
    "expressions_of",
]

_WHERE = "a Substrait message"


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a field within structs: names from the top down."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """A field, a list's item counted from 0, or the value of a map's key, of another expression."""

    of: Node
    key: pa.Scalar


@dataclass(frozen=True, slots=True)
class Invoke:
    """A function of arguments; of some of them only a word is said."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Branches:
    """The value of the first pair whose condition is true, else the default."""

    pairs: tuple[tuple[Node, Node], ...]
    default: Node | None


@dataclass(frozen=True, slots=True)
class OneOf:
    """Whether a value is one of the options."""

    value: Node
    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Conversion:
    """A value as another type; null where it cannot be, if ``attempt``."""

    value: Node
    type: pa.DataType
    attempt: bool


Node: TypeAlias = pa.Scalar | Field | Item | Invoke | Branches | OneOf | Conversion


def expressions_of(data: bytes) -> tuple[Node, ...]:
    """The expressions of a message.

    >>> import pyarrow.compute as pc
    >>> message = (pc.field("x") > 3).to_substrait(pa.schema({"x": pa.int64()}))
    >>> expressions_of(bytes(message))
    (Invoke(function='gt', arguments=(Field(path=('x',)), <pyarrow.Int64Scalar: 3>)),)
    """
    message = wire.ExtendedExpression()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise InvalidInput(f"{len(data)} bytes are no Substrait expression, or too deep a one: {error}") from None
    if not message.referred_expr:
        raise InvalidInput(f"{len(data)} bytes hold no Substrait expression")
    reader = Reader(message.extensions, message.base_schema)
    return tuple(reader.node(each.expression) for each in message.referred_expr)


@dataclass(frozen=True, slots=True)
class _Named:
    """A name of the schema, and the names below it."""

    name: str
    fields: tuple[_Named, ...]


class Reader:
    """Reads nodes with the functions, types and columns that one message declares."""

    def __init__(self, extensions: Sequence[wire.ExtensionDeclaration], schema: wire.NamedStruct) -> None:
        self._functions = {
            each.extension_function.function_anchor: each.extension_function.name
            for each in extensions
            if each.HasField("extension_function")
        }
        self._types = {
            each.extension_type.type_anchor: each.extension_type.name
            for each in extensions
            if each.HasField("extension_type")
        }
        names = iter(schema.names)
        self._columns = _named(schema.struct.types, names)
        if next(names, None) is not None:
            raise Corrupt(f"the schema of {_WHERE} has more names than fields")

    def function(self, anchor: int) -> str:
        """The name of a function, without the types that may be written behind it."""
        if anchor not in self._functions:
            raise Corrupt(f"{_WHERE} calls function {anchor} without naming it")
        return self._functions[anchor].partition(":")[0]

    def node(self, message: wire.Expression) -> Node:
        """One expression."""
        kind = message.WhichOneof("rex_type")
        if kind == "literal":
            return constant_of(message.literal, self._types)
        if kind == "selection":
            return self._selected(message.selection)
        if kind == "scalar_function":
            return self._called(message.scalar_function)
        if kind == "if_then":
            clauses = message.if_then
            pairs = tuple((self.node(getattr(each, "if")), self.node(each.then)) for each in clauses.ifs)
            default = getattr(clauses, "else") if clauses.HasField("else") else None
            return Branches(pairs, None if default is None else self.node(default))
        if kind == "singular_or_list":
            options = tuple(map(self.node, message.singular_or_list.options))
            return OneOf(self.node(message.singular_or_list.value), options)
        if kind == "cast":
            cast = message.cast
            return Conversion(self.node(cast.input), type_of(cast.type, self._types), cast.failure_behavior == 1)
        raise Unsupported(f"{_WHERE} holds an expression other than columns, constants, functions, branches and casts")

    def _called(self, message: wire.Expression.ScalarFunction) -> Node:
        arguments: list[Node] = [self.node(each) for each in message.args]
        for each in message.arguments:
            kind = each.WhichOneof("arg_type")
            if kind == "value":
                arguments.append(self.node(each.value))
            elif kind == "enum":
                arguments.append(pa.scalar(each.enum))
            else:
                raise Unsupported(f"{_WHERE} gives {self.function(message.function_reference)} a type as argument")
        return Invoke(self.function(message.function_reference), tuple(arguments))

    def _selected(self, message: wire.FieldReference) -> Node:
        if message.WhichOneof("reference_type") != "direct_reference":
            raise Unsupported(f"{_WHERE} selects fields by a mask")
        segment = message.direct_reference
        if message.WhichOneof("root_type") == "expression":
            return self._below(self.node(message.expression), segment, ())
        steps = segment.struct_field
        if segment.WhichOneof("reference_type") != "struct_field":
            raise Corrupt(f"{_WHERE} selects no column")
        top = _at(self._columns, steps.field)
        found = Field((top.name,))
        return self._below(found, steps.child, top.fields) if steps.HasField("child") else found

    def _below(self, node: Node, segment: wire.FieldReference.Segment, fields: tuple[_Named, ...]) -> Node:
        """What a path selects within a value, whose fields have names if it is a column."""
        while True:
            kind = segment.WhichOneof("reference_type")
            if kind == "struct_field":
                step: wire.FieldReference.Segment.StructField = segment.struct_field
                if isinstance(node, Field) and fields:
                    named = _at(fields, step.field)
                    node, fields = Field((*node.path, named.name)), named.fields
                else:
                    node = Item(node, pa.scalar(step.field, pa.int32()))
                child = step.child if step.HasField("child") else None
            elif kind == "list_element":
                node = Item(node, pa.scalar(segment.list_element.offset, pa.int32()))
                child = segment.list_element.child if segment.list_element.HasField("child") else None
            elif kind == "map_key":
                node = Item(node, constant_of(segment.map_key.map_key, self._types))
                child = segment.map_key.child if segment.map_key.HasField("child") else None
            else:
                raise Corrupt(f"{_WHERE} has an empty step in a path")
            if child is None:
                return node
            segment = child


def _named(types: Sequence[wire.Type], names: Iterator[str]) -> tuple[_Named, ...]:
    """The fields of a struct with their names, which stand depth first: those within lists and maps as well."""
    made = []
    for kind in types:
        name = next(names, None)
        if name is None:
            raise Corrupt(f"the schema of {_WHERE} has fewer names than fields")
        made.append(_Named(name, _inner(kind, names)))
    return tuple(made)


def _inner(kind: wire.Type, names: Iterator[str]) -> tuple[_Named, ...]:
    which = kind.WhichOneof("kind")
    if which == "struct":
        return _named(kind.struct.types, names)
    if which == "list":
        _inner(kind.list.type, names)
    elif which == "map":
        _inner(kind.map.key, names)
        _inner(kind.map.value, names)
    return ()


def _at(fields: Sequence[_Named], place: int) -> _Named:
    if not 0 <= place < len(fields):
        raise Corrupt(f"{_WHERE} selects field {place} of {len(fields)}")
    return fields[place]
