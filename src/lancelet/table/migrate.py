"""Migration of manifest names from V1 to V2, by which the newest version is the first of a listing."""

from __future__ import annotations

from lancelet.config import Options, default_options
from lancelet.errors import Conflict
from lancelet.events import span
from lancelet.format.names import NamingScheme, manifest_path
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Store
from lancelet.table.parallel import in_order
from lancelet.table.snapshot import FoundManifest, find_manifests

__all__ = ["migrate_manifest_names"]


def migrate_manifest_names(store: Store, *, options: Options | None = None) -> int:
    """Give every manifest its V2 name and return how many had none. Once more does nothing; broken off, it goes on.

    Nobody may write to the table meanwhile: a writer that knows the V1 names could make a version twice. Until it is
    done, opening the newest version is refused, because both kinds of name stand side by side.
    """
    moved = 0
    with span("migrate.names", uri=store.uri) as work:
        while True:
            found = list(find_manifests(store))
            old = [item for item in found if item.scheme is NamingScheme.V1]
            if not old:
                return moved
            new = {item.version: item for item in found if item.scheme is NamingScheme.V2}
            _copy_all(store, old, new, concurrency=(options or default_options()).io_concurrency)
            # Only when every version has its new name does the first old one go.
            store.delete([item.path for item in old])
            moved += len(old)
            work.advance(len(old))


def _copy_all(store: Store, old: list[FoundManifest], new: dict[int, FoundManifest], *, concurrency: int) -> None:
    def copy(item: FoundManifest) -> None:
        there = new.get(item.version)
        if there is None:
            store.copy(item.path, manifest_path(item.version, NamingScheme.V2))
        elif bytes(store.read_all(there.path)) != bytes(store.read_all(item.path)):
            found = f"version {item.version} was made twice, once by each kind of name"
            raise Conflict(found, uri=join_uri(store.uri, there.path), version=item.version)

    for _ in in_order(copy, old, concurrency=concurrency):
        pass
