"""Looking at a dataset from outside: fragments, files, statistics, and how it is reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lancelet.bitmap import Bitmap
from lancelet.dataset.core import DatasetCore
from lancelet.dataset.files import ALL_FILES, TRACKED_FILES, all_files, tracked_files
from lancelet.dataset.location import unscoped
from lancelet.dataset.statistics import LanceStats
from lancelet.dataset.storage_options import StorageOptionsAccessor
from lancelet.dataset.tally import IOStats
from lancelet.dataset.validation import validate_snapshot
from lancelet.errors import Unsupported
from lancelet.file.session import LanceFileSession
from lancelet.session import Session
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot
from lancelet.table.versions import newest_first

if TYPE_CHECKING:
    from lancelet.dataset.fragments.lance_fragment import LanceFragment

__all__ = ["DatasetInspection"]


class DatasetInspection(DatasetCore):
    """What a dataset is made of."""

    def fragment_ids(self) -> Bitmap:
        """The numbers of the fragments."""
        return Bitmap(self._snapshot.manifest.fragments.ids())

    def get_fragments(self, filter: pc.Expression | None = None) -> list[LanceFragment]:
        """The fragments, in the order of the table."""
        from lancelet.dataset.fragments.lance_fragment import LanceFragment

        if filter is not None:
            raise Unsupported("fragments are not chosen by a filter", hint="scan with the filter instead")
        return [LanceFragment(self, None, fragment=item) for item in self._snapshot.manifest.fragments]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """The fragment with a number; None if there is none."""
        from lancelet.dataset.fragments.lance_fragment import LanceFragment

        fragments = self._snapshot.manifest.fragments
        place = fragments.place_of(fragment_id)
        return None if place is None else LanceFragment(self, None, fragment=fragments[place])

    @property
    def stats(self) -> LanceStats:
        """Statistics of the dataset."""
        return LanceStats(self)

    def validate(self) -> None:
        """Raise Corrupt, with the file, where the version's files are missing or do not fit its manifest.

        Metadata is looked at, not every value.

        >>> import lancelet
        >>> lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://valid").validate()
        """
        validate_snapshot(self._snapshot, self._places)

    def tracked_files(
        self, *, min_version: int | None = None, progress: Callable[[int, int], object] | None = None
    ) -> pa.RecordBatchReader:
        """The files that each version names, newest version first; ``progress`` is told how many versions are through.

        >>> import lancelet
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://tracked")
        >>> dataset.tracked_files().read_all()["type"].to_pylist()
        ['manifest', 'transaction file', 'data file']
        """
        here, location = self._snapshot, self._location
        found = [item for item in newest_first(here.store) if min_version is None or item.version >= min_version]

        def places(snapshot: Snapshot) -> Places:
            return Places.of(snapshot)

        batches = tracked_files(
            found,
            len(found),
            here.store,
            uri=self.uri,
            places=places,
            concurrency=location.options.io_concurrency,
            progress=progress,
        )
        return pa.RecordBatchReader.from_batches(TRACKED_FILES, batches)

    def all_files(self) -> pa.RecordBatchReader:
        """All files that lie in the table's folder, whether any version names them or not."""
        return pa.RecordBatchReader.from_batches(ALL_FILES, all_files(self._snapshot.store, self.uri))

    def io_stats_snapshot(self) -> IOStats:
        """What was asked of the table's stores since the dataset was opened. Bytes of memory maps do not count."""
        return self._location.tally.total()

    def io_stats_incremental(self) -> IOStats:
        """What was asked of the table's stores since this was called before."""
        return self._location.tally.since_last()

    def session(self) -> Session:
        """What the dataset shares with others."""
        return self._location.session

    def new_file_session(self) -> LanceFileSession:
        """Files below the table's folder, with the dataset's storage options."""
        return LanceFileSession(self.uri, storage_options=unscoped(self._location.storage_options))

    @property
    def initial_storage_options(self) -> dict[str, str] | None:
        """The storage options that the dataset was opened with."""
        found = self._location.storage_options
        return None if found is None else dict(found)

    @property
    def storage_options_accessor(self) -> StorageOptionsAccessor | None:
        """What tells the storage options; None where the dataset was opened without any."""
        found = self.initial_storage_options
        return None if found is None else StorageOptionsAccessor.with_static_options(found)

    def latest_storage_options(self) -> dict[str, str] | None:
        """The storage options that the next request is made with."""
        return self.initial_storage_options
