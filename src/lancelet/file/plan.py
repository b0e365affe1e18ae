"""Plans: which bytes of a file some rows of some columns need, before any of them is read.

Where rows lie within a page may be known only from the page's index. Such a page's plan names the bytes of the index,
which come in a first round of requests; its data follow once the index is known. Indexes that were read are kept by
the file, so that the plan of a later read is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from lancelet.config import default_options
from lancelet.encodings import page as pages
from lancelet.encodings.page import PageIndex, Rows
from lancelet.encodings.shape import Shape
from lancelet.file.data_file import DataFile
from lancelet.file.plan_v2_0 import plan_pages as plan_pages_v2_0
from lancelet.file.planned import PagePlan
from lancelet.file.reading import data_ranges, load_indexes, located
from lancelet.file.requests import PageRequest, requests_for
from lancelet.file.text import size_text, table_text
from lancelet.format.columns import Range
from lancelet.format.versions import FileVersion
from lancelet.storage.ranges import ReadPlan, coalesce

__all__ = ["FilePlan", "PagePlan", "plan_file"]


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What a read will ask of its store. Printable.

    >>> page = PagePlan("x", 0, 0, rows=10, index=(), data=((0, 80),))
    >>> print(FilePlan("a.lance", (page,)))
    a.lance
    column  page  rows  index  data
    x          0    10         80 B
    80 B in 1 request
    """

    uri: str
    pages: tuple[PagePlan, ...]
    #: Whether data whose places are known come along in the first round, as in files of 2.0.
    one_round: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether every byte that will be read is named: no page's data wait for an index."""
        return all(page.data is not None for page in self.pages)

    @property
    def index_ranges(self) -> list[Range]:
        """Byte ranges of the first round: the indexes that are not known yet."""
        return [one for page in self.pages for one in page.index]

    @property
    def data_ranges(self) -> list[Range]:
        """Byte ranges of the second round, as far as they are known."""
        return [one for page in self.pages for one in page.data or ()]

    @property
    def rounds(self) -> tuple[ReadPlan, ...]:
        """The requests that a store is sent, round after round, neighbouring ranges joined."""
        options = default_options()
        wanted = [self.index_ranges, self.data_ranges]
        if self.one_round:
            wanted = [self.index_ranges + self.data_ranges]
        plans = (coalesce(one, gap=options.coalesce_gap, largest=options.largest_request) for one in wanted)
        return tuple(plan for plan in plans if plan.requests)

    @property
    def num_requests(self) -> int:
        """Requests of all rounds."""
        return sum(len(plan.requests) for plan in self.rounds)

    @property
    def num_bytes(self) -> int:
        """Bytes that are needed; gaps that joining leaves between them come on top."""
        return sum(size for _, size in (*self.index_ranges, *self.data_ranges))

    def __str__(self) -> str:
        rows = [
            (page.name, str(page.page), f"{page.rows:,}", _size(page.index), _size(page.data)) for page in self.pages
        ]
        total = f"{size_text(self.num_bytes)} in {self.num_requests:,} request{'s' * (self.num_requests != 1)}"
        if len(self.rounds) > 1:
            total += f", {len(self.rounds[0].requests):,} of them for indexes"
        if not self.is_exact:
            total += ", and more once the indexes are known"
        return "\n".join([self.uri, table_text(("column", "page", "rows", "index", "data"), rows), total])


def _size(ranges: Sequence[Range] | None) -> str:
    if ranges is None:
        return "?"
    return size_text(sum(size for _, size in ranges)) if ranges else ""


def plan_file(file: DataFile, shapes: Sequence[Shape], rows: Rows, *, read_indexes: bool = False) -> FilePlan:
    """The plan of reading some rows of each shape; ``read_indexes`` reads what it takes to make it exact.

    In a file of version 2.0 rows have to be followed through lists and strings: what lies behind them stays unknown.
    """
    if file.version is FileVersion.V2_0:
        return FilePlan(file.uri, tuple(plan_pages_v2_0(file, shapes, rows)), one_round=True)
    requests = [request for shape in shapes for request in requests_for(file, shape, rows)]
    indexes = load_indexes(file, requests) if read_indexes else [None] * len(requests)
    return FilePlan(file.uri, tuple(map(partial(_plan, file), requests, indexes)))


def _plan(file: DataFile, request: PageRequest, index: PageIndex) -> PagePlan:
    page, key = request.page, (request.column, request.number)
    ranges: list[Range] = []
    if key in file.page_indexes:
        index = file.page_indexes[key]
    else:
        ranges = located(file, request, pages.index_ranges, page, request.rows)
        if not ranges:
            index = located(file, request, pages.load_index, page, request.rows, [])
    known = index is not None or not ranges
    data = tuple(data_ranges(file, request, index)) if known else None
    return PagePlan(request.name, request.column, request.number, _count(request.rows), tuple(ranges), data)


def _count(rows: Rows) -> int:
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)
