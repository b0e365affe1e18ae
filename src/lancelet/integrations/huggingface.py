"""Hugging Face's ``datasets``: tables as datasets of it. The other way they are written like all other rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import datasets
import pyarrow as pa

from lancelet.dataset.lance_dataset import LanceDataset

if TYPE_CHECKING:
    from lancelet.dataset.scan_options import Columns, Condition

__all__ = ["to_hf_dataset", "to_hf_iterable_dataset"]


def to_hf_dataset(
    dataset: LanceDataset, columns: Columns | None = None, filter: Condition | None = None
) -> datasets.Dataset:
    """The rows of a scan in memory, as a ``datasets.Dataset`` with the features that it was written with.

    >>> import lancelet
    >>> table = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://hugging-face")
    >>> to_hf_dataset(table, filter="x > 1")["x"][:]
    [2, 3]
    """
    return datasets.Dataset(_plain(dataset.to_table(columns=columns, filter=filter, blob_handling="all_binary")))


def to_hf_iterable_dataset(
    dataset: LanceDataset,
    columns: Columns | None = None,
    filter: Condition | None = None,
    *,
    batch_size: int = 1024,
) -> datasets.IterableDataset:
    """The rows of a scan as they are read, as a ``datasets.IterableDataset`` with a shard for each fragment.

    >>> import lancelet
    >>> table = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://hugging-face-stream", max_rows_per_file=2)
    >>> stream = to_hf_iterable_dataset(table, ["x"])
    >>> stream.num_shards, list(stream)
    (2, [{'x': 1}, {'x': 2}, {'x': 3}])
    """
    scanner = dataset.scanner(columns=columns, blob_handling="all_binary")
    features = datasets.Features.from_arrow_schema(_plain(scanner.projected_schema.empty_table()).schema)
    fragments = [fragment.fragment_id for fragment in dataset.get_fragments()]
    if not fragments:
        return datasets.Dataset(_plain(scanner.to_table())).to_iterable_dataset()
    options = {"columns": columns, "filter": filter, "batch_size": batch_size}
    return datasets.IterableDataset.from_generator(
        _rows, features=features, gen_kwargs={"dataset": dataset, "options": options, "fragments": fragments}
    )


def _rows(dataset: LanceDataset, options: dict[str, Any], fragments: Sequence[int]) -> Iterator[dict[str, Any]]:
    chosen = [dataset.get_fragment(number) for number in fragments]
    for batch in dataset.scanner(**options, fragments=chosen, blob_handling="all_binary").to_batches():
        yield from batch.to_pylist()


def _plain(table: pa.Table) -> pa.Table:
    """The table without types that its features could not name: what Arrow stores of them."""
    fields = [
        field.with_type(field.type.storage_type) if isinstance(field.type, pa.BaseExtensionType) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields, table.schema.metadata))
