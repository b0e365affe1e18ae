"""Branches: lines of versions beside the main one, each a shallow clone in a folder of the table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from time import time

from lancelet.config import Options, default_options
from lancelet.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from lancelet.format.names import (
    BRANCHES,
    DATA,
    DELETIONS,
    INDEXES,
    TRANSACTIONS,
    VERSIONS,
    branch_folder,
    branch_of_path,
    branch_path,
)
from lancelet.format.refs import Branch, BranchPoint, parse_branch, write_branch
from lancelet.storage import open_store
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Store
from lancelet.table.clone import shallow_clone
from lancelet.table.parallel import in_order
from lancelet.table.paths import Opener, branch_store, main_store
from lancelet.table.snapshot import Snapshot
from lancelet.table.tags import list_tags

__all__ = [
    "MAIN",
    "branch_files",
    "check_branch_name",
    "create_branch",
    "delete_branch",
    "get_branch",
    "list_branches",
    "references_to",
    "set_branch_metadata",
]

#: What the main branch is called where a name is asked for. No other may be called so.
MAIN = "main"
_SEGMENT = re.compile(r"[\w.-]+")
_FOLDERS = frozenset({VERSIONS, TRANSACTIONS, DELETIONS, INDEXES, DATA})


def check_branch_name(name: str) -> str:
    """``name`` itself if a branch may be called so, else InvalidInput with what is wrong.

    >>> check_branch_name("feature/x.1")
    'feature/x.1'
    """
    segments = name.split("/")
    wrong = None
    if not name:
        wrong = "is empty"
    elif name == MAIN:
        wrong = "is the name of the default branch"
    elif "" in segments:
        wrong = "starts or ends with a slash, or has two in a row"
    elif ".." in name or "\\" in name:
        wrong = "has '..' or a backslash"
    elif "." in segments:
        wrong = "has '.' between slashes"
    elif name.endswith(".lock"):
        wrong = "ends with '.lock'"
    elif odd := next((item for item in segments if not _SEGMENT.fullmatch(item)), None):
        wrong = f"has {odd!r}, where only letters, digits, '.', '-' and '_' are allowed"
    elif taken := _FOLDERS.intersection(segments[1:]):
        wrong = f"has {min(taken)!r}, a folder that belongs to the branch above"
    if wrong:
        raise InvalidInput(f"{name!r} cannot name a branch: it {wrong}")
    return name


def list_branches(main: Store, *, options: Options | None = None) -> dict[str, Branch]:
    """All branches but the main one of the table whose own folder ``main`` is, by name."""
    paths = [entry.path for entry in main.list_from(f"{BRANCHES}/") if _is_branch(entry.path)]

    def read(path: str) -> Branch | None:
        try:
            return parse_branch(main.read_all(path), uri=join_uri(main.uri, path))
        except NotFound:
            return None

    found = in_order(read, paths, concurrency=(options or default_options()).io_concurrency)
    return {branch_of_path(path): item for path, item in zip(paths, found, strict=True) if item is not None}


def get_branch(main: Store, name: str) -> Branch:
    """A branch. NotFound if there is none of the name."""
    path = branch_path(name)
    try:
        return parse_branch(main.read_all(path), uri=join_uri(main.uri, path))
    except NotFound:
        raise NotFound(f"there is no branch {name!r}", uri=main.uri) from None


def create_branch(
    source: Snapshot, name: str, *, metadata: Mapping[str, str] | None = None, opener: Opener = open_store
) -> Snapshot:
    """Start a branch at a version of the main or another branch; returns its first version.

    AlreadyExists if there is such a branch. The version it starts from is kept from cleanup as long as it is there.
    """
    check_branch_name(name)
    main = main_store(source.store, source.branch, opener=opener)
    parent = None if source.branch is None else get_branch(main, source.branch)
    described = Branch(
        parent_version=source.version,
        parent_branch=source.branch,
        points=(*(() if parent is None else parent.points), BranchPoint(source.version)),
        created_at=int(time()),
        manifest_size=len(source.file.data),
        metadata=dict(metadata or {}),
    )
    path = branch_path(name)
    if any(entry.path == path for entry in main.list_from(path)):
        raise AlreadyExists(f"there is a branch {name!r} already", uri=main.uri)
    try:
        first = shallow_clone(source, branch_store(main, name), branch=name)
    except AlreadyExists:
        hint = "if no branch of the name is listed, its making was broken off: delete it with force"
        found = f"there are versions at {branch_folder(name)!r} already"
        raise AlreadyExists(found, uri=main.uri, hint=hint) from None
    try:
        main.put_if_absent(path, write_branch(described))
    except AlreadyExists:
        raise AlreadyExists(f"there is a branch {name!r} already", uri=main.uri) from None
    _check_still_there(source, main, name)
    return first


def set_branch_metadata(main: Store, name: str, metadata: Mapping[str, str]) -> Branch:
    """Replace all metadata of a branch."""
    changed = replace(get_branch(main, name), metadata=dict(metadata))
    main.put(branch_path(name), write_branch(changed))
    return changed


def delete_branch(main: Store, name: str, *, force: bool = False, options: Options | None = None) -> None:
    """Remove a branch with all its versions and files; branches in folders of its own folder are left alone.

    Conflict where other branches or tags refer to it. ``force`` also removes what a branch left behind that is not
    listed, because its making or removal was broken off; it does not overrule those references.
    """
    if not name or name == MAIN:
        raise InvalidInput(f"{name!r} is the default branch, which cannot be deleted", uri=main.uri)
    branches = list_branches(main, options=options)
    if name not in branches and not force:
        raise NotFound(f"there is no branch {name!r}", uri=main.uri)
    if name not in branches:
        check_branch_name(name)
    referring = references_to(main, name, branches, options=options)
    if referring:
        found = ", ".join(referring)
        raise Conflict(f"branch {name!r} is referred to by {found}", uri=main.uri, hint="delete those first")
    # The name goes first: whoever looks in between finds no branch, rather than one with files missing.
    main.delete([branch_path(name)])
    main.delete(branch_files(main, name, branches))


def references_to(
    main: Store, name: str, branches: Mapping[str, Branch], *, options: Options | None = None
) -> list[str]:
    """What keeps a branch from being deleted, in words: branches made from it and tags on it."""
    tags = list_tags(main, options=options).items()
    found = [f"branch {other!r} (version {item.parent_version})" for other, item in branches.items()
             if item.parent_branch == name]  # fmt: skip
    return found + [f"tag {tag!r} (version {item.version})" for tag, item in tags if item.branch == name]


def branch_files(main: Store, name: str, branches: Iterable[str]) -> Iterator[str]:
    """The objects in a branch's folder that are not another branch's."""
    folder = f"{branch_folder(name)}/"
    others = tuple(f"{place}/" for other in branches if (place := branch_folder(other)).startswith(folder))
    for entry in main.list_from(folder):
        if not entry.path.startswith(others):
            yield entry.path


def _check_still_there(source: Snapshot, main: Store, name: str) -> None:
    """From now on cleanup sees the branch; what it removed before that is looked for here."""
    try:
        source.store.size(source.path)
    except NotFound:
        delete_branch(main, name, force=True, options=source.options)
        found = f"version {source.version} was cleaned up while branch {name!r} was made from it"
        raise Conflict(found, uri=source.uri, version=source.version, retryable=False) from None


def _is_branch(path: str) -> bool:
    return path.endswith(".json") and path.count("/") == BRANCHES.count("/") + 1
