"""Tags and branches: the small JSON files that name a version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from lancelet.errors import Corrupt

__all__ = ["Branch", "BranchPoint", "Tag", "parse_branch", "parse_tag", "write_branch", "write_tag"]

_MAX_SIZE = 1 << 20


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for a version. Times are texts of RFC 3339; ``more`` is what newer writers added.

    >>> parse_tag(write_tag(Tag(version=3))) == Tag(version=3)
    True
    """

    version: int
    #: None for the main branch.
    branch: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    #: Bytes of the version's manifest.
    manifest_size: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    more: Mapping[str, object] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class BranchPoint:
    """Where a line of versions left another: the version it left at, and an id of the branch made there."""

    version: int
    id: str = field(default_factory=lambda: uuid4().hex)


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of versions of its own. ``points`` lead from the main branch to it, the last one being its own start."""

    parent_version: int
    parent_branch: str | None = None
    points: tuple[BranchPoint, ...] = ()
    #: Seconds since the epoch.
    created_at: int = 0
    manifest_size: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    more: Mapping[str, object] = field(default_factory=dict, hash=False)


def parse_tag(data: bytes | memoryview, *, uri: str | None = None) -> Tag:
    """The tag in a file's content; ``uri`` names the file in errors."""
    content = _Content(data, "tag", uri)
    return Tag(
        version=content.number("version", required=True),
        branch=content.text("branch"),
        created_at=content.text("createdAt"),
        updated_at=content.text("updatedAt"),
        manifest_size=content.number("manifestSize", "manifest_size"),
        metadata=content.texts("metadata"),
        more=content.rest(),
    )


def write_tag(tag: Tag) -> bytes:
    """The content of a tag's file."""
    content: dict[str, object] = {"branch": tag.branch, "version": tag.version}
    content |= {"createdAt": tag.created_at, "updatedAt": tag.updated_at, "manifestSize": tag.manifest_size}
    return _dumped(content | {"metadata": dict(tag.metadata), **tag.more})


def parse_branch(data: bytes | memoryview, *, uri: str | None = None) -> Branch:
    """The branch in a file's content. Names of keys that the first documents gave are understood as well."""
    content = _Content(data, "branch", uri)
    return Branch(
        parent_version=content.number("parentVersion", "parent_version", required=True),
        parent_branch=content.text("parentBranch", "parent_branch"),
        points=content.points("identifier"),
        created_at=content.number("createAt", "create_at"),
        manifest_size=content.number("manifestSize", "manifest_size"),
        metadata=content.texts("metadata"),
        more=content.rest(),
    )


def write_branch(branch: Branch) -> bytes:
    """The content of a branch's file.

    >>> branch = Branch(parent_version=3, points=(BranchPoint(3, "07d019c328694985a7a406755b391222"),))
    >>> parse_branch(write_branch(branch)) == branch
    True
    """
    content: dict[str, object] = {"parentBranch": branch.parent_branch}
    content["identifier"] = {"version_mapping": [[point.version, point.id] for point in branch.points]}
    content |= {"parentVersion": branch.parent_version, "createAt": branch.created_at}
    content |= {"manifestSize": branch.manifest_size, "metadata": dict(branch.metadata)}
    return _dumped(content | dict(branch.more))


def _dumped(content: Mapping[str, object]) -> bytes:
    return json.dumps(content, indent=2, ensure_ascii=False).encode()


class _Content:
    """The keys of a JSON object, taken out one by one with their types checked."""

    def __init__(self, data: bytes | memoryview, what: str, uri: str | None) -> None:
        self._what, self._uri = what, uri
        if len(data) > _MAX_SIZE:
            raise self._wrong(f"is {len(data)} bytes long, expected at most {_MAX_SIZE}")
        try:
            content = json.loads(bytes(data))
        except (ValueError, RecursionError) as error:
            raise self._wrong(f"is no JSON: {error}") from None
        if not isinstance(content, dict):
            raise self._wrong(f"is JSON of type {type(content).__name__}, expected an object")
        self._content: dict[str, object] = content

    def _wrong(self, found: str) -> Corrupt:
        return Corrupt(f"{self._what} {found}", uri=self._uri)

    def _take(self, names: tuple[str, ...]) -> object:
        values = [self._content.pop(name) for name in names if name in self._content]
        return values[0] if values else None

    def number(self, *names: str, required: bool = False) -> int:
        value = self._take(names)
        if value is None and not required:
            return 0
        if type(value) is not int or not 0 <= value < 1 << 64:
            raise self._wrong(f"has {names[0]} {value!r}, expected a whole number")
        return value

    def text(self, *names: str) -> str | None:
        value = self._take(names)
        if value is not None and not isinstance(value, str):
            raise self._wrong(f"has {names[0]} {value!r}, expected a text or null")
        return value

    def texts(self, name: str) -> dict[str, str]:
        value = self._take((name,))
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            raise self._wrong(f"has {name} {value!r}, expected an object of texts")
        return value

    def points(self, name: str) -> tuple[BranchPoint, ...]:
        value = self._take((name,))
        if value is None:
            return ()
        pairs = value.get("version_mapping", []) if isinstance(value, dict) else None
        if not isinstance(pairs, list):
            raise self._wrong(f"has {name} {value!r}, expected an object with version_mapping")
        for pair in pairs:
            if not (isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is int and isinstance(pair[1], str)):
                raise self._wrong(f"has {pair!r} in its version_mapping, expected [version, id]")
        return tuple(BranchPoint(version, own) for version, own in pairs)

    def rest(self) -> dict[str, object]:
        return self._content
