"""Tags and branches of a dataset: names for versions, and lines of versions beside the main one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypedDict, TypeVar

from lancelet.dataset.references import Reference, place_of
from lancelet.errors import InvalidInput
from lancelet.format.refs import Branch as StoredBranch
from lancelet.format.refs import Tag as StoredTag
from lancelet.table.branches import delete_branch, list_branches, set_branch_metadata
from lancelet.table.paths import branch_store
from lancelet.table.snapshot import find_latest
from lancelet.table.tags import create_tag, delete_tag, get_tag, list_tags, move_tag, set_tag_metadata

if TYPE_CHECKING:
    from lancelet.dataset.core import DatasetCore

__all__ = ["Branch", "Branches", "Tag", "Tags"]

_Described = TypeVar("_Described")
#: Digits behind the microseconds, which datetime does not take everywhere.
_FRACTION = re.compile(r"(\.\d{6})\d+")


class Tag(TypedDict):
    """A name for a version; no branch is the main one."""

    branch: str | None
    version: int
    created_at: datetime | None
    updated_at: datetime | None
    manifest_size: int
    metadata: dict[str, str]


class Branch(TypedDict):
    """A line of versions beside the main one."""

    parent_branch: str | None
    #: From which version of each branch above it, and of which making of it, the branch comes.
    branch_identifier: list[tuple[int, str]]
    parent_version: int
    #: Seconds since the epoch.
    create_at: int
    manifest_size: int
    metadata: dict[str, str]


# Within the classes "list" is a method.
_OrderedTags = list[tuple[str, Tag]]
_OrderedBranches = list[tuple[str, Branch]]


class Tags:
    """The tags of a table: ``dataset.tags``. What is tagged is not cleaned up.

    >>> import lancelet, pyarrow as pa
    >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://tagged")
    >>> dataset.tags.create("first", 1)
    >>> dataset.tags.get_version("first"), dataset.checkout_version("first").version
    (1, 1)
    """

    def __init__(self, dataset: DatasetCore) -> None:
        self._dataset = dataset

    def list(self) -> dict[str, Tag]:
        """All tags, by name."""
        return {name: _tag(item) for name, item in self._stored().items()}

    def list_ordered(self, order: str | None = None) -> _OrderedTags:
        """All tags by the versions that they name, the newest first (``desc``) or last (``asc``)."""
        return _ordered(self.list(), order, lambda item: item["version"])

    def get_version(self, tag: str) -> int:
        """The version that a tag names. NotFound if there is no such tag."""
        return get_tag(self._dataset._main(), tag).version

    def create(self, tag: str, reference: Reference | None = None) -> None:
        """Name a version; without a reference the one that the dataset is at. AlreadyExists if the name is taken."""
        branch, version = self._place(reference)
        create_tag(self._dataset._main(), tag, version, branch=branch)

    def update(self, tag: str, reference: Reference | None = None) -> None:
        """Let a tag name another version."""
        branch, version = self._place(reference)
        move_tag(self._dataset._main(), tag, version, branch=branch)

    def replace_metadata(self, tag: str, metadata: Mapping[str, str]) -> None:
        """Put other metadata in the place of all that a tag has."""
        set_tag_metadata(self._dataset._main(), tag, metadata)

    def delete(self, tag: str) -> None:
        """Remove a tag. NotFound if there is none of the name."""
        delete_tag(self._dataset._main(), tag)

    def _stored(self) -> dict[str, StoredTag]:
        return list_tags(self._dataset._main(), options=self._dataset.location.options)

    def _place(self, reference: Reference | None) -> tuple[str | None, int]:
        here, main = self._dataset.snapshot, self._dataset._main()
        if reference is None:
            return here.branch, here.version
        branch, version = place_of(main, reference, branch=here.branch)
        if version is None:
            found = find_latest(branch_store(main, branch))
            if found is None:
                raise InvalidInput(f"there is no branch {branch!r}", uri=self._dataset.uri)
            version = found.version
        return branch, version


class Branches:
    """The branches of a table but for the main one: ``dataset.branches``.

    >>> import lancelet, pyarrow as pa
    >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://branched")
    >>> branch = dataset.create_branch("dev")
    >>> branch.insert({"x": [3]})
    >>> [*dataset.branches.list()], branch.count_rows(), dataset.count_rows()
    (['dev'], 3, 2)
    """

    def __init__(self, dataset: DatasetCore) -> None:
        self._dataset = dataset

    def list(self) -> dict[str, Branch]:
        """All branches, by name."""
        found = list_branches(self._dataset._main(), options=self._dataset.location.options)
        return {name: _branch(item) for name, item in found.items()}

    def list_ordered(self, order: str | None = None) -> _OrderedBranches:
        """All branches by the versions that they start from, the newest first (``desc``) or last (``asc``)."""
        return _ordered(self.list(), order, lambda item: item["parent_version"])

    def replace_metadata(self, branch: str, metadata: Mapping[str, str]) -> None:
        """Put other metadata in the place of all that a branch has."""
        set_branch_metadata(self._dataset._main(), branch, metadata)

    def delete(self, branch: str) -> None:
        """Remove a branch with its versions and files. Conflict where tags or other branches refer to it."""
        delete_branch(self._dataset._main(), branch, options=self._dataset.location.options)


def _ordered(
    found: dict[str, _Described], order: str | None, version: Callable[[_Described], int]
) -> list[tuple[str, _Described]]:
    if order not in (None, "asc", "desc"):
        raise InvalidInput(f"order is {order!r}, expected 'asc' or 'desc'")
    # Names settle what versions leave open, the other way round for neither order.
    by_name = sorted(found.items())
    return sorted(by_name, key=lambda item: version(item[1]), reverse=order != "asc")


def _tag(stored: StoredTag) -> Tag:
    return Tag(
        branch=stored.branch,
        version=stored.version,
        created_at=_moment(stored.created_at),
        updated_at=_moment(stored.updated_at),
        manifest_size=stored.manifest_size,
        metadata=dict(stored.metadata),
    )


def _branch(stored: StoredBranch) -> Branch:
    return Branch(
        parent_branch=stored.parent_branch,
        branch_identifier=[(item.version, item.id) for item in stored.points],
        parent_version=stored.parent_version,
        create_at=stored.created_at,
        manifest_size=stored.manifest_size,
        metadata=dict(stored.metadata),
    )


def _moment(text: str | None) -> datetime | None:
    """What RFC 3339 says, to the microsecond; None for what is no such text."""
    try:
        return None if not text else datetime.fromisoformat(_FRACTION.sub(r"\1", text)).astimezone(UTC)
    except ValueError:
        return None
