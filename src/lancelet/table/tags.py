"""Tags: names for versions, kept in the table's own folder, whatever branch the versions are of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from time import gmtime, strftime, time_ns
from urllib.parse import quote, unquote

from lancelet.config import Options, default_options
from lancelet.errors import AlreadyExists, InvalidInput, NotFound
from lancelet.format.names import TAGS, tag_path
from lancelet.format.refs import Tag, parse_tag, write_tag
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Store
from lancelet.table.parallel import in_order
from lancelet.table.paths import branch_store
from lancelet.table.versions import find_version

__all__ = [
    "check_tag_name",
    "create_tag",
    "delete_tag",
    "get_tag",
    "list_tags",
    "move_tag",
    "now_text",
    "set_tag_metadata",
]

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def check_tag_name(name: str) -> str:
    """``name`` itself if a tag may be called so, else InvalidInput with what is wrong.

    >>> check_tag_name("v1.0")
    'v1.0'
    """
    wrong = None
    if not name:
        wrong = "is empty"
    elif not _NAME.fullmatch(name):
        wrong = "has letters other than a-z, A-Z, 0-9, '.', '-' and '_'"
    elif name.startswith(".") or name.endswith("."):
        wrong = "starts or ends with a dot"
    elif ".." in name:
        wrong = "has two dots in a row"
    elif name.endswith(".lock"):
        wrong = "ends with '.lock'"
    if wrong:
        raise InvalidInput(f"{name!r} cannot name a tag: it {wrong}")
    return name


def list_tags(main: Store, *, options: Options | None = None) -> dict[str, Tag]:
    """All tags of the table whose own folder ``main`` is, by name. One listing, and one read each."""
    entries = [entry for entry in main.list_from(f"{TAGS}/") if _is_tag(entry.path)]

    def read(path: str) -> Tag | None:
        try:
            return parse_tag(main.read_all(path), uri=join_uri(main.uri, path))
        except NotFound:
            return None

    concurrency = (options or default_options()).io_concurrency
    found = in_order(read, [entry.path for entry in entries], concurrency=concurrency)
    return {_name(entry.path): tag for entry, tag in zip(entries, found, strict=True) if tag is not None}


def get_tag(main: Store, name: str) -> Tag:
    """A tag. NotFound if there is none of the name."""
    return _read(main, name)[1]


def create_tag(
    main: Store, name: str, version: int, *, branch: str | None = None, metadata: Mapping[str, str] | None = None
) -> Tag:
    """Name a version. NotFound if there is no such version; AlreadyExists if the name is taken, by whoever was first.

    A tagged version is not cleaned up.
    """
    check_tag_name(name)
    found = find_version(branch_store(main, branch), version)
    now = now_text()
    tag = Tag(version, branch, now, now, found.size, dict(metadata or {}))
    try:
        main.put_if_absent(tag_path(name), write_tag(tag))
    except AlreadyExists:
        raise AlreadyExists(f"there is a tag {name!r} already", uri=main.uri) from None
    return tag


def move_tag(main: Store, name: str, version: int, *, branch: str | None = None) -> Tag:
    """Let a tag name another version. Of two who move it at once, the later one's stays."""
    path, tag = _read(main, name)
    found = find_version(branch_store(main, branch), version)
    moved = replace(tag, version=version, branch=branch, updated_at=now_text(), manifest_size=found.size)
    main.put(path, write_tag(moved))
    return moved


def set_tag_metadata(main: Store, name: str, metadata: Mapping[str, str]) -> Tag:
    """Replace all metadata of a tag; when it was updated is left as it was."""
    path, tag = _read(main, name)
    changed = replace(tag, metadata=dict(metadata))
    main.put(path, write_tag(changed))
    return changed


def delete_tag(main: Store, name: str) -> None:
    """Remove a tag; the version stays until cleanup takes it. NotFound if there is no such tag."""
    main.delete([_read(main, name)[0]])


def now_text() -> str:
    """This moment as tags store it: RFC 3339, to the nanosecond, in UTC."""
    seconds, nanoseconds = divmod(time_ns(), 10**9)
    return f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(seconds))}.{nanoseconds:09}Z"


def _read(main: Store, name: str) -> tuple[str, Tag]:
    # The reference escapes letters beyond ASCII, and then fails to list its own tags: they are read here, not made.
    for path in dict.fromkeys((tag_path(quote(name, safe="")), tag_path(name) if "/" not in name else "")):
        try:
            if path:
                return path, parse_tag(main.read_all(path), uri=join_uri(main.uri, path))
        except NotFound:
            continue
    raise NotFound(f"there is no tag {name!r}", uri=main.uri)


def _name(path: str) -> str:
    return unquote(path.rpartition("/")[2].removesuffix(".json"))


def _is_tag(path: str) -> bool:
    return path.endswith(".json") and path.count("/") == TAGS.count("/") + 1
