"""Offsets of streams: how far a stream has told what happened to a table; Spark keeps them in checkpoints, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lancelet.errors import InvalidInput

__all__ = ["Offset"]


@dataclass(frozen=True, slots=True)
class Offset:
    """All that happened up to a version has been told; and what comes next in part, where ``part`` is not 0.

    What comes next is what the version after it changed, or with ``snapshot`` the rows of the version itself. A part
    is a fragment of it.

    >>> Offset(3, 2).as_json()
    {'version': 3, 'part': 2}
    >>> Offset.of({"version": 3, "part": 2}).next_version
    4
    """

    version: int
    part: int = 0
    snapshot: bool = False
    #: What tells the version from one of the same number in a table that was made anew at the same place.
    stamp: str | None = None

    @property
    def next_version(self) -> int:
        """The version of which something is told next."""
        return self.version if self.snapshot else self.version + 1

    def as_json(self) -> dict[str, object]:
        """What Spark keeps: it takes offsets for the same only if their texts are."""
        found: dict[str, object] = {"version": self.version}
        if self.part:
            found["part"] = self.part
        if self.snapshot:
            found["snapshot"] = True
        if self.stamp is not None:
            found["stamp"] = self.stamp
        return found

    @staticmethod
    def of(found: Mapping[str, object]) -> Offset:
        """The offset that a checkpoint has. InvalidInput if it is of another source."""
        version, part, stamp = found.get("version"), found.get("part", 0), found.get("stamp")
        if not isinstance(version, int) or not isinstance(part, int) or not isinstance(stamp, str | None):
            hint = "give the query a checkpointLocation of its own"
            raise InvalidInput(
                f"the checkpoint has the offset {dict(found)!r}, which is none of this source", hint=hint
            )
        return Offset(version, part, bool(found.get("snapshot", False)), stamp)
