"""Places: in which store, and at which path of it, the files of a version lie: its own folder or another base path."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from uuid import UUID

from lancelet.errors import Corrupt, InvalidInput
from lancelet.format.fragments import DataFile, DeletionFile
from lancelet.format.indexes import IndexMetadata
from lancelet.format.manifest import Manifest
from lancelet.format.names import DATA, branch_folder, deletion_path, index_folder
from lancelet.storage import open_store
from lancelet.storage.folder import Folder, folder_of
from lancelet.storage.paths import LOCAL_SCHEMES, local_path, split_uri
from lancelet.storage.store import Store
from lancelet.table.snapshot import Snapshot

__all__ = ["Opener", "Places", "branch_store", "main_store", "same_place", "store_at"]

#: How stores elsewhere are opened: a caller's own, where they need credentials. A table's store may have a method
#: ``elsewhere`` for that, which then goes with it wherever the table is used.
Opener = Callable[[str], Store]


class Places:
    """Where the files of one version are. Stores of base paths are opened once, when a file in them is asked for.

    >>> from lancelet.format.fields import Schema
    >>> from lancelet.format.manifest import BasePath
    >>> from lancelet.storage.memory import MemoryStore
    >>> manifest = Manifest(Schema(()), base_paths=(BasePath(1, "memory://elsewhere"),))
    >>> places = Places(MemoryStore("memory://here"), manifest)
    >>> places.data_file(DataFile("x.lance", (0,)))[1], places.data_file(DataFile("x.lance", (0,), base_id=1))
    ('data/x.lance', (MemoryStore('memory://elsewhere'), 'x.lance'))
    """

    def __init__(self, store: Store, manifest: Manifest, *, opener: Opener = open_store) -> None:
        self._store = store
        self._manifest = manifest
        self._opener = opener
        self._opened: dict[int, Store] = {}
        #: What readers keep for as long as the places are in use, each under a key of its own.
        self.kept: dict[Hashable, object] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self._store, self._manifest, self._opener)

    @staticmethod
    def of(snapshot: Snapshot, *, opener: Opener = open_store) -> Places:
        """The places of a snapshot's files."""
        return Places(snapshot.store, snapshot.manifest, opener=opener)

    @property
    def manifest(self) -> Manifest:
        """What names the files."""
        return self._manifest

    def base(self, base_id: int | None) -> Store:
        """The store at a base path; the version's own for None."""
        if base_id is None:
            return self._store
        if base_id not in self._opened:
            self._opened[base_id] = store_at(self._manifest.base_path(base_id).path, self._store, opener=self._opener)
        return self._opened[base_id]

    def data_file(self, item: DataFile) -> tuple[Store, str]:
        """A data file's store and path."""
        return self.base(item.base_id), f"{DATA}/{item.path}" if self._is_root(item.base_id) else item.path

    def deletion_file(self, fragment_id: int, item: DeletionFile) -> tuple[Store, str]:
        """A deletion file's store and path. Corrupt where its base path is not the root of a table."""
        if not self._is_root(item.base_id):
            found = f"the deletion file of fragment {fragment_id} lies below base path {item.base_id}"
            raise Corrupt(f"{found}, which is not the root of a table", uri=self._store.uri, fragment=fragment_id)
        return self.base(item.base_id), deletion_path(fragment_id, item)

    def index(self, item: IndexMetadata) -> tuple[Store, str]:
        """The store of an index segment's files, and their folder in it."""
        folder = _index_folder(item.uuid, self._is_root(item.base_id))
        return self.base(item.base_id), folder

    def _is_root(self, base_id: int | None) -> bool:
        return base_id is None or self._manifest.base_path(base_id).is_dataset_root


def _again(store: Store, manifest: Manifest, opener: Opener) -> Places:
    return Places(store, manifest, opener=opener)


def _index_folder(uuid: UUID, is_root: bool) -> str:
    return index_folder(uuid) if is_root else str(uuid)


def store_at(uri: str, near: Store, *, opener: Opener = open_store) -> Store:
    """The store at a URI: ``near``, a folder of it, or a folder that it is in, where the URI says so; else opened.

    >>> from lancelet.storage.memory import MemoryStore
    >>> near = MemoryStore("memory://a")
    >>> store_at("memory://a/tree/b", near).uri, store_at("memory://a/", near) is near
    ('memory://a/tree/b', True)
    """
    wanted = same_place(uri)
    known = near
    while True:
        place = same_place(known.uri)
        if wanted == place:
            return known
        if wanted.startswith(f"{place}/"):
            return folder_of(known, wanted[len(place) + 1 :])
        if not isinstance(known, Folder):
            return _opener(opener, known)(uri)
        known = known.inner


def _opener(opener: Opener, near: Store) -> Opener:
    """How a store elsewhere is opened: as a caller says, else as the store at hand does that knows of credentials."""
    return getattr(near, "elsewhere", opener) if opener is open_store else opener


def same_place(uri: str) -> str:
    """A URI in the one form that tells whether two name the same place: local ones as absolute paths.

    >>> same_place("file:///tmp/a/"), same_place("/tmp//a"), same_place("S3://bucket/a/")
    ('/tmp/a', '/tmp/a', 's3://bucket/a')
    """
    scheme, rest = split_uri(uri)
    if scheme in LOCAL_SCHEMES:
        return local_path(uri)
    return f"{scheme}://{rest.rstrip('/')}"


def main_store(store: Store, branch: str | None, *, opener: Opener = open_store) -> Store:
    """The folder of the table that a branch belongs to, given the branch's own; what is given for the main branch."""
    if branch is None:
        return store
    folder = branch_folder(branch)
    if isinstance(store, Folder) and store.folder == folder:
        return store.inner
    if isinstance(store, Folder) and store.folder.endswith(f"/{folder}"):
        return folder_of(store.inner, store.folder.removesuffix(f"/{folder}"))
    place = store.uri.rstrip("/")
    if not place.endswith(f"/{folder}"):
        raise InvalidInput(f"branch {branch!r} is not at {folder!r} of its table", uri=store.uri)
    return _opener(opener, store)(place.removesuffix(f"/{folder}"))


def branch_store(main: Store, branch: str | None) -> Store:
    """The folder of a branch, given that of the table.

    >>> from lancelet.storage.memory import MemoryStore
    >>> branch_store(MemoryStore("memory://a"), "x/y").uri
    'memory://a/tree/x/y'
    """
    return main if branch is None else folder_of(main, branch_folder(branch))
