"""Clones: a version as the first of another table, its files left where they are (shallow) or copied (deep)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from time import time_ns

from lancelet.errors import AlreadyExists, Corrupt, InvalidInput
from lancelet.events import span
from lancelet.format.flags import check_writable, flags_for
from lancelet.format.fragment_list import Fragments
from lancelet.format.fragments import Fragment
from lancelet.format.indexes import IndexMetadata
from lancelet.format.manifest import BasePath, Manifest
from lancelet.format.names import (
    DATA,
    DETACHED,
    TRANSACTIONS,
    VERSIONS,
    deletion_path,
    index_folder,
    manifest_path,
    parse_manifest_name,
    transaction_name,
)
from lancelet.format.operations import Clone
from lancelet.format.transaction import Transaction, write_transaction
from lancelet.storage import open_store
from lancelet.storage.folder import Folder
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Store
from lancelet.table.build import Built
from lancelet.table.commit import kept_dictionaries, publish
from lancelet.table.parallel import in_order
from lancelet.table.paths import Opener, Places
from lancelet.table.snapshot import Snapshot, read_snapshot

__all__ = [
    "Copy",
    "DeepClonePlan",
    "commit_deep_clone",
    "deep_clone",
    "plan_deep_clone",
    "refuse_table",
    "run_copy",
    "shallow_clone",
]

#: Bytes that a copy from store to store holds at once.
_PIECE = 8 * 2**20


def shallow_clone(source: Snapshot, target: Store, *, branch: str | None = None) -> Snapshot:
    """Make ``source`` the first version of the table (or branch) in ``target``, with its number, all files shared.

    AlreadyExists if there is a table. The clone breaks when the source's files are cleaned up: only branches are
    known to the table that they come from.
    """
    manifest = source.manifest
    base = BasePath(_free_base_id(manifest.base_paths), source.uri, is_dataset_root=True, name=source.branch)
    cloned = replace(
        manifest,
        fragments=Fragments(_based(item, base.id) for item in manifest.fragments),
        base_paths=(*manifest.base_paths, base),
    )
    indexes = tuple(item if item.base_id is not None else replace(item, base_id=base.id) for item in source.indexes())
    operation = Clone(True, source.version, source.uri, source.branch, branch)
    return _publish(source, target, cloned, indexes, operation)


@dataclass(frozen=True, slots=True)
class Copy:
    """One file to copy, from a base path of the source (None: its own folder) to the target."""

    base_id: int | None
    source: str
    target: str
    size: int


@dataclass(frozen=True, slots=True)
class DeepClonePlan:
    """What a deep clone copies. Copies may be made by anybody in any order, and again; then the clone is committed."""

    source: Snapshot
    copies: tuple[Copy, ...]

    @property
    def total_bytes(self) -> int:
        """Bytes to copy."""
        return sum(item.size for item in self.copies)

    def __str__(self) -> str:
        of = f"version {self.source.version} of {self.source.uri}"
        return f"deep clone of {of}: {len(self.copies)} files, {self.total_bytes} bytes"


def plan_deep_clone(source: Snapshot, *, opener: Opener = open_store) -> DeepClonePlan:
    """Which files a version needs, wherever they lie, with their sizes. Corrupt where one is missing.

    One listing of each folder of data, deletions and indexes that has any of them.
    """
    places = Places.of(source, opener=opener)
    wanted: dict[int | None, dict[str, str]] = {}
    for item in source.manifest.fragments:
        for file in item.files:
            wanted.setdefault(file.base_id, {})[places.data_file(file)[1]] = f"{DATA}/{file.path}"
        if item.deletion_file is not None:
            path = places.deletion_file(item.id, item.deletion_file)[1]
            wanted.setdefault(item.deletion_file.base_id, {})[path] = deletion_path(item.id, item.deletion_file)
    copies = [copy for base_id, files in wanted.items() for copy in _listed(places.base(base_id), base_id, files)]
    for index in source.indexes():
        store, folder = places.index(index)
        names = ((entry, entry.path[len(folder) + 1 :]) for entry in store.list_from(f"{folder}/"))
        target = index_folder(index.uuid)
        copies += [Copy(index.base_id, entry.path, f"{target}/{name}", entry.size) for entry, name in names]
    _refuse_doubles(source, copies)
    return DeepClonePlan(source, tuple(copies))


def run_copy(plan: DeepClonePlan, copy: Copy, target: Store, *, opener: Opener = open_store) -> None:
    """Make one copy; a file that is there already is written again."""
    source = Places.of(plan.source, opener=opener).base(copy.base_id)
    here, from_folder = _outermost(source)
    there, to_folder = _outermost(target)
    if here is there:
        here.copy(from_folder + copy.source, to_folder + copy.target)
        return
    with target.writer(copy.target) as writer:
        for start in range(0, copy.size, _PIECE):
            writer.write(source.read(copy.source, [(start, min(_PIECE, copy.size - start))])[0])


def deep_clone(source: Snapshot, target: Store, *, opener: Opener = open_store) -> Snapshot:
    """Make a copy of ``source``, with all its files, the first version of the table in ``target``, with its number.

    AlreadyExists if there is a table. What was copied before a failure is found and used again by nobody; cleanup of
    the table that is made there in the end removes it.
    """
    refuse_table(target)
    plan = plan_deep_clone(source, opener=opener)
    with span("clone.copy", total=plan.total_bytes, uri=target.uri) as work:

        def run(copy: Copy) -> int:
            run_copy(plan, copy, target, opener=opener)
            return copy.size

        for size in in_order(run, plan.copies, concurrency=min(16, source.options.io_concurrency)):
            work.advance(size)
    return commit_deep_clone(source, target)


def commit_deep_clone(source: Snapshot, target: Store) -> Snapshot:
    """Make a version, its files all copied, the first of the table in ``target``. AlreadyExists if there is one."""
    manifest = source.manifest
    cloned = replace(manifest, fragments=Fragments(_based(item, None) for item in manifest.fragments), base_paths=())
    indexes = tuple(replace(item, base_id=None) for item in source.indexes())
    return _publish(source, target, cloned, indexes, Clone(False, source.version, source.uri, source.branch, None))


def _publish(
    source: Snapshot, target: Store, cloned: Manifest, indexes: tuple[IndexMetadata, ...], operation: Clone
) -> Snapshot:
    """Write the first version: its transaction, then its manifest, which is what makes the table."""
    if cloned.version & DETACHED:
        raise InvalidInput("a detached version cannot be cloned", uri=source.uri, version=cloned.version)
    check_writable(source.manifest)
    refuse_table(target)
    transaction = Transaction(source.version, operation)
    name = transaction_name(source.version, transaction.uuid)
    made = replace(cloned, branch=operation.branch_name, timestamp=time_ns(), transaction_file=name, tag="")
    reader, writer = flags_for(made, indexes=indexes)
    made = replace(made, reader_flags=reader, writer_flags=writer)
    built = Built(made, indexes, kept_dictionaries(source, made), write_transaction(transaction))
    target.put(f"{TRANSACTIONS}/{name}", built.transaction)
    if not publish(target, built, transaction, scheme=source.scheme):
        raise AlreadyExists("somebody else made a table here first", uri=target.uri)
    path = manifest_path(made.version, source.scheme)
    return read_snapshot(target, path, source.scheme, options=source.options)


def refuse_table(target: Store) -> None:
    """Raise AlreadyExists if there is a table."""
    for entry in target.list_from(f"{VERSIONS}/"):
        if parse_manifest_name(entry.path) is not None:
            raise AlreadyExists("there is a table already", uri=target.uri)


def _based(item: Fragment, base_id: int | None) -> Fragment:
    """A fragment whose files say that they lie below a base path; for None, all of them in the table's own folder."""
    deleted = item.deletion_file
    if deleted is not None and (deleted.base_id is None or base_id is None):
        deleted = replace(deleted, base_id=base_id)
    files = (file if None not in (file.base_id, base_id) else replace(file, base_id=base_id) for file in item.files)
    return replace(item, files=tuple(files), deletion_file=deleted)


def _free_base_id(bases: Iterable[BasePath]) -> int:
    return max((item.id for item in bases), default=-1) + 1


def _listed(store: Store, base_id: int | None, wanted: dict[str, str]) -> Iterator[Copy]:
    """The files wanted of one base path, and those in folders named like a data file: the blobs that belong to it."""
    owners = {str(PurePosixPath(path).with_suffix("")): target for path, target in wanted.items() if _is_data(path)}
    missing = set(wanted)
    for folder in {path.partition("/")[0] + "/" if "/" in path else "" for path in wanted}:
        for entry in store.list_from(folder):
            if entry.path in missing:
                missing.discard(entry.path)
                yield Copy(base_id, entry.path, wanted[entry.path], entry.size)
            elif (owner := owners.get(entry.path.rpartition("/")[0])) is not None:
                name = entry.path.rpartition("/")[2]
                target = f"{PurePosixPath(owner).with_suffix('')}/{name}"
                yield Copy(base_id, entry.path, target, entry.size)
    if missing:
        path = min(missing)
        raise Corrupt(f"{len(missing)} files of the version are missing, {path!r} first", uri=join_uri(store.uri, path))


def _is_data(path: str) -> bool:
    return path.endswith(".lance")


def _refuse_doubles(source: Snapshot, copies: Iterable[Copy]) -> None:
    seen: dict[str, Copy] = {}
    for copy in copies:
        other = seen.setdefault(copy.target, copy)
        if other is not copy:
            places = f"base paths {other.base_id} and {copy.base_id}"
            raise InvalidInput(
                f"files named {copy.target!r} lie below {places}: one would hide the other", uri=source.uri
            )


def _outermost(store: Store) -> tuple[Store, str]:
    """The store that a folder is in, and the folder with a slash; so copies within one store stay within it."""
    prefix = ""
    while isinstance(store, Folder):
        prefix, store = f"{store.folder}/{prefix}", store.inner
    return store, prefix
