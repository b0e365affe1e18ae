"""Data files that lie among those of a table already, described as a manifest is to describe them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lancelet.dataset.fragments.convert import file_from_stored
from lancelet.dataset.fragments.metadata import DataFile
from lancelet.errors import InvalidInput, NotFound, Unsupported
from lancelet.file.data_file import open_file
from lancelet.file.shapes import column_numbers
from lancelet.format.blobs import file_schema
from lancelet.format.fields import Field, Schema
from lancelet.format.fragments import DataFile as StoredFile
from lancelet.format.versions import FileVersion

if TYPE_CHECKING:
    from lancelet.dataset.lance_dataset import LanceDataset

__all__ = ["describe_file"]


def describe_file(dataset: LanceDataset, path: str, *, base_id: int | None = None) -> tuple[DataFile, int]:
    """What a manifest says of a data file, whose columns are those of the table with the same names; and its rows.

    NotFound if there is no such file; InvalidInput where it has a column that the table has not.
    """
    store, place = dataset.places.data_file(StoredFile(path, (), base_id=base_id))
    try:
        file = open_file(store, place)
    except NotFound as error:
        raise error.where(hint="the path is relative to the table's folder of data files") from None
    if file.version is FileVersion.V0_1:
        raise Unsupported("files of version 0.1 do not say which fields they hold", uri=file.uri)
    held = file.descriptor.schema
    columns = column_numbers(held, file.version)
    numbers = _table_ids(held, file_schema(dataset.snapshot.schema), file.uri)
    fields = [numbers[number] for number in columns if number in numbers]
    places = [column for number, column in columns.items() if number in numbers]
    major, minor = file.version.manifest_numbers
    made = StoredFile(path, tuple(fields), tuple(places), major, minor, file.size, base_id=base_id)
    return file_from_stored(made), file.num_rows


def _table_ids(held: Schema, table: Schema, uri: str) -> dict[int, int]:
    """The table's ids of a file's fields, by the file's."""
    found: dict[int, int] = {}

    def match(ours: Field, theirs: Field, path: str) -> None:
        if ours.logical_type != theirs.logical_type:
            text = f"the file has type {ours.logical_type}, the table {theirs.logical_type}"
            raise InvalidInput(text, uri=uri, column=path)
        if ours.id >= 0:
            found[ours.id] = theirs.id
        names = {child.name: child for child in theirs.children}
        for place, child in enumerate(ours.children):
            # What the items of lists and maps are called makes no difference.
            other = names.get(child.name) if ours.logical_type == "struct" else theirs.children[place]
            if other is None:
                raise InvalidInput("the table has no such column", uri=uri, column=f"{path}.{child.name}")
            match(child, other, f"{path}.{child.name}")

    tops = {item.name: item for item in table.fields}
    for item in held.fields:
        if item.name not in tops:
            raise InvalidInput("the table has no such column", uri=uri, column=item.name, hint=f"it has {[*tops]}")
        match(item, tops[item.name], item.name)
    return found
