"""Index segments: built in many places without being committed, merged, and committed together as an index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.types as pat

from lancelet.dataset.core import DatasetCore
from lancelet.dataset.index_request import (
    IndexTypeLike,
    column_named_by,
    kind_of_request,
    told,
    uuid_of,
)
from lancelet.dataset.operation import Index
from lancelet.dataset.progress import IndexProgress
from lancelet.dataset.stored_operation import index_from_stored, index_to_stored
from lancelet.errors import InvalidInput, Unsupported
from lancelet.ops.committing import CommitOptions
from lancelet.ops.executor import run_plan
from lancelet.ops.index.columns import column_of, indexed_column
from lancelet.ops.index.create import plan_create_index
from lancelet.ops.index.errors import NotIndexable
from lancelet.ops.index.existing import check_segments, commit_segments
from lancelet.ops.index.merge import merge_task
from lancelet.ops.job import Plan

if TYPE_CHECKING:
    import numpy as np

__all__ = ["DatasetIndexSegments"]

#: What ``merge_index_metadata`` takes, as pylance has it.
_DISTRIBUTED = ("BTREE", "INVERTED", "IVF_FLAT", "IVF_PQ", "IVF_SQ", "VECTOR")
_VECTOR = "IVF_"


class DatasetIndexSegments(DatasetCore):
    """Indexes built by many processes."""

    def create_index_uncommitted(
        self,
        column: str | list[str],
        index_type: IndexTypeLike,
        name: str | None = None,
        metric: str = "L2",
        replace: bool = False,
        num_partitions: int | None = None,
        ivf_centroids: np.ndarray[Any, Any] | pa.Array | None = None,
        pq_codebook: np.ndarray[Any, Any] | pa.Array | None = None,
        num_sub_vectors: int | None = None,
        accelerator: object | None = None,
        index_cache_size: int | None = None,
        shuffle_partition_batches: int | None = None,
        shuffle_partition_concurrency: int | None = None,
        ivf_centroids_file: str | None = None,
        precomputed_partition_dataset: str | None = None,
        storage_options: dict[str, str] | None = None,
        filter_nan: bool = True,
        train: bool = True,
        fragment_ids: list[int] | None = None,
        index_uuid: str | None = None,
        *,
        target_partition_size: int | None = None,
        streaming_sample_rate: int | None = None,
        streaming_coreset_rate: int | None = None,
        streaming_refine_passes: int | None = None,
        skip_transpose: bool = False,
        rabitq_model: str | None = None,
        progress_callback: Callable[[IndexProgress], None] | None = None,
        **kwargs: object,
    ) -> Index:
        """Build a segment over some fragments, and return what a commit needs to know of it, which pickles.

        Segments of all fragments, built by any processes, are made an index by
        :meth:`commit_existing_index_segments`; before that groups of them may be merged into one each. The parameters
        that begin with ``metric`` are for indexes over vectors, which have not landed.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": range(4)}), "memory://segments", max_rows_per_file=2)
        >>> segments = [dataset.create_index_uncommitted("x", "BTREE", fragment_ids=[at]) for at in (0, 1)]
        >>> dataset = dataset.commit_existing_index_segments("x_idx", "x", segments)
        >>> len(dataset.describe_indices()[0].segments)
        2
        """
        path = column_named_by(column)
        _refuse_vectors(self, path, index_type)
        kind, parameters = kind_of_request(index_type, kwargs)
        if fragment_ids is None:
            raise InvalidInput("a segment is built over fragments", hint="say which by fragment_ids")
        plan = plan_create_index(
            self._snapshot,
            path,
            kind,
            name=name,
            replace=replace,
            train=train,
            fragments=fragment_ids,
            parameters=parameters,
            uuid=uuid_of(index_uuid),
        )
        with told(progress_callback, self._snapshot.store.uri):
            results = run_plan(plan, self._snapshot.store, options=self._snapshot.options)
        return index_from_stored(results[0].value)

    def merge_existing_index_segments(self, segments: list[Index]) -> Index:
        """Merge segments that were built without being committed into one; theirs stay as they are.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": range(4)}), "memory://merging", max_rows_per_file=2)
        >>> segments = [dataset.create_index_uncommitted("x", "BITMAP", fragment_ids=[at]) for at in (0, 1)]
        >>> dataset.merge_existing_index_segments(segments).fragment_ids
        Bitmap({0, 1})
        """
        stored = [index_to_stored(item) for item in _checked(segments)]
        if not stored:
            raise InvalidInput("there are no segments, expected at least one")
        check_segments(stored, column_of(self._snapshot, stored[0].keyed_fields[0]))
        task = merge_task(self._snapshot, stored[0].name, stored)
        plan = Plan("merge index segments", self._snapshot.version, (task,))
        return index_from_stored(run_plan(plan, self._snapshot.store, options=self._snapshot.options)[0].value)

    def commit_existing_index_segments(self, index_name: str, column: str, segments: Sequence[Index]) -> Self:
        """Make segments an index over a column, or put them to those that it has; those that they cover are replaced.

        The dataset itself is at the version that was made. See :meth:`create_index_uncommitted`.
        """
        stored = [index_to_stored(item) for item in _checked(segments)]
        options = CommitOptions(commit_lock=self._commit_lock())
        self._follow(commit_segments(self._snapshot, index_name, column, stored, options=options))
        return self

    def merge_index_metadata(
        self,
        index_uuid: str,
        index_type: str,
        batch_readhead: int | None = None,
        progress_callback: Callable[[IndexProgress], None] | None = None,
    ) -> None:
        """Refuse, as pylance does for all indexes over values, and say what does the work today."""
        uuid_of(index_uuid)
        kind = index_type.upper()
        if kind not in _DISTRIBUTED:
            raise Unsupported(f"metadata of {kind} segments are not merged", hint=f"types are: {_DISTRIBUTED}")
        if kind != "BTREE":
            raise Unsupported(f"{kind} indexes have not landed")
        hint = "use create_index_uncommitted, merge_existing_index_segments and commit_existing_index_segments"
        raise InvalidInput("metadata of BTREE segments are not merged any more", hint=hint)

    def create_index(
        self,
        column: str | list[str],
        index_type: str,
        name: str | None = None,
        metric: str = "L2",
        replace: bool = False,
        num_partitions: int | None = None,
        ivf_centroids: np.ndarray[Any, Any] | pa.Array | None = None,
        pq_codebook: np.ndarray[Any, Any] | pa.Array | None = None,
        num_sub_vectors: int | None = None,
        accelerator: object | None = None,
        index_cache_size: int | None = None,
        shuffle_partition_batches: int | None = None,
        shuffle_partition_concurrency: int | None = None,
        ivf_centroids_file: str | None = None,
        precomputed_partition_dataset: str | None = None,
        storage_options: dict[str, str] | None = None,
        filter_nan: bool = True,
        train: bool = True,
        fragment_ids: list[int] | None = None,
        index_uuid: str | None = None,
        *,
        target_partition_size: int | None = None,
        streaming_sample_rate: int | None = None,
        streaming_coreset_rate: int | None = None,
        streaming_refine_passes: int | None = None,
        skip_transpose: bool = False,
        progress_callback: Callable[[IndexProgress], None] | None = None,
        **kwargs: object,
    ) -> Self:
        """Index a column of vectors: has not landed. For values there is :meth:`create_scalar_index`."""
        path = column_named_by(column)
        found = indexed_column(self._snapshot, path)
        if not _is_vector(found.type):
            hint = "use create_scalar_index for columns of values"
            raise NotIndexable(
                f"an index over vectors is asked for, the column is {found.type}", column=path, hint=hint
            )
        raise Unsupported(
            f"{index_type}: indexes over vectors have not landed", column=path, hint="search by a scan with nearest="
        )


def _refuse_vectors(dataset: DatasetCore, path: str, index_type: object) -> None:
    if isinstance(index_type, str) and index_type.upper().startswith(_VECTOR):
        indexed_column(dataset.snapshot, path)
        raise Unsupported(f"{index_type}: indexes over vectors have not landed", column=path)


def _is_vector(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return bool(pat.is_fixed_size_list(kind) or (pat.is_list(kind) and pat.is_fixed_size_list(kind.value_type)))


def _checked(segments: object) -> Sequence[Index]:
    if not isinstance(segments, list | tuple) or not all(isinstance(item, Index) for item in segments):
        raise TypeError("segments must be a list of Index, as create_index_uncommitted returns them")
    return segments
