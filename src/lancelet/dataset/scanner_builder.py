"""ScannerBuilder: what is asked of a scan, said step by step."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self, TypeVar
from uuid import UUID

from lancelet.dataset.nearest import NearestOptions
from lancelet.dataset.scan_options import (
    ColumnOrdering,
    Columns,
    Condition,
    ScanOptions,
    ScanStatistics,
    checked_filter,
)
from lancelet.dataset.scanner import LanceScanner
from lancelet.errors import InvalidInput, Unsupported

if TYPE_CHECKING:
    from lancelet.dataset.scanning import DatasetScanning

__all__ = ["ScannerBuilder"]

_BLOB_HANDLING = ("all_binary", "all_descriptions", "blobs_descriptions")
_Item = TypeVar("_Item")


class ScannerBuilder:
    """Collects what a scan is asked for; each method returns the builder itself.

    >>> import lancelet, pyarrow as pa
    >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://built")
    >>> ScannerBuilder(dataset).columns(["x"]).filter("x > 1").limit(1).to_scanner().to_table()["x"].to_pylist()
    [2]
    """

    def __init__(self, ds: DatasetScanning) -> None:
        self.ds = ds
        self._given: dict[str, object] = {}

    def _with(self, **changes: object) -> Self:
        self._given.update(changes)
        return self

    def apply_defaults(self, default_opts: Mapping[str, object]) -> Self:
        """Set options by their names, as the methods are called. InvalidInput for one that does not exist."""
        for name, value in default_opts.items():
            setter: Callable[..., object] | None = None if name.startswith("_") else getattr(self, name, None)
            if setter is None or name in ("apply_defaults", "ds", "to_scanner"):
                raise InvalidInput(f"there is no option {name!r} of a scan", hint="options are named as in scanner()")
            if name != "columns" and isinstance(value, Mapping):
                setter(**value)
            else:
                setter(value)
        return self

    def columns(self, cols: Columns | None = None) -> Self:
        """The columns to hand out: a list of paths, or SQL expressions by name; None for all."""
        if cols is not None and not isinstance(cols, list | dict):
            raise TypeError(f"columns must be a list or dict[name, expression], got {type(cols)}")
        return self._with(columns=cols)

    def filter(self, filter: Condition | Mapping[str, object]) -> Self:
        """The condition that rows must meet; in a mapping it is ``expr_filter``."""
        if not isinstance(filter, Mapping):
            return self._with(filters=(checked_filter(filter),))
        if filter.get("search_filter") is not None:
            raise _no_text_search()
        condition = filter.get("expr_filter")
        return self if condition is None else self.filter(condition)

    def limit(self, n: int | None = None) -> Self:
        """The most rows to hand out."""
        return self._with(limit=_at_least(n, 0, "limit"))

    def offset(self, n: int | None = None) -> Self:
        """How many rows to pass over first."""
        return self._with(offset=_at_least(n, 0, "offset"))

    def order_by(self, orderings: Iterable[ColumnOrdering] | None) -> Self:
        """The columns that rows are ordered by, the most important first."""
        return self._with(order_by=None if orderings is None else _all_of_type(orderings, ColumnOrdering, "orderings"))

    def nearest(
        self,
        column: str,
        q: object,
        k: int | None = None,
        metric: str | None = None,
        nprobes: int | None = None,
        minimum_nprobes: int | None = None,
        maximum_nprobes: int | None = None,
        refine_factor: int | None = None,
        use_index: bool = True,
        ef: int | None = None,
        query_parallelism: int | None = None,
        approx_mode: str = "normal",
        distance_range: tuple[float | None, float | None] | None = None,
        search_effort: float | None = None,
    ) -> Self:
        """Hand out the ``k`` rows whose vectors are nearest to ``q``, with ``_distance``, the nearest first.

        All vectors are looked at, so that the answer is exact; what tells an index how hard to try has no effect.
        """
        return self._with(
            nearest=NearestOptions(
                column=column,
                q=q,
                k=k,
                metric=metric,
                nprobes=nprobes,
                minimum_nprobes=minimum_nprobes,
                maximum_nprobes=maximum_nprobes,
                refine_factor=refine_factor,
                use_index=use_index,
                ef=ef,
                query_parallelism=query_parallelism,
                approx_mode=approx_mode,
                distance_range=distance_range,
                search_effort=search_effort,
            )
        )

    def prefilter(self, prefilter: bool) -> Self:
        """Whether the filter is applied before the nearest rows are looked for, or to what was found."""
        return self._with(prefilter=bool(prefilter))

    def batch_size(self, batch_size: int) -> Self:
        """The most rows of a batch."""
        return self._with(batch_size=operator.index(batch_size))

    def batch_size_bytes(self, batch_size_bytes: int) -> Self:
        """About the most bytes of a batch."""
        return self._with(batch_size_bytes=operator.index(batch_size_bytes))

    def strict_batch_size(self, strict_batch_size: bool = False) -> Self:
        """Whether all batches but the last have exactly as many rows as one may have at most."""
        return self._with(strict_batch_size=bool(strict_batch_size))

    def scan_in_order(self, scan_in_order: bool = True) -> Self:
        """Whether rows come in the order of the table."""
        return self._with(scan_in_order=bool(scan_in_order))

    def with_fragments(self, fragments: Iterable[object] | None) -> Self:
        """The fragments to read; None for all."""
        if fragments is None:
            return self._with(fragments=None)
        from lancelet.dataset.fragments.lance_fragment import LanceFragment

        found = _all_of_type(fragments, LanceFragment, "fragments")
        return self._with(fragments=tuple(item.fragment_id for item in found))

    def with_row_id(self, with_row_id: bool = True) -> Self:
        """Whether ``_rowid`` is handed out as well."""
        return self._with(with_row_id=bool(with_row_id))

    def with_row_address(self, with_row_address: bool = True) -> Self:
        """Whether ``_rowaddr`` is handed out as well."""
        return self._with(with_row_address=bool(with_row_address))

    def include_deleted_rows(self, flag: bool) -> Self:
        """Whether deleted rows that files still hold are handed out, their ``_rowid`` null."""
        return self._with(include_deleted_rows=bool(flag))

    def blob_handling(self, blob_handling: str | None) -> Self:
        """What stands for blobs: ``all_binary`` for their bytes, else descriptions of where they lie."""
        if blob_handling is not None and blob_handling not in _BLOB_HANDLING:
            raise InvalidInput(f"blob_handling is {blob_handling!r}, expected one of {', '.join(_BLOB_HANDLING)}")
        return self._with(blob_handling=blob_handling)

    def use_scalar_index(self, use_scalar_index: bool = True) -> Self:
        """Whether scalar indexes may be used."""
        return self._with(use_scalar_index=bool(use_scalar_index))

    def fast_search(self, flag: bool) -> Self:
        """Whether rows that an index does not cover are left out."""
        return self._with(fast_search=bool(flag))

    def with_index_segments(self, index_segments: Iterable[str | UUID] | None) -> Self:
        """The segments of an index to search: of vector indexes, which have not landed, so that none can be named."""
        if index_segments is None:
            return self._with(index_segments=None)
        if isinstance(index_segments, str | UUID):
            raise TypeError(f"index_segments must be an iterable of str or uuid.UUID, not a {type(index_segments)}")
        named = [str(item) for item in index_segments]
        raise Unsupported(f"index segments are given ({len(named)}), but vector indexes have not landed")

    def row_addr_prefilter(self, allowlist: bytes | None = None, blocklist: bytes | None = None) -> Self:
        """Row addresses that alone, or never, are handed out, as ``serialize_row_addrs`` makes them."""
        return self._with(row_addr_allowlist=allowlist, row_addr_blocklist=blocklist)

    def scan_stats_callback(self, callback: Callable[[ScanStatistics], None]) -> Self:
        """Who is told what the scan took, when it is through."""
        return self._with(scan_stats_callback=callback)

    def batch_readahead(self, nbatches: int | None = None) -> Self:
        """No effect: how much is read ahead follows from the memory budget."""
        return self._with(batch_readahead=_at_least(nbatches, 1, "batch_readahead"))

    def fragment_readahead(self, nfragments: int | None = None) -> Self:
        """No effect: how much is read ahead follows from the memory budget."""
        return self._with(fragment_readahead=_at_least(nfragments, 0, "fragment_readahead"))

    def io_buffer_size(self, io_buffer_size: int) -> Self:
        """No effect: how much is read ahead follows from the memory budget."""
        return self._with(io_buffer_size=operator.index(io_buffer_size))

    def late_materialization(self, late_materialization: bool | Sequence[str]) -> Self:
        """No effect: which columns are read after filtering follows from how many rows pass."""
        chosen = late_materialization if isinstance(late_materialization, bool) else tuple(late_materialization)
        return self._with(late_materialization=chosen)

    def use_stats(self, use_stats: bool = True) -> Self:
        """No effect: files of version 2 have no statistics."""
        return self._with(use_stats=bool(use_stats))

    def disable_scoring_autoprojection(self, disable: bool = True) -> Self:
        """Whether ``_distance`` is handed out only where it is among the columns."""
        return self._with(disable_scoring_autoprojection=bool(disable))

    def full_text_search(self, query: object, columns: list[str] | None = None) -> Self:
        """Not offered: text indexes have not landed."""
        raise _no_text_search()

    def to_scanner(self) -> LanceScanner:
        """The scan."""
        return LanceScanner(self.ds, ScanOptions(**self._given))  # type: ignore[arg-type]


def _no_text_search() -> Unsupported:
    return Unsupported("full text search: text indexes have not landed", hint="filter with LIKE, or contains()")


def _at_least(value: int | None, least: int, name: str) -> int | None:
    if value is None:
        return None
    number = operator.index(value)
    if number < least:
        raise InvalidInput(f"{name} is {number}, expected at least {least}")
    return number


def _all_of_type(items: Iterable[object], kind: type[_Item], what: str) -> tuple[_Item, ...]:
    found = tuple(items)
    for item in found:
        if not isinstance(item, kind):
            raise TypeError(f"{what} must be an iterable of {kind.__name__}. Got {type(item)} instead.")
    return found  # type: ignore[return-value]
