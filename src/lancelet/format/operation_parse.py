"""From operation messages to dataclasses, one function for each kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lancelet.errors import Corrupt, Unsupported
from lancelet.format.fields import Schema, parse_fields
from lancelet.format.fragments import Fragment, read_data_file, read_fragment
from lancelet.format.indexes import read_details, read_index, read_index_file, read_uuid
from lancelet.format.manifest import read_base_path
from lancelet.format.operations import (
    Append,
    BloomKeys,
    Clone,
    CreateIndex,
    DataOverlay,
    DataOverlayGroup,
    DataReplacement,
    DataReplacementGroup,
    Delete,
    ExactKeys,
    KeyFilter,
    MapUpdate,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
    UpdateMode,
)
from lancelet.format.preserve import texts_of_bytes
from lancelet.format.protos import schema_pb2, table_pb2
from lancelet.format.protos import transaction_pb2 as wire

__all__ = ["read_operation"]


def read_operation(message: wire.Transaction) -> Operation | None:
    """The operation of a transaction; None if it has none that this release knows."""
    match message.WhichOneof("operation"):
        case "append":
            return Append(_fragments(message.append.fragments))
        case "delete":
            return _delete(message.delete)
        case "overwrite":
            return _overwrite(message.overwrite)
        case "create_index":
            return _create_index(message.create_index)
        case "rewrite":
            return _rewrite(message.rewrite)
        case "merge":
            return _merge(message.merge)
        case "restore":
            return Restore(message.restore.version)
        case "reserve_fragments":
            return ReserveFragments(message.reserve_fragments.num_fragments)
        case "update":
            return _update(message.update)
        case "project":
            return Project(Schema(parse_fields(message.project.schema)), message.project.preserves_nullability)
        case "update_config":
            return _update_config(message.update_config)
        case "data_replacement":
            return _data_replacement(message.data_replacement)
        case "update_mem_wal_state":
            return UpdateMemWalState(tuple(message.update_mem_wal_state.compacted_sstables))
        case "clone":
            return _clone(message.clone)
        case "update_bases":
            return UpdateBases(tuple(read_base_path(item) for item in message.update_bases.new_bases))
        case "data_overlay":
            groups = message.data_overlay.groups
            return DataOverlay(tuple(DataOverlayGroup(item.fragment_id, tuple(item.overlays)) for item in groups))
        case _:
            return None


def _fragments(messages: Iterable[table_pb2.Fragment]) -> tuple[Fragment, ...]:
    return tuple(read_fragment(item) for item in messages)


def _schema(fields: Iterable[schema_pb2.Field], metadata: Mapping[str, bytes]) -> Schema:
    return Schema(parse_fields(fields), texts_of_bytes(metadata))


def _delete(message: wire.Delete) -> Delete:
    return Delete(_fragments(message.updated_fragments), tuple(message.deleted_fragment_ids), message.predicate)


def _overwrite(message: wire.Overwrite) -> Overwrite:
    return Overwrite(
        fragments=_fragments(message.fragments),
        schema=_schema(message.schema, message.schema_metadata),
        config=dict(message.config_upsert_values),
        initial_bases=tuple(read_base_path(item) for item in message.initial_bases),
    )


def _create_index(message: wire.CreateIndex) -> CreateIndex:
    return CreateIndex(
        new_indexes=tuple(read_index(item) for item in message.new_indices),
        removed_indexes=tuple(read_index(item) for item in message.removed_indices),
    )


def _rewrite(message: wire.Rewrite) -> Rewrite:
    groups = [RewriteGroup(_fragments(item.old_fragments), _fragments(item.new_fragments)) for item in message.groups]
    if message.old_fragments or message.new_fragments:
        groups.insert(0, RewriteGroup(_fragments(message.old_fragments), _fragments(message.new_fragments)))
    indexes = []
    for item in message.rewritten_indices:
        details = read_details(item.new_index_details) if item.HasField("new_index_details") else None
        indexes.append(
            RewrittenIndex(
                old_id=read_uuid(item.old_id, "rewritten index"),
                new_id=read_uuid(item.new_id, "rewritten index"),
                details=details,
                index_version=item.new_index_version,
                files=tuple(read_index_file(file) for file in item.new_index_files),
            )
        )
    return Rewrite(tuple(groups), tuple(indexes))


def _merge(message: wire.Merge) -> Merge:
    schema = _schema(message.schema, message.schema_metadata)
    return Merge(_fragments(message.fragments), schema, message.preserves_nullability)


def _update(message: wire.Update) -> Update:
    mode = int(message.update_mode)
    if mode not in (UpdateMode.REWRITE_ROWS, UpdateMode.REWRITE_COLUMNS):
        raise Unsupported(f"update is of mode {mode}, expected 0 (rows rewritten) or 1 (columns rewritten)")
    return Update(
        removed_fragment_ids=tuple(message.removed_fragment_ids),
        updated_fragments=_fragments(message.updated_fragments),
        new_fragments=_fragments(message.new_fragments),
        fields_modified=tuple(message.fields_modified),
        fields_for_preserving_frag_bitmap=tuple(message.fields_for_preserving_frag_bitmap),
        mode=UpdateMode(mode),
        inserted_rows=_key_filter(message.inserted_rows) if message.HasField("inserted_rows") else None,
        updated_offset_bitmaps=dict(message.updated_fragment_offset_bitmaps),
        updated_offsets={key: tuple(value.values) for key, value in message.updated_fragment_offsets.items()},
        compacted_sstables=tuple(message.compacted_sstables),
    )


def _key_filter(message: wire.KeyExistenceFilter) -> KeyFilter:
    keys: ExactKeys | BloomKeys | None = None
    if message.HasField("exact"):
        keys = ExactKeys(tuple(message.exact.key_hashes))
    elif message.HasField("bloom"):
        bloom = message.bloom
        keys = BloomKeys(bloom.bitmap, bloom.num_bits, bloom.number_of_items, bloom.probability)
    return KeyFilter(tuple(message.field_ids), keys)


def _update_config(message: wire.UpdateConfig) -> UpdateConfig:
    config = _map_update(message.config_updates) if message.HasField("config_updates") else None
    if config is None and (message.upsert_values or message.delete_keys):
        removed = [(key, None) for key in message.delete_keys]
        config = MapUpdate((*message.upsert_values.items(), *removed))
    table = _map_update(message.table_metadata_updates) if message.HasField("table_metadata_updates") else None
    schema = _map_update(message.schema_metadata_updates) if message.HasField("schema_metadata_updates") else None
    if schema is None and message.schema_metadata:
        schema = MapUpdate(tuple(message.schema_metadata.items()), replace=True)
    fields = {key: _map_update(value) for key, value in message.field_metadata_updates.items()}
    for number, old in message.field_metadata.items():
        fields.setdefault(number, MapUpdate(tuple(old.metadata.items()), replace=True))
    return UpdateConfig(config, table, schema, fields)


def _map_update(message: wire.UpdateMap) -> MapUpdate:
    entries = ((item.key, item.value if item.HasField("value") else None) for item in message.update_entries)
    return MapUpdate(tuple(entries), message.replace)


def _data_replacement(message: wire.DataReplacement) -> DataReplacement:
    groups = []
    for item in message.replacements:
        if not item.HasField("new_file"):
            raise Corrupt(f"replacement in fragment {item.fragment_id} has no file", fragment=item.fragment_id)
        groups.append(DataReplacementGroup(item.fragment_id, read_data_file(item.new_file)))
    return DataReplacement(tuple(groups))


def _clone(message: wire.Clone) -> Clone:
    return Clone(
        is_shallow=message.is_shallow,
        ref_version=message.ref_version,
        ref_path=message.ref_path,
        ref_name=message.ref_name if message.HasField("ref_name") else None,
        branch_name=message.branch_name if message.HasField("branch_name") else None,
    )
