"""What a fragment becomes by new columns, or new values in columns: files are written, and nothing is committed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, cast, overload

import pyarrow as pa

from lancelet.dataset.columns import values_of
from lancelet.dataset.fragments.convert import from_stored
from lancelet.dataset.fragments.metadata import FragmentMetadata
from lancelet.dataset.udf import BatchSource, BatchUDF, Transforms, normalize_transform
from lancelet.errors import InvalidInput
from lancelet.format.arrow import schema_from_arrow
from lancelet.format.fragments import Fragment
from lancelet.format.manifest import data_version
from lancelet.ops.backfill.backfill import plan_backfill
from lancelet.ops.backfill.fields import NewFields, new_fields
from lancelet.ops.backfill.filled import Filled
from lancelet.ops.backfill.joined import Joined, JoinRows, join_rows
from lancelet.ops.backfill.values import Values
from lancelet.ops.blob_input import table_schema
from lancelet.ops.fitting import fitting
from lancelet.ops.merge.rewrite_columns import ColumnsOut
from lancelet.ops.new_columns import fill_from
from lancelet.query.request import ROW_ADDRESS, ScanRequest, bound_schema, column_named
from lancelet.query.scan import scan
from lancelet.rows.addresses import as_uint64s, offsets_of
from lancelet.schema import LanceSchema
from lancelet.types import ReaderLike, reader_of

if TYPE_CHECKING:
    from lancelet.dataset.lance_dataset import LanceDataset

__all__ = ["FragmentColumns"]

#: The share of the memory budget that rows to join with may take before they go to disk.
_SHARE = 4


class FragmentColumns:
    """A fragment's new columns, each change as what a manifest is to say of the fragment afterwards."""

    _dataset: LanceDataset
    _fragment: Fragment

    def merge(
        self, data_obj: ReaderLike, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """Put the columns of other rows in by key, as ``LanceDataset.merge`` does for all fragments.

        Returns the fragment, and the schema of the table with it: for ``LanceOperation.Merge``.

        >>> import lancelet
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://fragment-merge")
        >>> made = [item.merge(pa.table({"x": [2], "y": ["b"]}), "x") for item in dataset.get_fragments()]
        >>> operation = lancelet.LanceOperation.Merge([item for item, _ in made], made[0][1])
        >>> lancelet.LanceDataset.commit(dataset, operation, read_version=1).to_table()["y"].to_pylist()
        [None, 'b']
        """
        rows = self._rows(data_obj, left_on if right_on is None else right_on, schema)
        return self._filled_by(Joined(rows, left_on))

    def merge_columns(
        self,
        value_func: Transforms,
        columns: list[str] | None = None,
        batch_size: int | None = None,
        reader_schema: pa.Schema | None = None,
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """Put columns in, with values as ``LanceDataset.add_columns`` takes them; a reader has this fragment's rows.

        Returns the fragment, and the schema of the table with it: for ``LanceOperation.Merge``.
        """
        made = normalize_transform(value_func, cast("BatchSource", self), columns, reader_schema)
        if isinstance(made, pa.RecordBatchReader):
            snapshot = self._dataset.snapshot
            fields = new_fields(snapshot, made.schema)
            return self._with(fields, fill_from(snapshot, fields, made, [self._fragment])[0])
        if isinstance(made, BatchUDF) and made.cache is not None:
            hint = "keep results of whole fragments yourself"
            raise InvalidInput("a single fragment takes no function with a checkpoint file", hint=hint)
        return self._filled_by(values_of(made, columns, batch_size))

    @overload
    def update_columns(
        self,
        data_obj: ReaderLike,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: Literal[False] = False,
    ) -> tuple[FragmentMetadata, list[int]]: ...

    @overload
    def update_columns(
        self,
        data_obj: ReaderLike,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: Literal[True],
    ) -> tuple[FragmentMetadata, list[int], bytes]: ...

    def update_columns(
        self,
        data_obj: ReaderLike,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: bool = False,
    ) -> tuple[FragmentMetadata, list[int]] | tuple[FragmentMetadata, list[int], bytes]:
        """Give columns new values, those of other rows with the same key; rows without such a row keep theirs.

        Returns the fragment and the ids of the fields that changed, and ``with_offsets`` the numbers of the rows that
        changed as a portable Roaring bitmap: for ``LanceOperation.Update``.

        >>> import lancelet
        >>> dataset = lancelet.write_dataset(pa.table({"id": [1, 2], "x": ["a", "b"]}), "memory://update-columns")
        >>> made, fields = dataset.get_fragment(0).update_columns(pa.table({"id": [2], "x": ["B"]}), "id")
        >>> operation = lancelet.LanceOperation.Update(updated_fragments=[made], fields_modified=fields)
        >>> lancelet.LanceDataset.commit(dataset, operation, read_version=1).to_table()["x"].to_pylist()
        ['a', 'B']
        """
        snapshot = self._dataset.snapshot
        version = data_version(snapshot.manifest)
        rows = self._rows(data_obj, left_on if right_on is None else right_on, schema)
        given = table_schema(schema_from_arrow(rows.schema), version)
        fields = fitting(snapshot.schema, given, updates_only=True)
        key = column_named(left_on, bound_schema(snapshot.schema))
        rows.check_key(left_on, key.type)
        address = column_named(ROW_ADDRESS, bound_schema(snapshot.schema))
        request = ScanRequest(columns=(("key", key), (ROW_ADDRESS, address)), fragments=(self._fragment.id,))
        known = scan(snapshot, request, places=self._dataset.places).read_all().combine_chunks()
        found = rows.find(_one(known["key"]))
        changed = found >= 0
        offsets = offsets_of(as_uint64s(_one(known[ROW_ADDRESS]).to_numpy())[changed])
        with ColumnsOut(fields, version, snapshot, self._dataset.places) as out:
            made = out.rewrite(self._fragment, pa.Table.from_batches([rows.take(found[changed])]), offsets)
        numbers = [item.id for item in fields.walk()]
        if not with_offsets:
            return from_stored(made), numbers
        return from_stored(made), numbers, out.offsets[made.id]

    def _rows(self, given: ReaderLike, key: str, schema: pa.Schema | None) -> JoinRows:
        return join_rows(reader_of(given, schema), key, most=self._dataset.snapshot.options.memory_budget // _SHARE)

    def _filled_by(self, values: Values) -> tuple[FragmentMetadata, LanceSchema]:
        snapshot = self._dataset.snapshot
        plan = plan_backfill(snapshot, values, fragments=[self._fragment.id])
        made = [filled for task in plan.plan.tasks for filled in task.run(snapshot.store)]
        return self._with(plan.fields, made[0] if made else None)

    def _with(self, fields: NewFields, filled: Filled | None) -> tuple[FragmentMetadata, LanceSchema]:
        files = self._fragment.files
        if filled is not None and filled.file is not None:
            files = (*files, filled.file)
        return from_stored(replace(self._fragment, files=files)), LanceSchema(fields.schema)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.array([], column.type)
