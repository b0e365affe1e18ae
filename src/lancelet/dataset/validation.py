"""Validation: whether a version's files are there, and are what its manifest says, as far as metadata tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lancelet.errors import Corrupt, LanceletError, NotFound
from lancelet.file.data_file import DataFile as OpenFile
from lancelet.file.data_file import open_file
from lancelet.format.fields import Schema
from lancelet.format.fragments import DataFile, Fragment
from lancelet.format.versions import FileVersion
from lancelet.rows.segments import read_sequence
from lancelet.rows.versions import read_version_sequence
from lancelet.storage.paths import join_uri
from lancelet.table.deletions import deletions_of
from lancelet.table.parallel import in_order
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["validate_fragments", "validate_snapshot"]


def validate_snapshot(snapshot: Snapshot, places: Places) -> None:
    """Raise Corrupt where a version is not sound: its schema, its fragments, their files."""
    manifest = snapshot.manifest
    _check_ids((item.id for item in manifest.schema.walk() if item.id >= 0), "field", snapshot)
    _check_ids(manifest.fragments.ids().tolist(), "fragment", snapshot)
    highest = manifest.max_fragment_id
    last = int(manifest.fragments.ids().max()) if len(manifest.fragments) else None
    if highest is not None and last is not None and last > highest:
        raise Corrupt(f"fragment {last} is above the highest number given, {highest}", uri=snapshot.uri)
    validate_fragments(snapshot, places, manifest.fragments)


def validate_fragments(snapshot: Snapshot, places: Places, fragments: Iterable[Fragment]) -> None:
    """Raise Corrupt where files of fragments are missing, or have not the columns or rows that they should have."""

    def check(item: Fragment) -> None:
        try:
            _check_fragment(item, snapshot.schema, places)
        except LanceletError as error:
            raise error.where(fragment=item.id, version=snapshot.version) from None

    for _ in in_order(check, fragments, concurrency=snapshot.options.io_concurrency):
        pass


def _check_ids(numbers: Iterable[int], what: str, snapshot: Snapshot) -> None:
    twice = [number for number, count in Counter(numbers).items() if count > 1]
    if twice:
        raise Corrupt(f"{what} {twice[0]} stands twice in the manifest", uri=snapshot.uri, version=snapshot.version)


def _check_fragment(item: Fragment, schema: Schema, places: Places) -> None:
    known = {field.id for field in schema.walk()}
    held: set[int] = set()
    for file in item.files:
        for number in file.fields:
            if number in held and number in known:
                raise Corrupt(f"field {number} lies in two data files of one fragment")
        held.update(file.fields)
        _check_file(file, item, places)
    rows = item.physical_rows
    deletions_of(places, item)
    if rows is not None and item.inline_row_ids is not None:
        read_sequence(item.inline_row_ids, rows=rows)
    for versions in (item.inline_created_at_versions, item.inline_last_updated_at_versions):
        if rows is not None and versions is not None:
            read_version_sequence(versions, rows=rows)


def _check_file(file: DataFile, item: Fragment, places: Places) -> None:
    store, path = places.data_file(file)
    uri = join_uri(store.uri, path)
    if file.version is FileVersion.V0_1:
        try:
            store.size(path)
        except NotFound:
            raise Corrupt("the data file is missing", uri=uri) from None
        return
    try:
        # Not by way of the cache: the question is what the store holds now.
        found: OpenFile = open_file(store, path)
    except NotFound:
        raise Corrupt("the data file is missing", uri=uri) from None
    if file.file_size is not None and file.file_size != found.size:
        raise Corrupt(f"the file has {found.size} bytes, the manifest says {file.file_size}", uri=uri)
    if item.physical_rows is not None and found.num_rows != item.physical_rows:
        raise Corrupt(f"the file has {found.num_rows} rows, its fragment {item.physical_rows}", uri=uri)
    columns = len(found.column_places)
    odd = [number for number in file.column_indices if number >= columns]
    if odd:
        raise Corrupt(f"column {odd[0]} is named of a file with {columns}", uri=uri)
