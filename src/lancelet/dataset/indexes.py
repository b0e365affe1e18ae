"""Indexes of a dataset: made, looked at, loaded ahead, dropped."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from uuid import UUID

from lancelet.dataset.core import DatasetCore
from lancelet.dataset.index_descriptions import IndexDescription, IndexInformation, described
from lancelet.dataset.index_request import (
    IndexTypeLike,
    column_named_by,
    kind_of_request,
    told,
    uuid_of,
)
from lancelet.dataset.progress import IndexProgress
from lancelet.errors import InvalidInput
from lancelet.ops.committing import CommitOptions
from lancelet.ops.index.create import create_scalar_index
from lancelet.ops.index.describe import described_indexes
from lancelet.ops.index.drop import drop_index
from lancelet.ops.index.prewarm import prewarm_index
from lancelet.ops.index.statistics import IndexStatistics, index_statistics

__all__ = ["DatasetIndexes"]


class DatasetIndexes(DatasetCore):
    """Indexes over columns of values."""

    def create_scalar_index(
        self,
        column: str,
        index_type: IndexTypeLike,
        name: str | None = None,
        *,
        replace: bool = True,
        train: bool = True,
        fragment_ids: list[int] | None = None,
        index_uuid: str | None = None,
        progress_callback: Callable[[IndexProgress], None] | None = None,
        format_version: int | str | None = None,
        document_granularity: object = None,
        **kwargs: object,
    ) -> None:
        """Index a column; scans whose filters ask for values of it read the index instead of the column from then on.

        Types are ``BTREE`` (any values), ``BITMAP`` (few different values), ``LABEL_LIST`` (lists of labels),
        ``NGRAM`` (parts of texts), ``ZONEMAP`` and ``BLOOMFILTER`` (small, for data in some order, or for equality);
        an :class:`IndexConfig`, or ``kwargs``, has the type's own parameters. ``train=False`` makes an empty index,
        which ``optimize.optimize_indices`` fills. An index of the same name, which is made of the column's name
        unless one is given, is replaced, or without ``replace`` refused. ``format_version`` and
        ``document_granularity`` are for text indexes, which have not landed.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [3, 1, 2]}), "memory://indexing")
        >>> dataset.create_scalar_index("x", "BTREE")
        >>> dataset.describe_indices()[0].name, dataset.to_table(filter="x = 1").num_rows
        ('x_idx', 1)
        """
        path = column_named_by(column)
        kind, parameters = kind_of_request(index_type, kwargs)
        if fragment_ids is not None:
            hint = f"use create_index_uncommitted(..., index_type={kind!r}, fragment_ids=...)"
            raise InvalidInput("an index over some fragments is built without being committed", hint=hint)
        uuid = uuid_of(index_uuid)
        with told(progress_callback, self._snapshot.store.uri):
            made = create_scalar_index(
                self._snapshot,
                path,
                kind,
                name=name,
                replace=replace,
                train=train,
                parameters=parameters,
                uuid=uuid,
                options=self._index_commit_options(),
            )
        self._follow(made)

    def drop_index(self, name: str) -> None:
        """Drop an index. Its files stay for the versions that have it, until a cleanup.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [3, 1, 2]}), "memory://dropping")
        >>> dataset.create_scalar_index("x", "BITMAP")
        >>> dataset.drop_index("x_idx"), dataset.has_index
        (None, False)
        """
        self._follow(drop_index(self._snapshot, name, options=self._index_commit_options()))

    def prewarm_index(
        self,
        name: str,
        *,
        with_position: bool = False,
        index_segments: Iterable[str | UUID] | None = None,
    ) -> None:
        """Load an index into the cache, as far as it fits; some of its segments only, if their ids are given.

        ``with_position`` is for text indexes.
        """
        if isinstance(index_segments, str | UUID):
            raise TypeError("index_segments must be an iterable of ids, not one of them")
        wanted = None if index_segments is None else [UUID(str(item)) for item in index_segments]
        if with_position:
            raise InvalidInput(f"index {name!r} has no positions: that is for text indexes")
        prewarm_index(self._snapshot, self._places, name, wanted)

    @property
    def has_index(self) -> bool:
        """Whether the version has any index."""
        return bool(self._snapshot.indexes())

    def describe_indices(self) -> list[IndexDescription]:
        """The indexes of the version by name, each with its segments.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [3, 1, 2]}), "memory://describing")
        >>> dataset.create_scalar_index("x", "BITMAP")
        >>> [(item.index_type, item.field_names, item.num_rows_indexed) for item in dataset.describe_indices()]
        [('Bitmap', ['x'], 3)]
        """
        return [described(item) for item in described_indexes(self._snapshot)]

    def list_indices(self) -> list[IndexInformation]:
        """The segments of all indexes. Deprecated: :meth:`describe_indices` says more."""
        text = "list_indices is deprecated, use describe_indices, which says more"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return [
            IndexInformation(
                name=item.name,
                type=item.index_type,
                uuid=segment.uuid,
                fields=item.field_names,
                version=segment.dataset_version_at_last_update,
                fragment_ids=segment.fragment_ids,
                base_id=segment.base_id,
            )
            for item in self.describe_indices()
            for segment in item.segments
        ]

    def index_statistics(self, index_name: str) -> IndexStatistics:
        """Figures of an index. Deprecated: it is ``stats.index_stats`` now."""
        warnings.warn("index_statistics is deprecated, use stats.index_stats", DeprecationWarning, stacklevel=2)
        return index_statistics(self._snapshot, self._places, index_name)

    def _index_commit_options(self) -> CommitOptions:
        return CommitOptions(commit_lock=self._commit_lock())
