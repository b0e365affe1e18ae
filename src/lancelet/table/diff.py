"""Differences between two versions: fragments, fields, indexes, settings; found from their manifests alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from lancelet.format.fields import Field, Schema
from lancelet.format.fragment_list import Fragments
from lancelet.format.fragments import DataFile, Fragment, read_fragment
from lancelet.format.indexes import IndexMetadata
from lancelet.format.manifest import BasePath
from lancelet.table.snapshot import Snapshot

__all__ = ["Changes", "Difference", "data_files_changed", "diff"]

_Item = TypeVar("_Item")
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Changes(Generic[_Item]):
    """What only the later version has, what only the earlier has, and what both have but not alike: (before, after)."""

    added: tuple[_Item, ...] = ()
    removed: tuple[_Item, ...] = ()
    changed: tuple[tuple[_Item, _Item], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def __str__(self) -> str:
        return f"+{len(self.added)} -{len(self.removed)} ~{len(self.changed)}"


#: A key and its value in a mapping of settings.
Setting = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """What lies between two versions. Fields and fragments are told apart by their ids, index segments by theirs."""

    before: int
    after: int
    fragments: Changes[Fragment]
    #: A field's children are told of on their own; a field that was only moved is not told of.
    fields: Changes[Field]
    indexes: Changes[IndexMetadata]
    config: Changes[Setting]
    table_metadata: Changes[Setting]
    schema_metadata: Changes[Setting]
    base_paths: Changes[BasePath]
    #: Rows that are not deleted, after less before; None where an old manifest does not say.
    rows: int | None

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in _PARTS)

    def __str__(self) -> str:
        found = [f"{name.replace('_', ' ')} {part}" for name in _PARTS if (part := getattr(self, name))]
        rows = [] if not self.rows else [f"rows {self.rows:+d}"]
        return f"version {self.before} -> {self.after}: {', '.join(rows + found) or 'no difference'}"


_PARTS = ("fragments", "fields", "indexes", "config", "table_metadata", "schema_metadata", "base_paths")


def diff(before: Snapshot, after: Snapshot) -> Difference:
    """What is different in ``after``. Nothing is read but, where the snapshots hold it, their manifests' files.

    The two may be of different branches. Where nothing was rewritten, the cost is that of comparing the manifests.
    """
    old, new = before.manifest, after.manifest
    rows_before, rows_after = before.count_rows(), after.count_rows()
    return Difference(
        before=before.version,
        after=after.version,
        fragments=_fragments(old.fragments, new.fragments),
        fields=_fields(old.schema, new.schema),
        indexes=_by_key(before.indexes(), after.indexes(), _uuid),
        config=_settings(old.config, new.config),
        table_metadata=_settings(old.table_metadata, new.table_metadata),
        schema_metadata=_settings(old.schema.metadata, new.schema.metadata),
        base_paths=_by_key(old.base_paths, new.base_paths, lambda item: item.id),
        rows=None if rows_before is None or rows_after is None else rows_after - rows_before,
    )


def data_files_changed(before: Fragment, after: Fragment) -> Changes[DataFile]:
    """The data files that a fragment won and lost, and those of which other columns count now.

    >>> one, two = DataFile("a.lance", (0,)), DataFile("b.lance", (1,))
    >>> str(data_files_changed(Fragment(0, (one,)), Fragment(0, (one, two))))
    '+1 -0 ~0'
    """
    return _by_key(before.files, after.files, lambda item: (item.base_id, item.path))


def _fragments(before: Fragments, after: Fragments) -> Changes[Fragment]:
    # Messages are compared as they are: most fragments are alike, and are never made into objects.
    old = {item.id: item for item in before.message().fragments}
    new = {item.id: item for item in after.message().fragments}
    found = _by_keys(old, new)
    return Changes(
        tuple(map(read_fragment, found.added)),
        tuple(map(read_fragment, found.removed)),
        tuple((read_fragment(earlier), read_fragment(later)) for earlier, later in found.changed),
    )


def _fields(before: Schema, after: Schema) -> Changes[Field]:
    def flat(schema: Schema) -> dict[int, tuple[object, Field]]:
        # The children are keys of their own; without them a field is alike however they changed.
        return {item.id: (_own(item), item) for item in schema.walk()}

    old, new = flat(before), flat(after)
    changed = (number for number in new if number in old and new[number][0] != old[number][0])
    return Changes(
        tuple(new[number][1] for number in new if number not in old),
        tuple(old[number][1] for number in old if number not in new),
        tuple((old[number][1], new[number][1]) for number in changed),
    )


def _own(item: Field) -> tuple[object, ...]:
    keys = (item.primary_key, item.primary_key_position, item.clustering_key, item.clustering_key_position)
    return item.name, item.logical_type, item.nullable, dict(item.metadata), item.parent_id, keys


def _uuid(item: IndexMetadata) -> UUID:
    return item.uuid


def _settings(before: Mapping[str, str], after: Mapping[str, str]) -> Changes[Setting]:
    return _by_key(before.items(), after.items(), lambda item: item[0])


def _by_key(before: Iterable[_Item], after: Iterable[_Item], key: Callable[[_Item], _Key]) -> Changes[_Item]:
    return _by_keys({key(item): item for item in before}, {key(item): item for item in after})


def _by_keys(old: Mapping[_Key, _Item], new: Mapping[_Key, _Item]) -> Changes[_Item]:
    return Changes(
        tuple(item for key, item in new.items() if key not in old),
        tuple(item for key, item in old.items() if key not in new),
        tuple((old[key], item) for key, item in new.items() if key in old and old[key] != item),
    )
