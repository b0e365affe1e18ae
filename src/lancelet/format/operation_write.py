"""From operations to messages, one function for each kind."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch

from lancelet.errors import InvalidInput
from lancelet.format.fields import write_fields
from lancelet.format.fragments import Fragment, data_file_message, fragment_message
from lancelet.format.indexes import details_message, index_file_message, index_message, uuid_message
from lancelet.format.manifest import base_path_message
from lancelet.format.operations import (
    Append,
    BloomKeys,
    Clone,
    CreateIndex,
    DataOverlay,
    DataReplacement,
    Delete,
    ExactKeys,
    KeyFilter,
    MapUpdate,
    Merge,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewrittenIndex,
    Unknown,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
)
from lancelet.format.preserve import bytes_of_texts, put_unknown
from lancelet.format.protos import table_pb2
from lancelet.format.protos import transaction_pb2 as wire

__all__ = ["write_operation"]


@singledispatch
def write_operation(operation: object) -> wire.Transaction:
    """A transaction message with nothing but the operation set."""
    raise InvalidInput(f"{type(operation).__name__} is no operation of a transaction")


def _fragments(fragments: Iterable[Fragment]) -> list[table_pb2.Fragment]:
    return [fragment_message(item) for item in fragments]


@write_operation.register
def _append(item: Append) -> wire.Transaction:
    return wire.Transaction(append=wire.Append(fragments=_fragments(item.fragments)))


@write_operation.register
def _delete(item: Delete) -> wire.Transaction:
    message = wire.Delete(
        updated_fragments=_fragments(item.updated_fragments),
        deleted_fragment_ids=item.deleted_fragment_ids,
        predicate=item.predicate,
    )
    return wire.Transaction(delete=message)


@write_operation.register
def _overwrite(item: Overwrite) -> wire.Transaction:
    message = wire.Overwrite(
        fragments=_fragments(item.fragments),
        schema=write_fields(item.schema.fields),
        schema_metadata=bytes_of_texts(item.schema.metadata),
        config_upsert_values=item.config,
        initial_bases=[base_path_message(base) for base in item.initial_bases],
    )
    return wire.Transaction(overwrite=message)


@write_operation.register
def _create_index(item: CreateIndex) -> wire.Transaction:
    message = wire.CreateIndex(
        new_indices=[index_message(index) for index in item.new_indexes],
        removed_indices=[index_message(index) for index in item.removed_indexes],
    )
    return wire.Transaction(create_index=message)


@write_operation.register
def _rewrite(item: Rewrite) -> wire.Transaction:
    groups = [
        wire.Rewrite.Group(old_fragments=_fragments(group.old_fragments), new_fragments=_fragments(group.new_fragments))
        for group in item.groups
    ]
    indexes = [_rewritten_index(index) for index in item.rewritten_indexes]
    return wire.Transaction(rewrite=wire.Rewrite(groups=groups, rewritten_indices=indexes))


def _rewritten_index(item: RewrittenIndex) -> wire.Rewrite.RewrittenIndex:
    return wire.Rewrite.RewrittenIndex(
        old_id=uuid_message(item.old_id),
        new_id=uuid_message(item.new_id),
        new_index_details=details_message(item.details),
        new_index_version=item.index_version,
        new_index_files=[index_file_message(file) for file in item.files],
    )


@write_operation.register
def _merge(item: Merge) -> wire.Transaction:
    message = wire.Merge(
        fragments=_fragments(item.fragments),
        schema=write_fields(item.schema.fields),
        schema_metadata=bytes_of_texts(item.schema.metadata),
        preserves_nullability=item.preserves_nullability,
    )
    return wire.Transaction(merge=message)


@write_operation.register
def _restore(item: Restore) -> wire.Transaction:
    return wire.Transaction(restore=wire.Restore(version=item.version))


@write_operation.register
def _reserve_fragments(item: ReserveFragments) -> wire.Transaction:
    return wire.Transaction(reserve_fragments=wire.ReserveFragments(num_fragments=item.num_fragments))


@write_operation.register
def _update(item: Update) -> wire.Transaction:
    offsets = {key: wire.Update.Offsets(values=value) for key, value in item.updated_offsets.items()}
    message = wire.Update(
        removed_fragment_ids=item.removed_fragment_ids,
        updated_fragments=_fragments(item.updated_fragments),
        new_fragments=_fragments(item.new_fragments),
        fields_modified=item.fields_modified,
        compacted_sstables=item.compacted_sstables,
        fields_for_preserving_frag_bitmap=item.fields_for_preserving_frag_bitmap,
        update_mode=wire.Update.Mode.ValueType(item.mode),
        inserted_rows=None if item.inserted_rows is None else _key_filter(item.inserted_rows),
        updated_fragment_offsets=offsets,
        updated_fragment_offset_bitmaps=item.updated_offset_bitmaps,
    )
    return wire.Transaction(update=message)


def _key_filter(item: KeyFilter) -> wire.KeyExistenceFilter:
    message = wire.KeyExistenceFilter(field_ids=item.field_ids)
    match item.keys:
        case ExactKeys(key_hashes=hashes):
            message.exact.SetInParent()
            message.exact.key_hashes.extend(hashes)
        case BloomKeys() as bloom:
            message.bloom.SetInParent()
            message.bloom.bitmap = bloom.bitmap
            message.bloom.num_bits = bloom.num_bits
            message.bloom.number_of_items = bloom.number_of_items
            message.bloom.probability = bloom.probability
    return message


@write_operation.register
def _project(item: Project) -> wire.Transaction:
    fields = write_fields(item.schema.fields)
    return wire.Transaction(project=wire.Project(schema=fields, preserves_nullability=item.preserves_nullability))


@write_operation.register
def _update_config(item: UpdateConfig) -> wire.Transaction:
    message = wire.UpdateConfig(
        config_updates=_map_update(item.config),
        table_metadata_updates=_map_update(item.table_metadata),
        schema_metadata_updates=_map_update(item.schema_metadata),
    )
    for number, update in item.field_metadata.items():
        message.field_metadata_updates[number].CopyFrom(_map_update(update) or wire.UpdateMap())
    return wire.Transaction(update_config=message)


def _map_update(item: MapUpdate | None) -> wire.UpdateMap | None:
    if item is None:
        return None
    entries = [wire.UpdateMap.Entry(key=key, value=value) for key, value in item.entries]
    return wire.UpdateMap(update_entries=entries, replace=item.replace)


@write_operation.register
def _data_replacement(item: DataReplacement) -> wire.Transaction:
    groups = [
        wire.DataReplacement.Group(fragment_id=group.fragment_id, new_file=data_file_message(group.new_file))
        for group in item.replacements
    ]
    return wire.Transaction(data_replacement=wire.DataReplacement(replacements=groups))


@write_operation.register
def _update_mem_wal_state(item: UpdateMemWalState) -> wire.Transaction:
    message = wire.UpdateMemWalState(compacted_sstables=item.compacted_sstables)
    return wire.Transaction(update_mem_wal_state=message)


@write_operation.register
def _clone(item: Clone) -> wire.Transaction:
    message = wire.Clone(
        is_shallow=item.is_shallow,
        ref_name=item.ref_name,
        ref_version=item.ref_version,
        ref_path=item.ref_path,
        branch_name=item.branch_name,
    )
    return wire.Transaction(clone=message)


@write_operation.register
def _update_bases(item: UpdateBases) -> wire.Transaction:
    bases = [base_path_message(base) for base in item.new_bases]
    return wire.Transaction(update_bases=wire.UpdateBases(new_bases=bases))


@write_operation.register
def _data_overlay(item: DataOverlay) -> wire.Transaction:
    groups = [wire.DataOverlay.Group(fragment_id=group.fragment_id, overlays=group.overlays) for group in item.groups]
    return wire.Transaction(data_overlay=wire.DataOverlay(groups=groups))


@write_operation.register
def _unknown(item: Unknown) -> wire.Transaction:
    message = wire.Transaction()
    put_unknown(message, item.raw)
    return message
