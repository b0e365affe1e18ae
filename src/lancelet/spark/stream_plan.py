"""Planning streams: from one offset to another over the versions between, as much at once as is admitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache

from lancelet.errors import InvalidInput, LanceletError, NotFound
from lancelet.ops.changes import ChangesTask, Side
from lancelet.query.request import bound_schema, request_for
from lancelet.query.scan import plan_scan
from lancelet.spark.address import moment, opened
from lancelet.spark.options import StreamOptions
from lancelet.spark.splits import Split, row_bytes, splits_of
from lancelet.spark.stream_offsets import Offset
from lancelet.spark.stream_reading import Change, Piece, StreamReading, change_of, check_columns, missing_columns
from lancelet.table.snapshot import FoundManifest, Snapshot, find_latest
from lancelet.table.versions import list_versions

__all__ = ["StreamPlan"]

#: What to do where a stream cannot go on.
_ANEW = "give the query a new checkpointLocation: it begins with the rows of the table as they are now"


@dataclass(frozen=True, slots=True)
class _Admitted:
    """What a batch has so far, and what it may have."""

    limits: StreamOptions
    versions: int = 0
    rows: int = 0
    size: float = 0.0

    def with_version(self) -> _Admitted | None:
        """The same with one more version; None where that is too many."""
        most = self.limits.max_versions_per_batch
        return None if most is not None and self.versions >= most else replace(self, versions=self.versions + 1)

    def with_rows(self, rows: int, size: float) -> _Admitted | None:
        """The same with more rows; None where that is too many, unless they are the first."""
        more = replace(self, rows=self.rows + rows, size=self.size + size)
        limits = self.limits
        over = (limits.max_rows_per_batch is not None and more.rows > limits.max_rows_per_batch) or (
            limits.max_bytes_per_batch is not None and more.size > limits.max_bytes_per_batch
        )
        return None if over and self.rows else more


class StreamPlan:
    """What a stream tells between offsets. The driver has one for as long as the stream runs."""

    def __init__(self, reading: StreamReading, options: StreamOptions, known: Snapshot, *, chosen: bool) -> None:
        self.reading = reading
        self.options = options
        #: The version whose columns the stream's schema has; and those, unless the user chose among them.
        self._known = known.version
        self._columns = None if chosen else {item.name for item in known.schema.fields}
        self._store = reading.address.store()
        self._newest: tuple[FoundManifest, Offset] | None = None
        self._change = lru_cache(maxsize=256)(self._planned_change)

    def first(self) -> Offset:
        """Where a stream without a checkpoint begins."""
        newest = self.reading.address.open()
        options = self.options
        if options.starting_version is None and options.starting_timestamp is None:
            return self._at(newest, whole=True)
        if options.starting_version == "latest":
            return self._at(newest)
        begin = self._first_version(newest) - 1
        if begin > newest.version:
            raise InvalidInput(
                f"starting_version is {begin + 1}, and the newest version of the table is {newest.version}",
                uri=newest.uri,
                hint="say 'latest' for what comes next",
            )
        return Offset(0) if begin <= 0 else self._at(self._opened(begin))

    def _first_version(self, newest: Snapshot) -> int:
        if self.options.starting_timestamp is None:
            return int(self.options.starting_version or 0)
        wanted = moment("starting_timestamp", self.options.starting_timestamp).astimezone(UTC)
        if wanted > datetime.now(UTC):
            raise InvalidInput("starting_timestamp is in the future", uri=newest.uri)
        found = newest.version + 1
        for item in list_versions(newest.store):
            if item.timestamp < wanted:
                break
            found = item.version
        return found

    def last(self) -> Offset:
        """The end of what there is to tell. Asked again and again: a manifest is read where there is a new one."""
        found = find_latest(self._store)
        if found is None:
            raise NotFound("there is no table any more", uri=self._store.uri, hint=_ANEW)
        if self._newest is None or self._newest[0] != found:
            self._newest = found, self._at(self.reading.address.open())
        return self._newest[1]

    def admitted(self, start: Offset, target: Offset, *, everything: bool = False) -> Offset:
        """How far one batch goes from ``start``, which is at most to ``target``; just there if it takes everything."""
        self._check_goes_on(start, target)
        if self._reached(start, target):
            return start
        options = self.options
        if everything or (options.max_versions_per_batch is None and not self._counts_rows):
            return target
        admitted, offset = _Admitted(options), start
        while not self._reached(offset, target):
            more = admitted.with_version()
            if more is None:
                return offset
            admitted = more
            if not self._counts_rows:
                offset = self._at(self._opened(offset.next_version))
                continue
            change = self.change(offset)
            taken, admitted = self._taken(change, offset, admitted)
            if taken < len(change.parts):
                return replace(offset, part=taken)
            offset = self._after(change)
        return offset

    def _check_goes_on(self, start: Offset, target: Offset) -> None:
        """Raise where the table or the stream is another than the one that came to ``start``."""
        uri = self.reading.address.uri
        if target.version < start.version:
            found = f"the stream has told version {start.version}, and the newest version is {target.version}"
            raise NotFound(found, uri=uri, hint=_ANEW)
        if target.version == start.version and start.stamp not in (None, target.stamp):
            raise self._made_anew(start.version)
        if start.part and not start.snapshot and self.reading.changes:
            found = f"the checkpoint is in the midst of the rows that version {start.next_version} inserted"
            raise InvalidInput(found, uri=uri, hint="go on with stream='inserts' until that version is told")

    def _made_anew(self, version: int) -> NotFound:
        found = f"version {version} is not the one that the stream has told: the table was made anew meanwhile"
        return NotFound(found, uri=self.reading.address.uri, version=version, hint=_ANEW)

    @property
    def _counts_rows(self) -> bool:
        return self.options.max_rows_per_batch is not None or self.options.max_bytes_per_batch is not None

    def _taken(self, change: Change, offset: Offset, admitted: _Admitted) -> tuple[int, _Admitted]:
        """How many fragments of a version a batch takes. What compares rows is told whole, because it is one change."""
        if self.reading.changes and change.begin is not None:
            rows = sum(part.rows for part in change.parts)
            more = admitted.with_rows(rows, rows * change.width)
            return (offset.part, admitted) if more is None else (len(change.parts), more)
        for place in range(offset.part, len(change.parts)):
            rows = change.parts[place].rows
            more = admitted.with_rows(rows, rows * change.width)
            if more is None:
                return place, admitted
            admitted = more
        return len(change.parts), admitted

    @staticmethod
    def _reached(offset: Offset, target: Offset) -> bool:
        return not offset.snapshot and offset.version >= target.version

    def change(self, offset: Offset) -> Change:
        """What is told next after an offset."""
        return self._change(offset.version, offset.snapshot, offset.stamp)

    def _planned_change(self, version: int, snapshot: bool, stamp: str | None) -> Change:
        begin = None if version == 0 else self._opened(version, stamp)
        end = begin if snapshot and begin is not None else self._opened(version + 1)
        self._check(end)
        address = self.reading.address
        return change_of(
            self.reading,
            None if snapshot or begin is None else address.pinned(begin),
            address.pinned(end),
            self._width(end),
        )

    def _check(self, end: Snapshot) -> None:
        """InvalidInput where a version has other columns than the stream, which went unsaid otherwise."""
        address = self.reading.address.pinned(end)
        try:
            check_columns(self.reading, address)
        except LanceletError as error:
            raise self._other_columns(end, f"{error.message} (column {error.column!r})") from None
        lost = missing_columns(self.reading, address)
        if end.version <= self._known:
            # Columns that were added later are null.
            lost = tuple(name for name in lost if not self.reading.schema[name].nullable)
        known = self._columns
        added = []
        if known is not None and end.version > self._known:
            added = [item.name for item in end.schema.fields if item.name not in known]
        if lost or added:
            said = [f"column {name!r} is gone" for name in lost] + [f"column {name!r} is new" for name in added]
            raise self._other_columns(end, ", ".join(said))

    def _other_columns(self, end: Snapshot, said: str) -> InvalidInput:
        hint = "make the stream anew: with the same checkpoint it goes on from here with the columns as they are then"
        return InvalidInput(
            f"version {end.version} has other columns than the stream: {said}",
            uri=end.uri,
            version=end.version,
            hint=hint,
        )

    def _width(self, end: Snapshot) -> float:
        names = [
            name
            for name in self.reading.names
            if name not in missing_columns(self.reading, self.reading.address.pinned(end))
        ]
        plan = plan_scan(end, request_for(end, names))
        stored = bound_schema(end.schema)
        return row_bytes(end.manifest.fragments, stored, plan.reads.arrow) + 8 * len(plan.reads.system)

    def _after(self, change: Change) -> Offset:
        return self._at(opened(change.end)[0])

    def _at(self, snapshot: Snapshot, *, whole: bool = False) -> Offset:
        return Offset(snapshot.version, 0, whole, self.reading.address.pinned(snapshot).stamp)

    def _opened(self, version: int, stamp: str | None = None) -> Snapshot:
        address = replace(self.reading.address, version=version)
        try:
            snapshot = address.open()
        except NotFound:
            found = f"version {version} was cleaned up before the stream had told what came after it"
            if version > self.reading.address.open().version:
                found = f"there is no version {version} of the table"
            raise NotFound(found, uri=address.uri, version=version, hint=_ANEW) from None
        if stamp is not None and self.reading.address.pinned(snapshot).stamp != stamp:
            raise self._made_anew(version)
        return snapshot

    def pieces(self, start: Offset, end: Offset) -> list[tuple[Piece, ...]]:
        """What tasks tell between two offsets, each about as many bytes as splits of other reads have."""
        packed: list[tuple[Piece, ...]] = []
        held: list[Piece] = []
        weight = 0.0
        for piece, size in self._all_pieces(start, end):
            if held and weight + size > self.reading.asked.split_size:
                packed.append(tuple(held))
                held, weight = [], 0.0
            held.append(piece)
            weight += size
        return [*packed, tuple(held)] if held else packed

    def _all_pieces(self, start: Offset, end: Offset) -> Iterator[tuple[Piece, float]]:
        offset = start
        while (offset.version, offset.snapshot) != (end.version, end.snapshot) and not self._reached(offset, end):
            change = self.change(offset)
            yield from self._pieces_of(change, change.parts[offset.part :])
            offset = self._after(change)
        if end.part > (part := offset.part):
            change = self.change(offset)
            yield from self._pieces_of(change, change.parts[part : end.part])

    def _pieces_of(self, change: Change, parts: Sequence[ChangesTask]) -> Iterator[tuple[Piece, float]]:
        target = self.reading.asked.split_size
        if not change.whole:
            for part in parts:
                # Rows on both sides are looked at, and those that changed are told.
                yield Piece(change.begin, change.end, part), part.rows * change.width
            return
        numbers = [number for part in parts if part.side is Side.AFTER for number in part.fragments]
        fragments = opened(change.end)[0].manifest.fragments
        rows = {number: part.rows / len(part.fragments) for part in parts for number in part.fragments}
        for split in splits_of(fragments, target, change.width, ids=numbers):
            yield Piece(change.begin, change.end, split), self._size(split, rows) * change.width

    @staticmethod
    def _size(split: Split, rows: dict[int, float]) -> float:
        ranges = split.ranges
        return sum(
            ranges[number][1] - ranges[number][0] if number in ranges else rows[number] for number in split.fragments
        )
