"""Destinations: at which base paths of a table new data files are put, by the names that users give them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lancelet.errors import InvalidInput
from lancelet.format.manifest import BasePath
from lancelet.ops.data_files import Destination
from lancelet.storage.store import Store
from lancelet.table.paths import same_place, store_at

__all__ = ["base_uris", "chosen_bases", "destinations"]


def chosen_bases(
    bases: Sequence[BasePath],
    names: Sequence[str] | None = None,
    every: bool | None = None,
    *,
    own: str | None = None,
) -> tuple[int | None, ...]:
    """The ids of the base paths to write to in turn; None stands for the table's own folder, whose URI is ``own``.

    ``every`` asks for all base paths: True with the table's own folder, False without it.

    >>> known = [BasePath(1, "/a", name="fast"), BasePath(2, "/b")]
    >>> chosen_bases(known, ["/b", "fast"]), chosen_bases(known, every=True), chosen_bases(known)
    ((2, 1), (None, 1, 2), (None,))
    """
    if names is not None and every is not None:
        raise InvalidInput("target_bases and target_all_bases are both given", hint="give one of them")
    if every is not None:
        found = tuple(item.id for item in sorted(bases, key=lambda item: item.id))
        if not every and not found:
            raise InvalidInput("the table has no base path to write to", hint="add one, or include the table's folder")
        return (None, *found) if every else found
    if names is None:
        return (None,)
    if not names:
        raise InvalidInput("target_bases is empty", hint="name a base path, or leave it out")
    return tuple(_named(bases, name, own) for name in names)


def _named(bases: Sequence[BasePath], name: str, own: str | None) -> int | None:
    for item in bases:
        if item.name == name:
            return item.id
    place = same_place(name)
    for item in bases:
        if same_place(item.path) == place:
            return item.id
    if own is not None and same_place(own) == place:
        return None
    known = ", ".join(sorted(item.name or item.path for item in bases)) or "none"
    raise InvalidInput(f"{name!r} is no base path of the table", hint=f"there are: {known}")


def base_uris(bases: Iterable[BasePath]) -> dict[int, str]:
    """Where blobs may lie outside the table: the base paths that are no tables themselves, by id."""
    return {item.id: item.path for item in bases if not item.is_dataset_root}


def destinations(store: Store, bases: Iterable[BasePath], targets: Iterable[int | None]) -> tuple[Destination, ...]:
    """The places that ids of base paths stand for, each opened."""
    known = {item.id: item for item in bases}
    found = []
    for number in targets:
        if number is None:
            found.append(Destination(store))
        else:
            base = known[number]
            folder = Destination(store).folder if base.is_dataset_root else ""
            found.append(Destination(store_at(base.path, store), folder, number))
    return tuple(found)
