"""Rebasing: a transaction worked out from an old version, made to fit a newer one that it does not conflict with.

Fragments are numbered, and rows given ids, when the manifest is built; what is left to do here is to merge deletions:
where both took other rows from one fragment, a new deletion file takes the place of both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import uuid4

import numpy as np

from lancelet.format.fragments import DeletionFile, Fragment
from lancelet.format.names import deletion_path
from lancelet.format.operations import Delete, Update
from lancelet.format.transaction import Transaction
from lancelet.rows.deletion_files import write_deletions
from lancelet.rows.deletions import DeletionVector, union
from lancelet.table.clashes import Clash, retry
from lancelet.table.conflicts import Ours
from lancelet.table.deletions import deletions_of
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["Rebased", "rebase", "to_merge"]


@dataclass(frozen=True, slots=True)
class Rebased:
    """A transaction that fits the newest version, or why there is none."""

    transaction: Transaction
    clash: Clash | None = None


def to_merge(ours: Ours, current: Snapshot) -> list[tuple[Fragment, Fragment]]:
    """Fragments whose rows both sides deleted: as they are now, and as ours leaves them. Pure.

    The conflict rules have seen to it that nothing but deletions differs.
    """
    if not isinstance(ours.operation, Delete | Update) or ours.affected_rows is None:
        return []
    fragments = current.manifest.fragments
    pairs = []
    for own in ours.operation.updated_fragments:
        place, read = fragments.place_of(own.id), ours.read_fragments.get(own.id)
        if place is not None and read is not None and own.id in ours.affected_rows:
            now = fragments[place]
            if now.deletion_file != read.deletion_file:
                pairs.append((now, own))
    return pairs


def rebase(ours: Ours, transaction: Transaction, current: Snapshot) -> Rebased:
    """The transaction on top of ``current``; writes deletion files where deletions are to be merged."""
    pairs = to_merge(ours, current)
    operation = ours.operation
    if pairs and isinstance(operation, Delete | Update) and ours.affected_rows is not None:
        places = Places.of(current)
        merged: dict[int, Fragment] = {}
        for now, own in pairs:
            there = deletions_of(places, now)
            wanted = DeletionVector(ours.affected_rows[own.id])
            both = np.intersect1d(there.rows, wanted.rows)
            if len(both):
                text = ", ".join(map(str, both[:5].tolist()))
                return Rebased(transaction, retry(f"rows {text} of fragment {own.id} were changed by both"))
            merged[own.id] = _with_deletions(current, now, union([there, wanted]))
        operation = replace(
            operation,
            updated_fragments=tuple(merged.get(item.id, item) for item in operation.updated_fragments),
        )
    return Rebased(replace(transaction, operation=operation, read_version=current.version))


def _with_deletions(current: Snapshot, fragment: Fragment, deleted: DeletionVector) -> Fragment:
    if len(deleted) == fragment.physical_rows:
        # Nothing is left: the fragment leaves the manifest, and needs no file to say so.
        file = fragment.deletion_file
        kind = write_deletions(DeletionVector())[0] if file is None else file.kind
        return replace(fragment, deletion_file=DeletionFile(kind, current.version, 0, len(deleted)))
    kind, data = write_deletions(deleted)
    # Numbers of deletion files are random, so that writers at one version do not meet.
    written = DeletionFile(kind, current.version, uuid4().int >> 64, len(deleted))
    current.store.put(deletion_path(fragment.id, written), data)
    return replace(fragment, deletion_file=written)
