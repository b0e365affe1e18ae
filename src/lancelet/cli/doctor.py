"""The command that looks whether all is well: what is installed, and what a table needs."""

from __future__ import annotations

import platform
from argparse import Namespace
from importlib import metadata
from importlib.util import find_spec

from lancelet import kernels
from lancelet.cli.output import say
from lancelet.cli.tables import opened
from lancelet.errors import LanceletError
from lancelet.file.text import size_text

__all__ = ["doctor"]

_PACKAGES = ("lancelet", "pyarrow", "numpy", "pyspark", "PyYAML")
#: From here on a table is better off with fewer fragments, fewer deleted rows, fewer versions.
_SMALL, _DELETED, _VERSIONS = 8, 0.1, 100


def doctor(given: Namespace) -> None:
    """Say what is there, and what to do about what is not well."""
    say(f"python     {platform.python_version()} on {platform.machine()}")
    for name in _PACKAGES:
        say(f"{name:<10} {_installed(name)}")
    say(f"kernels    {kernels.active} ({kernels.why})")
    if find_spec("pyspark") is not None:
        say(f"java       {_java()}")
    if given.uri is not None:
        _table(given)


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _java() -> str:
    from lancelet.spark.java import find_java

    try:
        found = find_java()
    except LanceletError as error:
        return str(error)
    return f"{found.version}, from {found.source}"


def _table(given: Namespace) -> None:
    table = opened(given)
    stats = table.stats.dataset_stats()
    rows, fragments, small = table.count_rows(), stats["num_fragments"], stats["num_small_files"]
    deleted = stats["num_deleted_rows"]
    versions = len(table.version_refs())
    say(
        f"table      version {table.version} of {versions}: {rows:,} rows in {fragments} fragments, {deleted:,} deleted"
    )
    advice = []
    if small >= _SMALL or deleted > _DELETED * max(rows + deleted, 1):
        advice.append(f"{small} small fragments and {deleted:,} deleted rows: lancelet compact {given.uri}")
    if versions >= _VERSIONS:
        advice.append(f"{versions} versions: lancelet cleanup --dry-run {given.uri}")
    for index in table.describe_indices():
        missing = rows - index.num_rows_indexed
        if missing > 0:
            advice.append(f"index {index.name} lacks {missing:,} rows: dataset.optimize.optimize_indices()")
    unused = table.explain_cleanup_old_versions(error_if_tagged_old_versions=False).stats.bytes_removed
    if unused:
        advice.append(f"{size_text(unused)} that no kept version needs: lancelet cleanup {given.uri}")
    say("\n".join(f"advice     {text}" for text in advice) or "advice     none: all is well")
