"""Declarations of sources: where the inputs of a pipeline come from, and what tells that one has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lancelet.errors import InvalidInput
from lancelet.pipeline.references import Reference

__all__ = ["FilesSource", "FrameSource", "LanceSource", "PythonSource", "Source", "SqlSource"]

FORMATS = ("text", "json", "csv", "parquet")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSource:
    """Files by patterns, which Spark lists and reads. An input is a file; it changed if its size or time did.

    A file of ``text`` is one row with the column ``value``, unless the option ``wholetext`` is ``false``.

    >>> FilesSource(files="/data/*.md", format="text").key
    ()
    """

    files: str | tuple[str, ...]
    format: str
    #: Columns and types in Spark's words; read off the files where nothing is said.
    schema: str | None = None
    #: Options of Spark's reader.
    options: Mapping[str, str] = field(default_factory=dict)
    #: Columns that identify a row: then an input is a row rather than a file, and all files are read each time.
    key: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise InvalidInput(f"the format of files is {self.format!r}, expected one of {', '.join(FORMATS)}")
        if not self.files:
            raise InvalidInput("files names no pattern", hint="write for example /data/*.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlSource:
    """A query over what the Spark session knows. An input is a row; it changed if any of its values did.

    >>> SqlSource(sql="select * from items", key="id").key
    'id'
    """

    sql: str
    #: Columns that identify a row.
    key: str | tuple[str, ...]

    def __post_init__(self) -> None:
        _check_key(self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSource:
    """A function that gets the Spark session and returns a DataFrame. An input is a row."""

    frame: Reference
    key: str | tuple[str, ...]

    def __post_init__(self) -> None:
        _check_key(self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class LanceSource:
    """Another Lance table. An input is a row, which changed if a version after the last run's did so.

    With stable row ids in the table no more than those and the rows' versions are read to find out. Without them rows
    are identified by ``key``, and compared by their values.
    """

    lance: str
    columns: tuple[str, ...] | None = None
    #: A condition in Lance's SQL.
    filter: str | None = None
    key: str | tuple[str, ...] = ()
    storage_options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonSource:
    """Two functions: one names the inputs with a fingerprint each, the other makes the rows of an input, in a task.

    ``inputs()`` returns a mapping of names to fingerprints; ``rows(name)`` dictionaries, or Arrow tables or batches.
    """

    inputs: Reference
    rows: Reference
    #: Columns and types of the rows in Spark's words.
    schema: str


Source = FilesSource | SqlSource | FrameSource | LanceSource | PythonSource


def _check_key(key: str | tuple[str, ...]) -> None:
    if not key:
        raise InvalidInput("the source has no key", hint="name the columns that identify a row")
