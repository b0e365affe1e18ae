"""Compaction by lancelet against pylance: many small fragments, deleted rows, with indexes and by copies of pages.

Each run works on a copy of a table that pylance wrote. What is compared are the rows. ``--fresh`` shows peak memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from bench.changes import ROWS, Change, State, case, made, rows, theirs
from bench.harness import Case

__all__ = ["cases"]


def cases() -> Iterator[Case[State]]:
    """All kinds of compaction."""
    yield both("100 fragments", fragments)
    yield both("half-deleted", halved)
    yield both("100 fragments, copied", fragments, compaction_mode="force_binary_copy")
    yield both("100 fragments, indexed", indexed)
    yield both("100 fragments, indexed, put off", indexed, defer_index_remap=True)


def both(name: str, table: Callable[[], Path], **options: Any) -> Case[State]:
    """One compaction by both."""
    ours: Change = partial(_ours, options)
    return case(name, table, ours, lambda path: theirs(path).optimize.compact_files(**options))


def _ours(options: dict[str, Any], path: str) -> object:
    import lancelet

    return lancelet.dataset(path).optimize.compact_files(**options)


@lru_cache
def fragments() -> Path:
    """A hundred fragments."""
    import lance

    return made("fragments", lambda path: lance.write_dataset(rows(), path, max_rows_per_file=ROWS // 100) and None)


@lru_cache
def halved() -> Path:
    """Ten fragments with every other row deleted."""
    import lance

    def make(path: str) -> None:
        lance.write_dataset(rows(), path, max_rows_per_file=ROWS // 10).delete("k % 2 = 1")

    return made("halved", make)


@lru_cache
def indexed() -> Path:
    """A hundred fragments, two of whose columns are indexed."""
    import lance

    def make(path: str) -> None:
        dataset = lance.write_dataset(rows(), path, max_rows_per_file=ROWS // 100)
        dataset.create_scalar_index("k", "BTREE")
        dataset.create_scalar_index("r", "ZONEMAP")

    return made("indexed", make)
