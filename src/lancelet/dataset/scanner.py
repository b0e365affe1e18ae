"""LanceScanner: one scan, ready to be carried out, as often as it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.dataset as pads

from lancelet.dataset.blob_frames import to_frame
from lancelet.dataset.scan_options import ScanOptions, ScanStatistics, bind
from lancelet.dataset.shown import shown_batch, shown_schema, shown_table
from lancelet.errors import Unsupported
from lancelet.format.arrow import schema_to_arrow
from lancelet.ops.sources import DataFrame
from lancelet.query.count import count_request, counting_request
from lancelet.query.explaining import explain, measured_text
from lancelet.query.plan import ScanPlan
from lancelet.query.scan import plan_scan, read_table, run_scan
from lancelet.query.watching import Watch
from lancelet.storage.store import maps_files
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

if TYPE_CHECKING:
    from lancelet.dataset.core import DatasetCore

__all__ = ["LanceScanner"]


class LanceScanner(pads.Scanner):  # type: ignore[misc]
    """A scan of one version of a table; made by ``dataset.scanner``, it shows that version however the table goes on.

    >>> import lancelet
    >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://scanner")
    >>> scanner = dataset.scanner(columns=["x"], filter="x > 1")
    >>> scanner.count_rows(), scanner.to_table()["x"].to_pylist()
    (2, [2, 3])
    """

    def __init__(self, dataset: DatasetCore, options: ScanOptions) -> None:
        # The dataset may go on to another version; the scan stays at its own.
        self._dataset = dataset.__copy__()
        self._snapshot, self._places = dataset.snapshot, dataset.places
        self._options = options
        self._plan = plan_scan(self._snapshot, bind(self._snapshot, options))

    @property
    def dataset(self) -> DatasetCore:
        """What is scanned."""
        return self._dataset

    @property
    def snapshot(self) -> Snapshot:
        """The version that is scanned."""
        return self._snapshot

    @property
    def options(self) -> ScanOptions:
        """What was asked for."""
        return self._options

    @property
    def plan(self) -> ScanPlan:
        """How the scan goes."""
        return self._plan

    @property
    def projected_schema(self) -> pa.Schema:
        """The schema of what the scan hands out."""
        return shown_schema(self._plan.schema)

    @property
    def dataset_schema(self) -> pa.Schema:
        """The schema of the dataset."""
        return shown_schema(schema_to_arrow(self._snapshot.schema))

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream; a window of bounded size is held at a time."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """All rows."""
        with self._told() as (places, watch):
            return shown_table(read_table(self._plan, places, watch))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch."""
        with self._told() as (places, watch):
            yield from map(shown_batch, run_scan(self._plan, places, watch))

    def scan_batches(self) -> list[pa.RecordBatch]:
        """All batches."""
        return list(self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as Arrow's C stream, for any library that takes one."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def head(self, num_rows: int) -> pa.Table:
        """The first rows."""
        limit = self._options.limit
        least = num_rows if limit is None else min(limit, num_rows)
        return self.again(limit=least).to_table()

    def count_rows(self) -> int:
        """How many rows the scan hands out, without reading more than that takes."""
        with self._told() as (places, watch):
            return count_request(self._snapshot, self._plan.request, places=places, watch=watch)

    def explain_plan(self, verbose: bool = False) -> str:
        """What the scan would do: which indexes are asked, which fragments looked at, what is read, what it takes.

        The figures are estimates, found without reading any row. ``verbose`` says more of fragments and types.

        >>> import lancelet
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://explained-scan")
        >>> print(dataset.scanner(filter="x > 1").explain_plan())
        scan of memory://explained-scan, version 1
          columns: x
          filter: x > 1
          1 fragment, 3 rows: scanned, checked for x > 1
            reads: x
          estimate: at most 3 rows, 2 requests, ...
        """
        return explain(self._plan, self._places, verbose=verbose)

    def analyze_plan(self, count_rows: bool = False) -> str:
        """What the scan does and took: it is carried out, or its rows are counted, and the rows let go.

        Requests and bytes are those of a store far away. Files that are mapped are read a second time for the time.

        >>> import lancelet
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://analyzed-scan")
        >>> print(dataset.scanner(filter="x > 1").analyze_plan().splitlines()[7])
          looked at: 3 rows of 1 fragment
        """
        plan = self._plan
        if count_rows:
            plan = plan_scan(self._snapshot, counting_request(plan.request))
        text = explain(plan, self._places)
        watch = Watch(self._places)
        rows, batches = self._carried_out(watch.places, watch, count_rows=count_rows)
        measured = watch.measured()
        seconds = measured.seconds
        if maps_files(self._places.base(None)):
            started = perf_counter()
            self._carried_out(self._places, None, count_rows=count_rows)
            seconds = perf_counter() - started
        return "\n".join([text, measured_text(measured, rows, batches, seconds)])

    def _carried_out(self, places: Places, watch: Watch | None, *, count_rows: bool) -> tuple[int, int | None]:
        """Rows and batches of the scan; where rows are counted, their number alone."""
        if count_rows:
            return count_request(self._snapshot, self._plan.request, places=places, watch=watch), None
        rows = batches = 0
        for batch in run_scan(self._plan, places, watch):
            rows, batches = rows + batch.num_rows, batches + 1
        return rows, batches

    @contextmanager
    def _told(self) -> Iterator[tuple[Places, Watch | None]]:
        """Where to read, watched if somebody wants to be told what a scan took; at the end they are."""
        callback = self._options.scan_stats_callback
        if callback is None:
            yield self._places, None
            return
        watch = Watch(self._places)
        yield watch.places, watch
        found = watch.measured()
        counts = {"rows_scanned": found.rows_looked_at, "fragments_scanned": found.fragments}
        callback(
            ScanStatistics(
                iops=found.ranges,
                requests=found.requests,
                bytes_read=found.bytes_read,
                index_cache_hits=found.cache_hits,
                index_cache_misses=found.cache_misses,
                all_counts={**counts, "index_requests": found.index_requests, "index_bytes_read": found.index_bytes},
                all_times={"elapsed": round(found.seconds * 1e9), "elapsed_cpu": round(found.cpu_seconds * 1e9)},
            )
        )

    def take(self, indices: object) -> pa.Table:
        """Not offered: rows are taken from the dataset."""
        raise Unsupported("a scan's rows are not taken by number", hint="use dataset.take, or read the scan")

    def to_pandas(self, *, blob_mode: str = "lazy", **kwargs: object) -> DataFrame:
        """All rows as a data frame; ``kwargs`` are those of ``pyarrow.Table.to_pandas``.

        ``blob_mode`` says what stands for blobs: files that are read lazily, their bytes, or descriptions.
        """
        return cast("DataFrame", to_frame(self, blob_mode, kwargs))

    @staticmethod
    def from_dataset(*args: object, **kwargs: object) -> LanceScanner:
        """Not offered: ``dataset.scanner`` makes scanners."""
        raise Unsupported("scanners are made by dataset.scanner")

    @staticmethod
    def from_fragment(*args: object, **kwargs: object) -> LanceScanner:
        """Not offered: ``fragment.scanner`` makes scanners."""
        raise Unsupported("scanners are made by fragment.scanner")

    @staticmethod
    def from_batches(*args: object, **kwargs: object) -> LanceScanner:
        """Not offered: a scanner reads a table."""
        raise Unsupported("scanners are made by dataset.scanner")

    def again(self, **changes: object) -> LanceScanner:
        """The same scan but for some options."""
        made = LanceScanner.__new__(LanceScanner)
        made._dataset, made._snapshot, made._places = self._dataset, self._snapshot, self._places
        made._options = replace(self._options, **changes)  # type: ignore[arg-type]
        made._plan = plan_scan(self._snapshot, bind(self._snapshot, made._options))
        return made
