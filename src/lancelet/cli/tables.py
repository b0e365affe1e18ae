"""Commands that look at a table or tidy it up; each is a call or two of the dataset."""

from __future__ import annotations

from argparse import Namespace
from datetime import timedelta

from lancelet.cli.output import pairs, rows_text, say
from lancelet.dataset.functions import dataset
from lancelet.dataset.lance_dataset import LanceDataset
from lancelet.errors import InvalidInput, NotFound
from lancelet.file.page_map import page_map
from lancelet.file.reader import LanceFileReader
from lancelet.file.text import size_text, table_text

__all__ = ["cleanup", "compact", "count", "files", "head", "opened", "pages", "schema", "versions"]


def opened(given: Namespace) -> LanceDataset:
    """The table that is meant, at the version that is meant."""
    version = getattr(given, "version", None)
    named = int(version) if version is not None and version.isdigit() else version
    return dataset(given.uri, version=named, storage_options=pairs(given.storage_option) or None)


def versions(given: Namespace) -> None:
    """The history."""
    rows = [
        (
            str(item["version"]),
            f"{item['timestamp']:%Y-%m-%d %H:%M:%S}",
            f"{int(item['metadata']['total_rows']):,}",
            f"{int(item['metadata']['total_fragments']):,}",
            size_text(int(item["metadata"]["total_files_size"])),
        )
        for item in opened(given).versions()
    ]
    say(table_text(("version", "made", "rows", "fragments", "size"), rows, left=()))


def schema(given: Namespace) -> None:
    """The columns."""
    fields = opened(given).schema
    say(
        table_text(
            ("column", "type", "null"),
            [(item.name, str(item.type), _may(item.nullable)) for item in fields],
            left=(0, 1),
        )
    )


def _may(nullable: bool) -> str:
    return "yes" if nullable else "no"


def files(given: Namespace) -> None:
    """Fragments and their data files."""
    rows = []
    for fragment in opened(given).get_fragments():
        for file in fragment.data_files():
            size = "" if file.file_size_bytes is None else size_text(file.file_size_bytes)
            rows.append(
                (
                    str(fragment.fragment_id),
                    f"{fragment.physical_rows:,}",
                    f"{fragment.num_deletions:,}",
                    size,
                    file.path,
                )
            )
    say(table_text(("fragment", "rows", "deleted", "size", "file"), rows, left=(4,)))


def pages(given: Namespace) -> None:
    """The pages of a file, or of the files of a fragment."""
    options = pairs(given.storage_option) or None
    if given.uri.endswith(".lance") and given.fragment is None and not _is_table(given):
        say(page_map(LanceFileReader(given.uri, storage_options=options)))
        return
    table = opened(given)
    fragments = table.get_fragments()
    wanted = [item for item in fragments if given.fragment is None or item.fragment_id == given.fragment]
    if not wanted:
        raise NotFound("there is no such fragment", uri=given.uri, fragment=given.fragment)
    session = table.new_file_session()
    for file in wanted[0].data_files():
        say(page_map(session.open_reader(f"data/{file.path}")))


def _is_table(given: Namespace) -> bool:
    try:
        opened(given)
    except NotFound:
        return False
    return True


def count(given: Namespace) -> None:
    """How many rows."""
    say(opened(given).count_rows(given.filter))


def head(given: Namespace) -> None:
    """The first rows."""
    if given.rows < 0:
        raise InvalidInput(f"--rows is {given.rows}, expected at least 0")
    columns = given.columns.split(",") if given.columns else None
    table = opened(given).to_table(columns=columns, filter=given.filter, limit=given.rows)
    say(table_text(table.column_names, rows_text(table), left=tuple(range(table.num_columns))))


def cleanup(given: Namespace) -> None:
    """Old versions removed, or told of."""
    table = opened(given)
    age = None if given.older_than_hours is None else timedelta(hours=given.older_than_hours)
    if given.dry_run:
        done = table.explain_cleanup_old_versions(
            age, given.retain_versions, delete_unverified=given.delete_unverified, error_if_tagged_old_versions=False
        ).stats
    else:
        done = table.cleanup_old_versions(
            age, given.retain_versions, delete_unverified=given.delete_unverified, error_if_tagged_old_versions=False
        )
    verb = "would be removed" if given.dry_run else "removed"
    number = done.data_files_removed + done.index_files_removed + done.deletion_files_removed
    say(f"{done.old_versions} versions and {number} files, {size_text(done.bytes_removed)}, {verb}")


def compact(given: Namespace) -> None:
    """Small fragments put together."""
    made = opened(given).optimize.compact_files(target_rows_per_fragment=given.target_rows)
    say(f"{made.fragments_removed} fragments became {made.fragments_added}")
