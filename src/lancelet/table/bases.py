"""Base paths added to a table: places for its files besides its own folder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lancelet.errors import InvalidInput
from lancelet.format.manifest import BasePath
from lancelet.format.operations import UpdateBases
from lancelet.format.transaction import COMMIT_MESSAGE, Transaction
from lancelet.table.paths import same_place
from lancelet.table.snapshot import Snapshot

__all__ = ["add_bases_transaction", "find_base"]


def add_bases_transaction(snapshot: Snapshot, bases: Iterable[BasePath], *, message: str | None = None) -> Transaction:
    """The transaction that adds base paths; their ids are given when it is committed.

    InvalidInput where a name or a place is taken, by the table's own folder too: a file would have two names.
    """
    new = tuple(bases)
    if not new:
        raise InvalidInput("no base path is given to add", uri=snapshot.uri)
    names = {item.name for item in snapshot.manifest.base_paths if item.name is not None}
    places = {same_place(item.path) for item in snapshot.manifest.base_paths} | {same_place(snapshot.uri)}
    for item in new:
        place = same_place(item.path)
        if item.name in names:
            raise InvalidInput(f"there is a base path named {item.name!r} already", uri=snapshot.uri)
        if place in places:
            raise InvalidInput(f"{item.path!r} is a base path, or the table's own folder, already", uri=snapshot.uri)
        if item.id:
            raise InvalidInput(f"base path {item.path!r} has id {item.id}, expected 0: ids are given at the commit")
        places.add(place)
        if item.name is not None:
            names.add(item.name)
    properties = {} if message is None else {COMMIT_MESSAGE: message}
    operation = UpdateBases(tuple(replace(item, path=_stored(item.path)) for item in new))
    return Transaction(snapshot.version, operation, properties=properties)


def find_base(snapshot: Snapshot, wanted: str) -> BasePath:
    """The base path that is called, or that lies, as a user says. InvalidInput with what there is, if none does."""
    bases = snapshot.manifest.base_paths
    named = [item for item in bases if item.name == wanted]
    if not named:
        place = same_place(wanted)
        named = [item for item in bases if same_place(item.path) == place]
    if len(named) == 1:
        return named[0]
    known = ", ".join(sorted(item.name or item.path for item in bases)) or "none"
    raise InvalidInput(f"{wanted!r} is no base path of the table, which has {known}", uri=snapshot.uri)


def _stored(path: str) -> str:
    """The path as it means the same to whoever reads it: a relative one would be another place from another folder."""
    place = same_place(path)
    return place if place.startswith("/") else path
