"""References: what a user may write for a version (a number, a tag, a branch, a moment), turned into a snapshot."""

from __future__ import annotations

from datetime import datetime

from lancelet.errors import InvalidInput, NotFound
from lancelet.storage import open_store
from lancelet.storage.store import Store
from lancelet.table.branches import MAIN, get_branch
from lancelet.table.paths import Opener, branch_store, main_store
from lancelet.table.snapshot import Snapshot, open_snapshot
from lancelet.table.tags import get_tag
from lancelet.table.versions import version_at

__all__ = ["Reference", "open_branch", "resolve_ref"]

#: A version's number (of the same branch); a tag; a branch (None or "main": the main one) and a version of it
#: (None: its newest); a moment.
Reference = int | str | tuple[str | None, int | None] | datetime


def resolve_ref(snapshot: Snapshot, reference: Reference, *, opener: Opener = open_store) -> Snapshot:
    """The version that a reference means to somebody who looks at ``snapshot``. NotFound if there is none.

    A number, and a moment, are of the snapshot's own branch; tags and branches are the table's.
    """
    options = snapshot.options
    if isinstance(reference, bool):
        raise InvalidInput(f"{reference} is no version", uri=snapshot.uri)
    if isinstance(reference, int):
        same = reference == snapshot.version
        return snapshot if same else open_snapshot(snapshot.store, version=reference, options=options)
    if isinstance(reference, datetime):
        version = version_at(snapshot.store, reference, options=options)
        return open_snapshot(snapshot.store, version=version, options=options)
    main = main_store(snapshot.store, snapshot.branch, opener=opener)
    if isinstance(reference, str):
        tag = get_tag(main, reference)
        return open_branch(main, tag.branch, tag.version, like=snapshot)
    match reference:
        case (None | str() as branch, None | int() as number):
            return open_branch(main, branch, number, like=snapshot)
    hint = "give a version, a tag, (branch, version) or a datetime"
    raise InvalidInput(f"{reference!r} refers to no version", uri=snapshot.uri, hint=hint)


def open_branch(main: Store, branch: str | None, version: int | None = None, *, like: Snapshot) -> Snapshot:
    """A version, the newest for None, of a branch of the table whose own folder ``main`` is."""
    name = None if branch == MAIN else branch
    store = branch_store(main, name)
    try:
        return open_snapshot(store, version=version, options=like.options)
    except NotFound:
        if name is not None:
            # Which of the two is missing, the branch or the version, is only asked once something is.
            get_branch(main, name)
        raise
