"""Knobs: what a field's metadata asks of the encodings (the ``lance-encoding:*`` keys)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from lancelet.errors import InvalidInput
from lancelet.events import emit

__all__ = ["Knobs", "parse_knobs"]

_PREFIX = "lance-encoding:"
_COMPRESSIONS = ("none", "fsst", "lz4", "zstd")
_DICTIONARY_COMPRESSIONS = ("lz4", "zstd", "none")
_STRUCTURES = ("miniblock", "fullzip")
_SPLITS = ("auto", "on", "off")
T = TypeVar("T", int, float)


@dataclass(frozen=True, slots=True)
class Knobs:
    """How a user wants a column stored; every default is the format's own choice."""

    #: none, fsst, lz4 or zstd; None leaves the choice to the data.
    compression: str | None = None
    compression_level: int | None = None
    #: Runs for each value above which run lengths are not used.
    rle_threshold: float | None = None
    #: Byte stream split under general compression: auto, on or off.
    byte_stream_split: str = "auto"
    #: A dictionary may have at most one item for so many values …
    dictionary_divisor: int = 2
    #: … and with its indices at most this part of the plain values' bytes.
    dictionary_size_ratio: float = 0.8
    dictionary_max_bytes: int | None = None
    dictionary_compression: str = "lz4"
    dictionary_compression_level: int | None = None
    #: Bytes that a chunk of strings aims at.
    chunk_bytes: int = 4096
    #: miniblock or fullzip; None leaves the choice to the data.
    structure: str | None = None


def parse_knobs(metadata: Mapping[str, str], *, compressible: bool = True) -> Knobs:
    """The knobs that a field's metadata sets. Values that would change nothing but sizes are passed over with an event.

    ``compressible`` is False for types whose compression keys are never looked at.

    >>> parse_knobs({"lance-encoding:compression": "zstd", "lance-encoding:bss": "ON"}).byte_stream_split
    'on'
    """
    if not any(key.startswith(_PREFIX) for key in metadata):
        return Knobs()
    keys = {key.removeprefix(_PREFIX): value for key, value in metadata.items() if key.startswith(_PREFIX)}
    return Knobs(
        compression=_word(keys, "compression", _COMPRESSIONS) if compressible else None,
        compression_level=_number(keys, "compression-level", int),
        rle_threshold=_number(keys, "rle-threshold", float),
        byte_stream_split=_split(keys),
        dictionary_divisor=max(1, _or(_number(keys, "dict-divisor", int), 2)),
        dictionary_size_ratio=_ratio(keys),
        dictionary_max_bytes=_bytes(keys),
        dictionary_compression=_word(keys, "dict-values-compression", _DICTIONARY_COMPRESSIONS) or "lz4",
        dictionary_compression_level=_number(keys, "dict-values-compression-level", int),
        chunk_bytes=_or(_number(keys, "minichunk-size", int), 4096),
        structure=_structure(keys),
    )


def _or(found: int | None, otherwise: int) -> int:
    return otherwise if found is None else found


def _refuse(key: str, found: str, expected: str) -> InvalidInput:
    return InvalidInput(f"field metadata {_PREFIX}{key} is {found!r}, expected {expected}")


def _word(keys: Mapping[str, str], key: str, allowed: tuple[str, ...]) -> str | None:
    found = keys.get(key)
    if found is not None and found not in allowed:
        raise _refuse(key, found, f"one of: {', '.join(allowed)}")
    return found


def _number(keys: Mapping[str, str], key: str, kind: Callable[[str], T]) -> T | None:
    found = keys.get(key)
    if found is None:
        return None
    try:
        return kind(found)
    except ValueError:
        emit("encoding.key_ignored", key=_PREFIX + key, value=found, why="not a number")
        return None


def _split(keys: Mapping[str, str]) -> str:
    found = keys.get("bss", "auto").lower()
    if found in _SPLITS:
        return found
    emit("encoding.key_ignored", key=_PREFIX + "bss", value=found, why=f"not one of: {', '.join(_SPLITS)}")
    return "auto"


def _ratio(keys: Mapping[str, str]) -> float:
    found = _number(keys, "dict-size-ratio", float)
    if found is None:
        return 0.8
    if not 0 < found <= 1:
        raise _refuse("dict-size-ratio", keys["dict-size-ratio"], "a number above 0 and up to 1")
    return found


def _bytes(keys: Mapping[str, str]) -> int | None:
    found = keys.get("dict-max-size")
    if found is None:
        return None
    if not found.isascii() or not found.isdigit():
        raise _refuse("dict-max-size", found, "a number of bytes")
    return int(found)


def _structure(keys: Mapping[str, str]) -> str | None:
    found = keys.get("structural-encoding")
    if found is not None and found.lower() not in _STRUCTURES:
        raise _refuse("structural-encoding", found, f"one of: {', '.join(_STRUCTURES)}")
    return None if found is None else found.lower()
