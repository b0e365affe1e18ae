"""Choices of a reader: what stands for values that Spark has no type for, or none that is always there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Choices"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What stands for values of some types.

    >>> Choices(time="string").nanoseconds
    'exact'
    """

    #: Times of day: the number of their units since midnight, text, or Spark's TIME, which a session has to allow.
    time: Literal["long", "string", "time"] = "long"
    #: Digits beyond microseconds: an error, cut off, or the number of nanoseconds in place of the type.
    nanoseconds: Literal["exact", "truncate", "long"] = "exact"
    #: Blobs: where their bytes are, or the bytes.
    blobs: Literal["reference", "bytes"] = "reference"
