"""What is said about a table: its config, its metadata, its schema's and its fields', its base paths."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Self

import pyarrow as pa

from lancelet.dataset.base_path import DatasetBasePath
from lancelet.dataset.core import DatasetCore
from lancelet.errors import InvalidInput
from lancelet.format import operations as op
from lancelet.format.arrow import schema_to_arrow
from lancelet.format.flags import STABLE_ROW_IDS
from lancelet.format.manifest import data_version
from lancelet.format.transaction import Transaction
from lancelet.schema.lance_schema import LanceSchema
from lancelet.table.bases import add_bases_transaction
from lancelet.table.commit import commit

__all__ = ["DatasetSettings"]

#: A key's value; None takes the key away.
Change = Mapping[str, str | None]


class DatasetSettings(DatasetCore):
    """What a table says of itself, and changes of it. Each change is a commit."""

    @property
    def lance_schema(self) -> LanceSchema:
        """The columns with the ids that data files know them by."""
        return LanceSchema(self._snapshot.schema)

    @property
    def stored_schema(self) -> pa.Schema:
        """The stored columns, whatever the options of scans are."""
        return schema_to_arrow(self._snapshot.schema)

    @property
    def data_storage_version(self) -> str:
        """The version of data files in which new rows are written."""
        return data_version(self._snapshot.manifest).label

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether a row keeps its id when it moves."""
        return bool(self._snapshot.manifest.reader_flags & STABLE_ROW_IDS.value)

    @property
    def max_field_id(self) -> int:
        """The highest id that a field of the table has; -1 if it has no fields."""
        return max((item.id for item in self._snapshot.schema.walk()), default=-1)

    @property
    def metadata(self) -> dict[str, str]:
        """The table's metadata."""
        return dict(self._snapshot.manifest.table_metadata)

    @property
    def schema_metadata(self) -> dict[str, str]:
        """The schema's metadata."""
        return dict(self._snapshot.schema.metadata)

    def config(self) -> dict[str, str]:
        """The table's config."""
        return dict(self._snapshot.manifest.config)

    def update_config(self, values: Change, *, replace: bool = False) -> dict[str, str]:
        """Set keys of the config, or take them away (None); ``replace`` drops all others. Returns the config after.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1]}), "memory://configured")
        >>> dataset.update_config({"owner": "me"}), dataset.update_config({"owner": None})
        ({'owner': 'me'}, {})
        """
        self._configure(op.UpdateConfig(config=_update(values, replace)))
        return self.config()

    def delete_config_keys(self, keys: Sequence[str]) -> None:
        """Take keys of the config away."""
        self._configure(op.UpdateConfig(config=_update(dict.fromkeys(keys), False)))

    def update_metadata(self, values: Change, *, replace: bool = False) -> dict[str, str]:
        """Set keys of the table's metadata, or take them away (None). Returns the metadata after."""
        self._configure(op.UpdateConfig(table_metadata=_update(values, replace)))
        return self.metadata

    def update_schema_metadata(self, values: Change, *, replace: bool = False) -> dict[str, str]:
        """Set keys of the schema's metadata, or take them away (None). Returns the metadata after."""
        self._configure(op.UpdateConfig(schema_metadata=_update(values, replace)))
        return self.schema_metadata

    def update_field_metadata(self, field_updates: Mapping[str, Change], *, replace: bool = False) -> None:
        """Set keys of fields' metadata, or take them away (None); the fields are given by their paths."""
        fields = {}
        for path, values in field_updates.items():
            found = self.lance_schema.field(path)
            if found is None:
                known = [item.name for item in self._snapshot.schema.fields]
                raise InvalidInput(f"there is no column {path!r}", column=path, hint=f"there are {known}")
            fields[found.id()] = _update(values, replace)
        self._configure(op.UpdateConfig(field_metadata=fields))

    def replace_schema_metadata(self, new_metadata: Mapping[str, str]) -> None:
        """Deprecated: ``update_schema_metadata`` with ``replace``."""
        text = "replace_schema_metadata is deprecated, use update_schema_metadata(metadata, replace=True)"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        self.update_schema_metadata(new_metadata, replace=True)

    def replace_field_metadata(self, field_name: str, new_metadata: Mapping[str, str]) -> None:
        """Deprecated: ``update_field_metadata`` with ``replace``."""
        text = "replace_field_metadata is deprecated, use update_field_metadata with paths and replace=True"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        self.update_field_metadata({field_name: new_metadata}, replace=True)

    def replace_schema(self, schema: pa.Schema) -> None:
        """Not possible: it is there because pyarrow's datasets have it."""
        raise NotImplementedError(
            "the schema of a dataset is not replaced: use alter_columns, update_schema_metadata, update_field_metadata"
        )

    def base_paths(self) -> dict[int, DatasetBasePath]:
        """The places besides the table's own folder where files of it lie, by id."""
        return {item.id: DatasetBasePath.from_stored(item) for item in self._snapshot.manifest.base_paths}

    def add_bases(
        self, new_bases: Sequence[DatasetBasePath], transaction_properties: Mapping[str, str] | None = None
    ) -> Self:
        """Add places where files of the table may lie; their ids are given now. The dataset itself."""
        transaction = add_bases_transaction(self._snapshot, [item.to_stored() for item in new_bases])
        properties = {**transaction.properties, **(transaction_properties or {})}
        made = Transaction(transaction.read_version, transaction.operation, transaction.uuid, properties)
        self._follow(commit(self._snapshot, made, commit_lock=self._commit_lock()))
        return self

    def _configure(self, operation: op.UpdateConfig) -> None:
        transaction = Transaction(self._snapshot.version, operation)
        self._follow(commit(self._snapshot, transaction, commit_lock=self._commit_lock()))


def _update(values: Change, replace: bool) -> op.MapUpdate:
    return op.MapUpdate(tuple(values.items()), replace)
