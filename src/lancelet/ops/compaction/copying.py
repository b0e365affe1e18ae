"""Whole pages in new fragments: what a task does where no row is deleted and no value needs to be looked at."""

from __future__ import annotations

from collections.abc import Sequence

from lancelet.events import emit
from lancelet.file.copying import PageCopier, copy_obstacle
from lancelet.file.data_file import DataFile as OpenFile
from lancelet.file.data_file import open_file
from lancelet.file.shapes import column_numbers
from lancelet.format.fields import Schema
from lancelet.format.fragments import DataFile, Fragment
from lancelet.format.names import DATA, data_file_name
from lancelet.format.versions import FileVersion
from lancelet.ops.blob_carrier import has_blobs
from lancelet.ops.cancellation import check_cancelled
from lancelet.ops.compaction.bins import rows_of_files
from lancelet.ops.compaction.options import CompactionOptions
from lancelet.ops.data_files import Destination, discard
from lancelet.ops.telling import tell_files
from lancelet.storage.store import Store
from lancelet.table.paths import Places

__all__ = ["copy_fragments", "files_to_copy"]


def files_to_copy(
    places: Places, schema: Schema, version: FileVersion, fragments: Sequence[Fragment]
) -> list[OpenFile] | str:
    """The files of fragments whose pages can be copied as they are, opened; or why they cannot be."""
    if has_blobs(schema):
        return "the table has blobs, which lie beside their pages"
    numbers = column_numbers(schema, version)
    fields = tuple(number for number in numbers if number >= 0)
    found = []
    for item in fragments:
        if item.deletion_file is not None:
            return f"rows of fragment {item.id} are deleted"
        if item.overlays or len(item.files) != 1:
            return f"fragment {item.id} has {len(item.files)} files, and {len(item.overlays)} over them"
        (file,) = item.files
        if file.fields != fields or file.column_indices != tuple(numbers[number] for number in fields):
            return f"the file of fragment {item.id} has other fields, or in another order, than the table"
        if FileVersion.known(file.file_major_version, file.file_minor_version) is not version:
            return f"the file of fragment {item.id} is not of version {version.label}"
        store, path = places.data_file(file)
        opened = open_file(store, path, size=file.file_size)
        obstacle = copy_obstacle(opened, schema, version)
        if obstacle is not None:
            return f"fragment {item.id}: {obstacle}"
        found.append(opened)
    return found


def copy_fragments(
    store: Store, schema: Schema, version: FileVersion, files: Sequence[OpenFile], options: CompactionOptions
) -> list[Fragment]:
    """New fragments of the pages of files. Rows are divided where a file ends; nothing is left when that fails."""
    sizes = rows_of_files(sum(file.num_rows for file in files), options.target_rows_per_fragment)
    most = options.max_bytes_per_file
    made: list[Fragment] = []
    current: _CopiedFile | None = None
    try:
        for file in files:
            check_cancelled()
            current = current or _CopiedFile(store, schema, version, options.binary_copy_read_batch_bytes)
            current.copier.append(file)
            enough = current.copier.num_rows >= sizes[min(len(made), len(sizes) - 1)] if sizes else False
            if enough or (most is not None and current.size >= most):
                made.append(current.finish())
                current = None
        if current is not None:
            made.append(current.finish())
            current = None
    except BaseException:
        if current is not None:
            current.copier.abort()
        discard([Destination(store)], [file for item in made for file in item.files])
        raise
    emit("compaction.copied", uri=store.uri, files=len(files), fragments=len(made))
    return made


class _CopiedFile:
    """A data file of the table that is being made."""

    def __init__(self, store: Store, schema: Schema, version: FileVersion, batch_bytes: int) -> None:
        self._schema, self._version = schema, version
        self._name = data_file_name()
        path = f"{DATA}/{self._name}"
        tell_files([path])
        self._output = store.writer(path)
        self.copier = PageCopier(self._output, schema, version, batch_bytes=batch_bytes)

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._output.position

    def finish(self) -> Fragment:
        """Publish the file; the fragment that consists of it."""
        size = self.copier.close()
        numbers = {number: at for number, at in column_numbers(self._schema, self._version).items() if number >= 0}
        major, minor = self._version.manifest_numbers
        file = DataFile(self._name, tuple(numbers), tuple(numbers.values()), major, minor, size)
        return Fragment(0, (file,), physical_rows=self.copier.num_rows)
