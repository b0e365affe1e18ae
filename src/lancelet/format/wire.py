"""Helpers between protobuf messages and dataclasses: parsing that fails as Corrupt, wrapped messages, bounded depth."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, EncodeError, Message

from lancelet.errors import Corrupt, InvalidInput, LanceletError, Unsupported

__all__ = ["MAX_DEPTH", "deeper", "parse_message", "unset_choice", "unwrap", "wrap", "write_message"]

#: Messages that hold messages of their own kind may nest this deep; what any writer makes stays below ten.
MAX_DEPTH = 32

_M = TypeVar("_M", bound=Message)


def parse_message(kind: type[_M], data: bytes | bytearray | memoryview, what: str) -> _M:
    """The message of a given kind that ``data`` holds; ``what`` names it in the error."""
    message = kind()
    try:
        message.ParseFromString(bytes(data))
    except DecodeError as error:
        raise Corrupt(f"{what} is not a valid message of {len(data)} bytes: {error}") from None
    return message


def write_message(message: Message) -> bytes:
    """The bytes of a message, with map entries in order of their keys: equal content gives equal bytes."""
    try:
        return message.SerializeToString(deterministic=True)
    except EncodeError as error:
        raise InvalidInput(f"{type(message).__name__} cannot be written: {error}") from None


def unwrap(data: bytes | bytearray | memoryview, what: str) -> tuple[str, bytes]:
    """The type URL and the content of a wrapped message (``google.protobuf.Any``)."""
    wrapped = parse_message(AnyMessage, data, what)
    if not wrapped.type_url:
        raise Corrupt(f"{what} names no type, expected a type URL")
    return wrapped.type_url, wrapped.value


def wrap(type_url: str, content: bytes) -> bytes:
    """A wrapped message. Type URLs begin with a slash and are compared exactly, so they are given whole."""
    return write_message(AnyMessage(type_url=type_url, value=content))


def deeper(depth: int, what: str) -> int:
    """The depth one level further in, or Corrupt where no writer would go."""
    if depth >= MAX_DEPTH:
        raise Corrupt(f"{what} is nested more than {MAX_DEPTH} levels deep")
    return depth + 1


def unset_choice(message: Message, what: str) -> LanceletError:
    """The error for a message with no known alternative: Corrupt if it is empty, else Unsupported."""
    if message.ByteSize():
        return Unsupported(f"{what} has an alternative that this release does not know")
    return Corrupt(f"{what} is empty, expected one alternative to be set")
