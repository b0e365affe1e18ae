"""Loading an index into the process's cache before anybody asks it."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from lancelet.errors import Unsupported
from lancelet.index.answers import Skipped
from lancelet.ops.index.describe import segments_named
from lancelet.ops.index.errors import NoSuchIndex
from lancelet.ops.index.segments import open_segment
from lancelet.table.parallel import in_order
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["prewarm_index"]


def prewarm_index(snapshot: Snapshot, places: Places, name: str, segments: Collection[UUID] | None = None) -> None:
    """Load the segments of an index, all or those with some ids; NoSuchIndex where one is not there."""
    known = {item.uuid: item for item in segments_named(snapshot, name)}
    wanted = list(known if segments is None else segments)
    missing = [number for number in wanted if number not in known]
    if missing:
        raise NoSuchIndex(f"index {name!r} has no segment {missing[0]}", uri=snapshot.uri, version=snapshot.version)
    opened = []
    for number in wanted:
        found = open_segment(snapshot, places, known[number])
        if isinstance(found, Skipped):
            raise Unsupported(found.reason, uri=snapshot.uri, version=snapshot.version)
        opened.append(found)
    for _ in in_order(lambda index: index.prewarm(), opened, concurrency=snapshot.options.threads):
        pass
