"""Clashes: what two operations have in common, for the rules of :mod:`lancelet.table.conflicts`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyroaring import BitMap

from lancelet.errors import Corrupt
from lancelet.format import operations as op
from lancelet.format.fragments import TOMBSTONE, Fragment
from lancelet.format.indexes import IndexMetadata

__all__ = [
    "Clash",
    "base_clash",
    "common_names",
    "config_clash",
    "covered_fragments",
    "dropped_fields",
    "fields_replaced",
    "fragments_of_index",
    "key_clash",
    "log_entries",
    "never",
    "replaced_fields",
    "retry",
    "row_clash",
    "touched_fragments",
    "touches_schema_metadata",
]


@dataclass(frozen=True, slots=True)
class Clash:
    """Why one operation cannot follow another, and whether working it out anew may help."""

    retryable: bool
    reason: str


def retry(reason: str) -> Clash:
    """A clash that working out anew may resolve."""
    return Clash(True, reason)


def never(reason: str) -> Clash:
    """A clash that stays."""
    return Clash(False, reason)


def touched_fragments(operation: op.Operation) -> set[int]:
    """Ids of the existing fragments that an operation changes, moves or removes.

    >>> sorted(touched_fragments(op.Delete((Fragment(4),), (7,))))
    [4, 7]
    """
    match operation:
        case op.Delete():
            return {item.id for item in operation.updated_fragments} | set(operation.deleted_fragment_ids)
        case op.Update():
            return {item.id for item in operation.updated_fragments} | set(operation.removed_fragment_ids)
        case op.Rewrite():
            return {item.id for group in operation.groups for item in group.old_fragments}
        case op.DataReplacement():
            return {item.fragment_id for item in operation.replacements}
    return set()


def replaced_fields(operation: op.Operation) -> dict[int, set[int] | None]:
    """Which fields of which fragments an operation gives new values in place; None for rows that left."""
    match operation:
        case op.DataReplacement():
            found: dict[int, set[int] | None] = {}
            for item in operation.replacements:
                fields = found.setdefault(item.fragment_id, set())
                if fields is not None:
                    fields.update(number for number in item.new_file.fields if number != TOMBSTONE)
            return found
        case op.Update(mode=op.UpdateMode.REWRITE_COLUMNS):
            return {item.id: set(operation.fields_modified) for item in operation.updated_fragments}
        case op.Update():
            return {item.id: None for item in operation.updated_fragments}
    return {}


def fields_replaced(operation: op.Operation) -> set[int]:
    """Fields that an operation gives new values in place, in any fragment."""
    if isinstance(operation, op.Update):
        return set(operation.fields_modified)
    return {number for fields in replaced_fields(operation).values() for number in fields or ()}


def fragments_of_index(index: IndexMetadata) -> BitMap | None:
    """Ids of the fragments an index covers; None where its writer did not say."""
    if index.fragment_bitmap is None:
        return None
    try:
        return BitMap.deserialize(index.fragment_bitmap)
    except ValueError as error:
        raise Corrupt(f"the fragments of index {index.name!r} are no Roaring bitmap: {error}") from None


def covered_fragments(operation: op.Operation) -> set[int] | None:
    """Ids of the fragments that new indexes cover; None if one of them does not say."""
    covered: set[int] = set()
    for item in operation.new_indexes if isinstance(operation, op.CreateIndex) else ():
        found = fragments_of_index(item)
        if found is None:
            return None
        covered.update(found)
    return covered


def common_names(ours: op.Operation, theirs: op.Operation) -> set[str]:
    """Names of indexes that both put in or take out; those that both take out are no matter."""
    if not isinstance(ours, op.CreateIndex) or not isinstance(theirs, op.CreateIndex):
        return set()
    added = [{item.name for item in one.new_indexes} for one in (ours, theirs)]
    touched = [
        names | {item.name for item in one.removed_indexes} for names, one in zip(added, (ours, theirs), strict=True)
    ]
    return (added[0] & touched[1]) | (touched[0] & added[1])


def dropped_fields(ours: op.Operation, theirs: op.Operation) -> set[int]:
    """Fields that ours needs and that are not in the schema of their projection."""
    if not isinstance(theirs, op.Project):
        return set()
    needed: set[int] = set()
    if isinstance(ours, op.CreateIndex):
        needed = {number for item in ours.new_indexes for number in item.fields}
    elif isinstance(ours, op.DataReplacement):
        needed = {number for item in ours.replacements for number in item.new_file.fields if number != TOMBSTONE}
    return needed - {item.id for item in theirs.schema.walk()}


def row_clash(
    ours: op.Operation, theirs: op.Operation, read_fragments: Mapping[int, Fragment], *, known: bool
) -> Clash | None:
    """Whether two changes to rows of one fragment cannot be merged; which rows they are is looked at later."""
    if not isinstance(ours, op.Delete | op.Update) or not isinstance(theirs, op.Delete | op.Update):
        return None
    common = touched_fragments(ours) & touched_fragments(theirs)
    if not common:
        return None
    changed = {item.id: item for item in theirs.updated_fragments}
    ours_changed = {item.id: item for item in ours.updated_fragments}
    for number in sorted(common):
        before, after, own = read_fragments.get(number), changed.get(number), ours_changed.get(number)
        if not known or before is None or after is None or own is None:
            return retry(f"rows of fragment {number} were changed by both")
        if after.files != before.files or own.files != before.files:
            return retry(f"columns of fragment {number} were changed by one and its rows by the other")
    return None


def key_clash(ours: op.Operation, theirs: op.Operation) -> Clash | None:
    """Whether both may have inserted one key. Rows that come without a filter of their keys may hold any."""
    if not isinstance(ours, op.Update) or ours.inserted_rows is None:
        return None
    if isinstance(theirs, op.Update) and not theirs.new_fragments:
        return None
    other = theirs.inserted_rows if isinstance(theirs, op.Update) else None
    if other is not None and _disjoint(ours.inserted_rows, other):
        return None
    return retry("both may have inserted rows of one key")


def _disjoint(ours: op.KeyFilter, theirs: op.KeyFilter) -> bool:
    if ours.field_ids != theirs.field_ids:
        return False
    match ours.keys, theirs.keys:
        case op.ExactKeys(own), op.ExactKeys(other):
            return not set(own) & set(other)
        case op.BloomKeys() as own_bits, op.BloomKeys() as other_bits:
            alike = len(own_bits.bitmap) == len(other_bits.bitmap) and own_bits.num_bits == other_bits.num_bits
            # A key sets the same bits in both, so filters without a common bit share no key.
            both = int.from_bytes(own_bits.bitmap, "little") & int.from_bytes(other_bits.bitmap, "little")
            return alike and both == 0
    return False


def touches_schema_metadata(operation: op.Operation) -> bool:
    """Whether an operation changes metadata of the schema or of fields."""
    return isinstance(operation, op.UpdateConfig) and (
        operation.schema_metadata is not None or bool(operation.field_metadata)
    )


def config_clash(ours: op.Operation, theirs: op.Operation) -> Clash | None:
    """Whether both set one key of the config or of some metadata."""
    own_set, own_removed = _config_keys(ours)
    set_, removed = _config_keys(theirs)
    common = (own_set & (set_ | removed)) | (set_ & own_removed)
    if common:
        return never(f"config key {min(common)!r} was set by both")
    if not isinstance(ours, op.UpdateConfig) or not isinstance(theirs, op.UpdateConfig):
        return None
    if ours.schema_metadata is not None and theirs.schema_metadata is not None:
        return never("the schema's metadata was changed by both")
    fields = set(ours.field_metadata) & set(theirs.field_metadata)
    if fields:
        return never(f"metadata of field {min(fields)} was changed by both")
    own_table, table = ours.table_metadata, theirs.table_metadata
    if own_table is not None and table is not None:
        keys = {key for key, _ in own_table.entries} & {key for key, _ in table.entries}
        if keys or own_table.replace or table.replace:
            return never("the table's metadata was changed by both")
    return None


def _config_keys(operation: op.Operation) -> tuple[set[str], set[str]]:
    """Keys of the config that an operation sets, and those it removes."""
    if isinstance(operation, op.Overwrite):
        return set(operation.config), set()
    if not isinstance(operation, op.UpdateConfig) or operation.config is None:
        return set(), set()
    entries = operation.config.entries
    return {key for key, value in entries if value is not None}, {key for key, value in entries if value is None}


def base_clash(ours: op.Operation, theirs: op.Operation) -> Clash | None:
    """Whether both add a base path of one id, name or path. Those without an id are numbered at the commit."""
    if not isinstance(ours, op.UpdateBases) or not isinstance(theirs, op.UpdateBases):
        return None
    for own in ours.new_bases:
        for other in theirs.new_bases:
            same_id = own.id != 0 and own.id == other.id
            if same_id or own.path == other.path or (own.name is not None and own.name == other.name):
                return never(f"base path {own.path!r} was added by both")
    return None


def log_entries(operation: op.Operation) -> tuple[bytes, ...]:
    """What an operation says about a write-ahead log."""
    return operation.compacted_sstables if isinstance(operation, op.Update | op.UpdateMemWalState) else ()
