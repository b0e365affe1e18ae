"""Building: the next manifest of a table, from the one before and a transaction. Pure: nothing is read or written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from uuid import UUID

from lancelet.errors import InvalidInput, Unsupported
from lancelet.format import operations as op
from lancelet.format.fields import Field, Schema
from lancelet.format.flags import (
    DELETION_FILES,
    MIXED_VERSIONS,
    OVERLAY_FILES,
    SPILLED_LINEAGE,
    STABLE_ROW_IDS,
    flags_for,
)
from lancelet.format.fragment_list import Fragments
from lancelet.format.fragments import Fragment
from lancelet.format.indexes import IndexMetadata
from lancelet.format.manifest import BasePath, DataStorageFormat, Manifest, WriterVersion
from lancelet.format.transaction import Transaction
from lancelet.format.versions import FileVersion
from lancelet.table import changes
from lancelet.table.work import Work, begin

__all__ = ["Built", "Settings", "first_manifest", "next_manifest"]


#: Flags that tell of what is in fragments.
_OF_FRAGMENTS = sum(
    flag.value for flag in (DELETION_FILES, STABLE_ROW_IDS, OVERLAY_FILES, MIXED_VERSIONS, SPILLED_LINEAGE)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a commit says besides its transaction."""

    #: Nanoseconds since the epoch.
    timestamp: int
    #: The name of the transaction's file; empty where none was written.
    transaction_file: str = ""
    #: For a new table, whether its rows get stable ids.
    stable_row_ids: bool = False
    #: For a new or overwritten table, the version of its data files; None takes that of the files there are.
    data_version: FileVersion | None = None
    #: For a rewrite that leaves indexes as they are: the index that tells where rows went.
    reuse_index: IndexMetadata | None = None
    #: For a rewrite, of segments it rewrites what they cover, where their own entries tell of fragments since moved.
    index_coverage: Mapping[UUID, bytes] = field(default_factory=dict, hash=False)
    #: For an update, the fragments it touches whose lineage lies in data files: by id, with that inline.
    spilled: Mapping[int, Fragment] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Built:
    """A manifest to be written, and what goes with it into its file."""

    manifest: Manifest
    indexes: tuple[IndexMetadata, ...] = ()
    #: See :meth:`lancelet.format.manifest_file.ManifestFile.dictionary_values`.
    dictionary_values: bytes = b""
    #: The transaction as its own file has it.
    transaction: bytes = b""


def first_manifest(transaction: Transaction, settings: Settings) -> Built:
    """Version 1 of a table."""
    operation = transaction.operation
    if not isinstance(operation, op.Overwrite):
        raise InvalidInput(f"{type(operation).__name__} cannot make a table", hint="a table begins with Overwrite")
    _check_bases(operation.initial_bases)
    flags = STABLE_ROW_IDS.value if settings.stable_row_ids else 0
    empty = Manifest(operation.schema, version=0, base_paths=operation.initial_bases, reader_flags=flags)
    return _finish(empty, _overwritten(empty, (), operation, 1), transaction, settings)


def next_manifest(
    current: Manifest,
    indexes: Iterable[IndexMetadata],
    transaction: Transaction,
    settings: Settings,
    *,
    version: int | None = None,
    restored: Built | None = None,
) -> Built:
    """The manifest that follows ``current``; ``restored`` is the version that a Restore goes back to.

    >>> before = first_manifest(Transaction(0, op.Overwrite((), Schema(()))), Settings(timestamp=1)).manifest
    >>> change = op.UpdateConfig(op.MapUpdate((("a", "1"),)))
    >>> after = next_manifest(before, (), Transaction(1, change), Settings(timestamp=2))
    >>> after.manifest.version, dict(after.manifest.config)
    (2, {'a': '1'})
    """
    number = current.version + 1 if version is None else version
    operation = transaction.operation
    if isinstance(operation, op.Restore):
        if restored is None:
            raise InvalidInput(f"version {operation.version} is to be restored, but was not given")
        return _restored(current, restored, number, settings)
    if isinstance(operation, op.Overwrite):
        if operation.initial_bases:
            raise InvalidInput("base paths are given to a new table only", hint="add them by UpdateBases")
        work = _overwritten(current, tuple(indexes), operation, number)
    else:
        stable = bool(current.reader_flags & STABLE_ROW_IDS.value)
        work = _applied(begin(current, indexes, version=number, stable_row_ids=stable), operation, settings)
    return _finish(current, work, transaction, settings)


def _overwritten(current: Manifest, indexes: tuple[IndexMetadata, ...], operation: op.Overwrite, version: int) -> Work:
    stable = bool(current.reader_flags & STABLE_ROW_IDS.value)
    return changes.overwrite(begin(current, indexes, version=version, stable_row_ids=stable), operation)


def _applied(work: Work, operation: op.Operation, settings: Settings) -> Work:
    """The work with an operation carried out on fragments and indexes; what else it does comes in :func:`_finish`."""
    match operation:
        case op.Append():
            return changes.append(work, operation)
        case op.Delete():
            return changes.delete(work, operation)
        case op.Update(compacted_sstables=()):
            return changes.update(work, operation, settings.spilled)
        case op.Rewrite():
            return changes.rewrite(work, operation, settings.reuse_index, settings.index_coverage)
        case op.Merge():
            return changes.merge(work, operation)
        case op.Project():
            return changes.project(work, operation)
        case op.DataReplacement():
            return changes.replace_data(work, operation)
        case op.CreateIndex():
            return changes.create_index(work, operation)
        case op.UpdateConfig():
            return replace(work, schema=_with_metadata(work.schema, operation))
        case op.ReserveFragments() | op.UpdateBases():
            return work
    raise Unsupported(f"{type(operation).__name__} is not committed by this release")


def _finish(current: Manifest, work: Work, transaction: Transaction, settings: Settings) -> Built:
    operation = transaction.operation
    # Most commits leave fragments as they are, or put some behind them: then only those are looked at.
    added = _added(current, work, operation)
    fragments = work.fragments if added is not None else _in_order(work.fragments)
    manifest = replace(
        current,
        schema=work.schema,
        fragments=fragments,
        version=work.version,
        timestamp=settings.timestamp,
        writer_version=_writer(),
        data_format=_data_format(current, fragments, operation, settings),
        max_fragment_id=_highest_fragment_id(current, work, operation, scan=added is None),
        next_row_id=current.next_row_id if work.next_row_id is None else work.next_row_id,
        config=_config(current.config, operation),
        table_metadata=_table_metadata(current.table_metadata, operation),
        base_paths=_bases(current.base_paths, operation),
        transaction_file=settings.transaction_file,
        transaction_section=None,
        index_section=None,
        version_aux_data=0,
        tag=transaction.tag,
        max_allocated_field_id=_highest_field_id(current, work.schema),
    )
    stable = work.next_row_id is not None
    return _flagged(manifest, work.indexes, stable_row_ids=stable, settings=settings, added=added)


def _added(current: Manifest, work: Work, operation: op.Operation) -> Fragments | None:
    """What is new, where fragments were only added, or one of the old beside it: None where all must be looked at."""
    if work.fragments is not current.fragments and not isinstance(operation, op.Append):
        return None
    if current.writer_version is None or not len(current.fragments):
        return None
    # Unless versions are mixed, one old fragment shows which all have.
    return work.fragments[len(current.fragments) - 1 :]


def _flagged(
    manifest: Manifest,
    indexes: tuple[IndexMetadata, ...],
    *,
    stable_row_ids: bool,
    settings: Settings,
    added: Fragments | None = None,
) -> Built:
    reader, writer = flags_for(
        manifest,
        fragments=added,
        indexes=indexes,
        stable_row_ids=stable_row_ids,
        transaction_file=bool(settings.transaction_file),
    )
    if added is not None:
        kept = manifest.reader_flags & _OF_FRAGMENTS
        reader, writer = reader | kept, writer | kept
    return Built(replace(manifest, reader_flags=reader, writer_flags=writer), indexes)


def _restored(current: Manifest, old: Built, version: int, settings: Settings) -> Built:
    """An old version as the newest. Ids of fragments, rows and fields given since then are not given again."""
    fragments = old.manifest.fragments
    largest = int(fragments.ids().max()) if len(fragments) else None
    manifest = replace(
        old.manifest,
        version=version,
        timestamp=settings.timestamp,
        writer_version=_writer(),
        data_format=_data_format(old.manifest, fragments, op.Restore(old.manifest.version), settings),
        branch=current.branch,
        max_fragment_id=_largest(old.manifest.max_fragment_id, current.max_fragment_id, largest),
        next_row_id=max(old.manifest.next_row_id, current.next_row_id),
        base_paths=_bases_of_both(old.manifest.base_paths, current.base_paths),
        transaction_file=settings.transaction_file,
        transaction_section=None,
        index_section=None,
        version_aux_data=0,
        max_allocated_field_id=_largest(old.manifest.max_allocated_field_id, current.max_allocated_field_id),
    )
    stable = bool(old.manifest.reader_flags & STABLE_ROW_IDS.value)
    return _flagged(manifest, old.indexes, stable_row_ids=stable, settings=settings)


def _in_order(fragments: Fragments) -> Fragments:
    """Fragments by id: a reserved id may come in late."""
    ids = fragments.ids()
    if len(ids) < 2 or bool((ids[1:] > ids[:-1]).all()):
        return fragments
    order = ids.argsort(kind="stable")
    if bool((ids[order][1:] == ids[order][:-1]).any()):
        raise InvalidInput("two fragments would have one id")
    return Fragments(fragments[place] for place in order.tolist())


def _highest_fragment_id(current: Manifest, work: Work, operation: op.Operation, *, scan: bool) -> int | None:
    highest = _largest(current.max_fragment_id, work.next_fragment_id - 1 if work.next_fragment_id else None)
    if scan and len(work.fragments):
        highest = _largest(highest, int(work.fragments.ids().max()))
    if isinstance(operation, op.ReserveFragments):
        return (highest or 0) + operation.num_fragments
    return highest


def _highest_field_id(current: Manifest, schema: Schema) -> int | None:
    if current.max_allocated_field_id is None:
        return None
    return max([current.max_allocated_field_id, *(item.id for item in schema.walk())])


def _data_format(
    current: Manifest, fragments: Fragments, operation: op.Operation, settings: Settings
) -> DataStorageFormat:
    stated = current.data_format
    legacy = stated is None or stated.version in ("0.1", "legacy")
    if stated is not None and not legacy and not isinstance(operation, op.Overwrite):
        return stated
    numbers = fragments.versions()
    if not numbers and not isinstance(operation, op.Overwrite):
        # A table that lost its last row stays of the version that it was.
        numbers = current.fragments.versions()
    found = {FileVersion.from_numbers(*pair) for pair in numbers}
    if isinstance(operation, op.Overwrite):
        if settings.data_version is not None:
            return DataStorageFormat(version=settings.data_version.label)
        if found:
            return DataStorageFormat(version=max(found).label)
        return stated or DataStorageFormat()
    # Writers before there was this field, and one release after, left 0.1 standing over newer files.
    if stated is None or (found and max(found) > FileVersion.V0_1):
        return DataStorageFormat(version=(max(found) if found else FileVersion.V0_1).label)
    return stated


def _config(before: Mapping[str, str], operation: op.Operation) -> dict[str, str]:
    if isinstance(operation, op.Overwrite):
        return {**before, **operation.config}
    if isinstance(operation, op.UpdateConfig) and operation.config is not None:
        return operation.config.applied(before)
    return dict(before)


def _table_metadata(before: Mapping[str, str], operation: op.Operation) -> dict[str, str]:
    if isinstance(operation, op.UpdateConfig) and operation.table_metadata is not None:
        return operation.table_metadata.applied(before)
    return dict(before)


def _with_metadata(schema: Schema, operation: op.UpdateConfig) -> Schema:
    missing = operation.field_metadata.keys() - {item.id for item in schema.walk()}
    if missing:
        raise InvalidInput(f"metadata is given for field {min(missing)}, which the schema does not have")
    if operation.field_metadata:
        fields = tuple(_field_with_metadata(item, operation.field_metadata) for item in schema.fields)
        schema = replace(schema, fields=fields)
    if operation.schema_metadata is not None:
        schema = replace(schema, metadata=operation.schema_metadata.applied(schema.metadata))
    return schema


def _field_with_metadata(item: Field, updates: Mapping[int, op.MapUpdate]) -> Field:
    metadata = updates[item.id].applied(item.metadata) if item.id in updates else item.metadata
    return replace(
        item, metadata=metadata, children=tuple(_field_with_metadata(child, updates) for child in item.children)
    )


def _bases(before: tuple[BasePath, ...], operation: op.Operation) -> tuple[BasePath, ...]:
    if not isinstance(operation, op.UpdateBases):
        return before
    bases = list(before)
    for item in operation.new_bases:
        number = item.id or max((base.id for base in bases), default=0) + 1
        bases.append(replace(item, id=number))
    _check_bases(bases)
    return tuple(bases)


def _check_bases(bases: Iterable[BasePath]) -> None:
    seen: set[tuple[str, object]] = set()
    for item in bases:
        for what, value in (("id", item.id), ("path", item.path), ("name", item.name)):
            if value is not None and (what, value) in seen:
                raise InvalidInput(f"two base paths have the {what} {value!r}")
            seen.add((what, value))


def _bases_of_both(old: tuple[BasePath, ...], current: tuple[BasePath, ...]) -> tuple[BasePath, ...]:
    known = {item.id for item in old}
    return (*old, *(item for item in current if item.id not in known))


def _largest(*numbers: int | None) -> int | None:
    return max((number for number in numbers if number is not None), default=None)


@lru_cache(maxsize=1)
def _writer() -> WriterVersion:
    try:
        return WriterVersion("lancelet", installed_version("lancelet"))
    except PackageNotFoundError:
        # Run from a checkout that nobody installed.
        return WriterVersion("lancelet", "0.0.0")
