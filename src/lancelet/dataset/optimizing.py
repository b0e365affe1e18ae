"""DatasetOptimizer: what makes a table faster to read and changes none of its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from lancelet.dataset.compacting import CompactionMetrics, compacted
from lancelet.dataset.index_request import told
from lancelet.dataset.progress import IndexProgress
from lancelet.dataset.settings import DatasetSettings
from lancelet.dataset.writing import AutoCleanupConfig
from lancelet.ops.committing import CommitOptions
from lancelet.ops.compaction.options import options_of
from lancelet.ops.doctor import Diagnosis, examined
from lancelet.ops.index.optimize import OptimizeRequest, optimize_indexes

__all__ = ["DatasetOptimizer"]


class DatasetOptimizer:
    """Maintenance of a table: ``dataset.optimize``. Each change is a commit, at whose version the dataset is then."""

    def __init__(self, dataset: DatasetSettings) -> None:
        self._dataset = dataset

    def compact_files(
        self,
        *,
        target_rows_per_fragment: int | None = None,
        max_rows_per_group: int | None = None,
        max_bytes_per_file: int | None = None,
        materialize_deletions: bool | None = None,
        materialize_deletions_threshold: float | None = None,
        defer_index_remap: bool | None = None,
        num_threads: int | None = None,
        batch_size: int | None = None,
        compaction_mode: Literal["reencode", "try_binary_copy", "force_binary_copy"] | None = None,
        binary_copy_read_batch_bytes: int | None = None,
        max_source_fragments: int | None = None,
        max_source_rows: int | None = None,
        max_source_bytes: int | None = None,
        excluded_fragment_ids: list[int] | None = None,
        data_storage_version: str | None = None,
    ) -> CompactionMetrics:
        """Put small fragments together, and write those anew of which many rows are deleted.

        Rows keep their order, stable ids and lineage. What is not given is as the config has it, under keys such as
        ``lance.compaction.target_rows_per_fragment``, else 2**20 rows to a fragment and a tenth of deleted rows. A
        fragment of more than 64 MiB waits until its neighbours have a quarter of its bytes. Indexes are rewritten
        along; with ``defer_index_remap`` they stay, and are brought up to date by ``optimize_indices``. Fragments that
        others change meanwhile stay as they are; nothing is committed where there is nothing to do.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": range(9)}), "memory://compacting", max_rows_per_file=3)
        >>> dataset.optimize.compact_files()
        CompactionMetrics(fragments_removed=3, fragments_added=1, files_removed=3, files_added=1)
        """
        given = {
            "target_rows_per_fragment": target_rows_per_fragment,
            "max_rows_per_group": max_rows_per_group,
            "max_bytes_per_file": max_bytes_per_file,
            "materialize_deletions": materialize_deletions,
            "materialize_deletions_threshold": materialize_deletions_threshold,
            "defer_index_remap": defer_index_remap,
            "num_threads": num_threads,
            "batch_size": batch_size,
            "compaction_mode": compaction_mode,
            "binary_copy_read_batch_bytes": binary_copy_read_batch_bytes,
            "max_source_fragments": max_source_fragments,
            "max_source_rows": max_source_rows,
            "max_source_bytes": max_source_bytes,
            "excluded_fragment_ids": excluded_fragment_ids,
            "data_storage_version": data_storage_version,
        }
        said = {name: value for name, value in given.items() if value is not None}
        return compacted(self._dataset, options_of(self._dataset.config(), said))

    def optimize_indices(
        self,
        *,
        num_indices_to_merge: int | None = None,
        index_names: list[str] | None = None,
        retrain: bool = False,
        progress_callback: Callable[[IndexProgress], None] | None = None,
    ) -> None:
        """Put rows into indexes that were written after them, so that scans need not look at each.

        Rows that are new to an index are merged with its last segment, or with the last ``num_indices_to_merge``;
        with 0 they get a segment of their own, which is fastest. ``retrain`` builds each index anew, as one segment.
        Other indexes than those named stay as they are; nothing is committed where all are up to date.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [3, 1, 2]}), "memory://optimizing")
        >>> dataset.create_scalar_index("x", "BTREE")
        >>> dataset.insert(pa.table({"x": [7, 8]}))
        >>> dataset.optimize.optimize_indices()
        >>> dataset.describe_indices()[0].num_rows_indexed
        5
        """
        dataset = self._dataset
        if isinstance(index_names, str):
            raise TypeError("index_names must be a list of names, not one of them")
        request = OptimizeRequest(
            1 if num_indices_to_merge is None else num_indices_to_merge,
            None if index_names is None else tuple(index_names),
            retrain,
        )
        with told(progress_callback, dataset.snapshot.store.uri):
            made = optimize_indexes(
                dataset.snapshot, request, options=CommitOptions(commit_lock=dataset.location.commit_lock)
            )
        if made is not None:
            dataset._follow(made)

    def doctor(self, *, versions: bool = True) -> Diagnosis:
        """What the table needs, as data and, printed, as text: compaction, indexing, cleanup; and what that would cost.

        Nothing is changed, and no data file is read. Looking at versions takes a request for each; ``versions=False``
        leaves that out. pylance has no such function.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1]}), "memory://ailing")
        >>> dataset.insert(pa.table({"x": [2]}))
        >>> diagnosis = dataset.optimize.doctor()
        >>> diagnosis.healthy, diagnosis.findings[0].remedy
        (False, 'dataset.optimize.compact_files()')
        """
        return examined(self._dataset.snapshot, versions=versions)

    def enable_auto_cleanup(self, auto_cleanup_config: AutoCleanupConfig, **kwargs: object) -> None:
        """Have commits remove old versions from now on: every so many versions those older than so many seconds.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1]}), "memory://tidying")
        >>> dataset.optimize.enable_auto_cleanup({"interval": 20, "older_than_seconds": 3600})
        >>> dataset.config()["lance.auto_cleanup.older_than"]
        '3600s'
        """
        self._dataset.update_config(
            {
                "lance.auto_cleanup.interval": str(auto_cleanup_config["interval"]),
                "lance.auto_cleanup.older_than": f"{auto_cleanup_config['older_than_seconds']}s",
            }
        )

    def disable_auto_cleanup(self, **kwargs: object) -> None:
        """Have commits remove nothing any more."""
        self._dataset.update_config({"lance.auto_cleanup.interval": None, "lance.auto_cleanup.older_than": None})
