"""What a message holds beyond the fields that this release knows: kept as bytes, so that rewriting it loses nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from lancelet.errors import InvalidInput, LanceletError

__all__ = ["bytes_of_texts", "put_unknown", "storable", "texts_of_bytes", "unknown_numbers", "unknown_of"]


def unknown_numbers(message: Message) -> list[int]:
    """The numbers of the fields that the message has and its kind does not."""
    unknown = UnknownFieldSet(message)
    return [unknown[place].field_number for place in range(len(unknown))]


def unknown_of(message: Message) -> bytes:
    """The unknown fields of the message itself (not of those within it), as they were stored."""
    if not len(UnknownFieldSet(message)):
        return b""
    rest = type(message)()
    rest.CopyFrom(message)
    for descriptor, _ in rest.ListFields():
        rest.ClearField(descriptor.name)
    return rest.SerializeToString(deterministic=True)


def put_unknown(message: Message, unknown: bytes) -> None:
    """Put back what :func:`unknown_of` took."""
    if unknown:
        try:
            message.MergeFromString(unknown)
        except DecodeError as error:
            raise InvalidInput(f"unknown fields of {type(message).__name__} are no valid bytes: {error}") from None


@contextmanager
def storable(what: str) -> Iterator[None]:
    """Tell of values that a message cannot hold (a negative count, text that is not Unicode) as InvalidInput."""
    try:
        yield
    except LanceletError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{what} cannot be stored: {error}") from None


def texts_of_bytes(entries: Mapping[str, bytes]) -> dict[str, str]:
    """Metadata as text. Bytes that are not UTF-8 become lone surrogates, which are written as they were."""
    return {key: value.decode("utf-8", "surrogateescape") for key, value in entries.items()}


def bytes_of_texts(entries: Mapping[str, str]) -> dict[str, bytes]:
    """Metadata as it is stored."""
    return {key: value.encode("utf-8", "surrogateescape") for key, value in entries.items()}
