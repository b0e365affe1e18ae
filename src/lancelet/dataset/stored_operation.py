"""Between operations and transactions as users put them together and as commits store them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from uuid import UUID

import pyarrow as pa

from lancelet.bitmap import Bitmap
from lancelet.dataset.base_path import DatasetBasePath
from lancelet.dataset.fragments.convert import file_from_stored, file_to_stored, from_stored, to_stored_all
from lancelet.dataset.fragments.metadata import FragmentMetadata
from lancelet.dataset.operation import Index, IndexFile, LanceOperation, Transaction
from lancelet.errors import InvalidInput, Unsupported
from lancelet.format import operations as op
from lancelet.format.arrow import schema_from_arrow
from lancelet.format.fields import Schema
from lancelet.format.indexes import IndexDetails, IndexMetadata
from lancelet.format.indexes import IndexFile as StoredIndexFile
from lancelet.format.transaction import Transaction as StoredTransaction
from lancelet.schema.lance_schema import LanceSchema

__all__ = [
    "index_from_stored",
    "index_to_stored",
    "operation_from_stored",
    "operation_to_stored",
    "schema_to_stored",
    "transaction_from_stored",
    "transaction_to_stored",
]

_MODES = {"": op.UpdateMode.REWRITE_ROWS, **{mode.name.lower(): mode for mode in op.UpdateMode}}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_Stored = TypeVar("_Stored")


def transaction_from_stored(stored: StoredTransaction) -> Transaction:
    """What users get to see of a transaction."""
    operation = operation_from_stored(stored.operation)
    return Transaction(stored.read_version, operation, stored.uuid, dict(stored.properties))


def transaction_to_stored(transaction: Transaction) -> StoredTransaction:
    """The transaction that is to be committed."""
    operation = operation_to_stored(transaction.operation)
    properties = dict(transaction.transaction_properties or {})
    return StoredTransaction(transaction.read_version, operation, transaction.uuid, properties)


def operation_from_stored(stored: op.Operation) -> LanceOperation.BaseOperation:
    """What users get to see of an operation; a bare BaseOperation of those that have no class of their own.

    >>> operation_from_stored(op.Restore(3))
    LanceOperation.Restore(version=3)
    """
    made = _from_stored(stored)
    made._stored = stored
    return made


def _from_stored(stored: op.Operation) -> LanceOperation.BaseOperation:
    kinds = LanceOperation
    match stored:
        case op.Append(fragments):
            return kinds.Append(_shown(fragments))
        case op.Delete(updated, deleted, predicate):
            return kinds.Delete(_shown(updated), list(deleted), predicate)
        case op.Overwrite():
            bases = [DatasetBasePath.from_stored(item) for item in stored.initial_bases]
            return kinds.Overwrite(LanceSchema(stored.schema), _shown(stored.fragments), bases or None)
        case op.CreateIndex(new, removed):
            return kinds.CreateIndex(list(map(index_from_stored, new)), list(map(index_from_stored, removed)))
        case op.Rewrite():
            return _rewrite_shown(stored)
        case op.Merge():
            return kinds.Merge(_shown(stored.fragments), LanceSchema(stored.schema), stored.preserves_nullability)
        case op.Restore(version):
            return kinds.Restore(version)
        case op.ReserveFragments(number):
            return kinds.ReserveFragments(number)
        case op.Update():
            return _update_shown(stored)
        case op.Project():
            return kinds.Project(LanceSchema(stored.schema), stored.preserves_nullability)
        case op.UpdateConfig():
            return _config_shown(stored)
        case op.DataReplacement(groups):
            return kinds.DataReplacement(
                [kinds.DataReplacementGroup(item.fragment_id, file_from_stored(item.new_file)) for item in groups]
            )
        case op.Clone():
            return kinds.Clone(
                stored.is_shallow, stored.ref_name, stored.ref_version, stored.ref_path, stored.branch_name
            )
        case op.UpdateBases(bases):
            return kinds.UpdateBases([DatasetBasePath.from_stored(item) for item in bases])
    return kinds.BaseOperation()


def operation_to_stored(operation: LanceOperation.BaseOperation) -> op.Operation:
    """The operation that is to be committed; Unsupported where this release does not commit it."""
    kinds, kept = LanceOperation, operation._stored
    match operation:
        case kinds.Append():
            return op.Append(to_stored_all(operation.fragments))
        case kinds.Delete():
            updated = to_stored_all(operation.updated_fragments)
            return op.Delete(updated, tuple(operation.deleted_fragment_ids), operation.predicate)
        case kinds.Overwrite():
            bases = tuple(item.to_stored() for item in operation.initial_bases or ())
            before = _kept(kept, op.Overwrite) or op.Overwrite((), Schema(()))
            fragments, schema = to_stored_all(operation.fragments), schema_to_stored(operation.new_schema)
            return replace(before, fragments=fragments, schema=schema, initial_bases=bases)
        case kinds.CreateIndex():
            return op.CreateIndex(_indexes(operation.new_indices), _indexes(operation.removed_indices))
        case kinds.Rewrite():
            return _rewrite_stored(operation)
        case kinds.Merge():
            schema = schema_to_stored(operation.schema)
            return op.Merge(to_stored_all(operation.fragments), schema, operation.preserves_nullability)
        case kinds.Restore():
            return op.Restore(operation.version)
        case kinds.ReserveFragments():
            return op.ReserveFragments(operation.num_fragments)
        case kinds.Update():
            return _update_stored(operation)
        case kinds.Project():
            return op.Project(schema_to_stored(operation.schema), operation.preserves_nullability)
        case kinds.UpdateConfig():
            return _config_stored(operation)
        case kinds.DataReplacement():
            groups = operation.replacements
            return op.DataReplacement(
                tuple(op.DataReplacementGroup(item.fragment_id, file_to_stored(item.new_file)) for item in groups)
            )
        case kinds.UpdateBases():
            return op.UpdateBases(tuple(item.to_stored() for item in operation.new_bases))
    raise Unsupported(f"{type(operation).__qualname__} is no operation that can be committed")


def schema_to_stored(schema: LanceSchema | pa.Schema) -> Schema:
    """The schema of a manifest; fields of an Arrow schema are numbered from 0."""
    return schema.stored if isinstance(schema, LanceSchema) else schema_from_arrow(schema)


def index_from_stored(stored: IndexMetadata) -> Index:
    """What users get to see of an index segment."""
    made = stored.created_at
    return Index(
        uuid=str(stored.uuid),
        name=stored.name,
        fields=list(stored.fields),
        dataset_version=stored.dataset_version,
        fragment_ids=Bitmap() if not stored.fragment_bitmap else Bitmap.from_bytes(stored.fragment_bitmap),
        index_version=stored.index_version or 0,
        created_at=None if made is None else _EPOCH + timedelta(milliseconds=made),
        base_id=stored.base_id,
        files=[IndexFile(item.path, item.size_bytes) for item in stored.files] or None,
        index_details=None if stored.details is None else (stored.details.type_url, stored.details.value),
        covering_fields=list(stored.covering_fields),
    )


def index_to_stored(index: Index) -> IndexMetadata:
    """The entry of a manifest."""
    try:
        number = UUID(index.uuid)
    except ValueError:
        raise InvalidInput(f"the uuid of index {index.name!r} is {index.uuid!r}") from None
    made = index.created_at
    return IndexMetadata(
        uuid=number,
        name=index.name,
        fields=tuple(index.fields),
        dataset_version=index.dataset_version,
        fragment_bitmap=Bitmap(index.fragment_ids).to_bytes(),
        details=None if index.index_details is None else IndexDetails(*index.index_details),
        index_version=index.index_version,
        created_at=None if made is None else (made.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1),
        base_id=index.base_id,
        files=tuple(StoredIndexFile(item.path, item.size_bytes) for item in index.files or ()),
        covering_fields=tuple(index.covering_fields),
    )


def _shown(fragments: Iterable[object]) -> list[FragmentMetadata]:
    return [from_stored(item) for item in fragments]  # type: ignore[arg-type]


def _indexes(indexes: Iterable[Index]) -> tuple[IndexMetadata, ...]:
    return tuple(map(index_to_stored, indexes))


def _kept(kept: op.Operation | None, kind: type[_Stored]) -> _Stored | None:
    return kept if isinstance(kept, kind) else None


def _rewrite_shown(stored: op.Rewrite) -> LanceOperation.Rewrite:
    return LanceOperation.Rewrite(
        [LanceOperation.RewriteGroup(_shown(item.old_fragments), _shown(item.new_fragments)) for item in stored.groups],
        [
            LanceOperation.RewrittenIndex(
                str(item.old_id),
                str(item.new_id),
                "" if item.details is None else item.details.type_url,
                b"" if item.details is None else item.details.value,
                item.index_version,
            )
            for item in stored.rewritten_indexes
        ],
    )


def _rewrite_stored(operation: LanceOperation.Rewrite) -> op.Rewrite:
    kept = _kept(operation._stored, op.Rewrite)
    files = {} if kept is None else {item.new_id: item.files for item in kept.rewritten_indexes}
    return op.Rewrite(
        tuple(
            op.RewriteGroup(to_stored_all(item.old_fragments), to_stored_all(item.new_fragments))
            for item in operation.groups
        ),
        tuple(
            op.RewrittenIndex(
                UUID(item.old_id),
                UUID(item.new_id),
                IndexDetails(item.new_details_type_url, item.new_details_value) if item.new_details_type_url else None,
                item.new_index_version,
                files.get(UUID(item.new_id), ()),
            )
            for item in operation.rewritten_indices
        ),
    )


def _update_shown(stored: op.Update) -> LanceOperation.Update:
    offsets = dict(stored.updated_offset_bitmaps)
    return LanceOperation.Update(
        removed_fragment_ids=list(stored.removed_fragment_ids),
        updated_fragments=_shown(stored.updated_fragments),
        new_fragments=_shown(stored.new_fragments),
        fields_modified=list(stored.fields_modified),
        fields_for_preserving_frag_bitmap=list(stored.fields_for_preserving_frag_bitmap),
        update_mode=stored.mode.name.lower(),
        updated_fragment_offsets=offsets or None,
    )


def _update_stored(operation: LanceOperation.Update) -> op.Update:
    mode = _MODES.get(operation.update_mode)
    if mode is None:
        raise InvalidInput(f"update_mode is {operation.update_mode!r}, expected one of {', '.join(map(repr, _MODES))}")
    return replace(
        _kept(operation._stored, op.Update) or op.Update(),
        removed_fragment_ids=tuple(operation.removed_fragment_ids),
        updated_fragments=to_stored_all(operation.updated_fragments),
        new_fragments=to_stored_all(operation.new_fragments),
        fields_modified=tuple(operation.fields_modified),
        fields_for_preserving_frag_bitmap=tuple(operation.fields_for_preserving_frag_bitmap),
        mode=mode,
        updated_offset_bitmaps=dict(operation.updated_fragment_offsets or {}),
    )


def _config_shown(stored: op.UpdateConfig) -> LanceOperation.UpdateConfig:
    def shown(change: op.MapUpdate | None) -> LanceOperation.UpdateMap | None:
        return None if change is None else LanceOperation.UpdateMap(dict(change.entries), change.replace)

    fields = {number: LanceOperation.UpdateMap(dict(item.entries), item.replace)
              for number, item in stored.field_metadata.items()}  # fmt: skip
    return LanceOperation.UpdateConfig(
        shown(stored.config), shown(stored.table_metadata), shown(stored.schema_metadata), fields or None
    )


def _config_stored(operation: LanceOperation.UpdateConfig) -> op.UpdateConfig:
    def stored(change: LanceOperation.UpdateMap | None) -> op.MapUpdate | None:
        return None if change is None else _map_update(change.updates, change.replace)

    fields = operation.field_metadata_updates or {}
    return op.UpdateConfig(
        stored(operation.config_updates),
        stored(operation.table_metadata_updates),
        stored(operation.schema_metadata_updates),
        {number: _map_update(item.updates, item.replace) for number, item in fields.items()},
    )


def _map_update(updates: Mapping[str, str | None], replace: bool) -> op.MapUpdate:
    return op.MapUpdate(tuple(updates.items()), replace)
