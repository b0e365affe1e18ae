"""Options of reads and writes as Spark gives them: text by case-insensitive names, taken apart and checked."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from lancelet.config import parse_size
from lancelet.errors import InvalidInput
from lancelet.expr import Expr
from lancelet.format.versions import FileVersion
from lancelet.spark.address import Address
from lancelet.spark.choices import Choices
from lancelet.storage.remote_location import parse_location
from lancelet.storage.remote_options import known_names

__all__ = ["ReadOptions", "StreamOptions", "WriteOptions", "read_options", "stream_options", "write_options"]

#: Names under which storage options may come besides their own, so that they are never taken for ours.
_STORAGE_PREFIX = "storage."
#: What Spark itself adds, which is nothing to us.
_SPARK_OWN = frozenset(
    {"path", "paths", "checkpointlocation", "queryname", "location", "provider", "owner", "comment", "external"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What a read is asked for besides where the table is."""

    #: Paths of columns, or SQL expressions by the names that their values get; None for all stored columns.
    columns: tuple[str, ...] | dict[str, str] | None = None
    #: A condition in Lance's SQL, or bound already.
    filter: str | Expr | None = None
    #: Most rows of the whole read.
    limit: int | None = None
    offset: int = 0
    batch_size: int = 8192
    #: About how many bytes of decoded values a batch may have.
    batch_bytes: int = 16 * 2**20
    fragments: tuple[int, ...] | None = None
    #: About how many bytes of decoded values one task reads.
    split_size: int = 64 * 2**20
    with_row_id: bool = False
    with_row_address: bool = False
    choices: Choices = field(default_factory=Choices)

    def __post_init__(self) -> None:
        for name, least in (("limit", 0), ("offset", 0), ("batch_size", 1), ("batch_bytes", 1), ("split_size", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InvalidInput(f"option {name} is {value}, expected at least {least}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How rows are written. What concerns new tables alone says nothing of tables that are there."""

    max_rows_per_file: int = 2**20
    max_bytes_per_file: int = 90 * 2**30
    data_storage_version: str | None = None
    enable_stable_row_ids: bool = False
    commit_message: str | None = None
    #: Whether columns may carry the address of the table in Spark's catalog that they were read from.
    copy: bool = False

    def __post_init__(self) -> None:
        for name in ("max_rows_per_file", "max_bytes_per_file"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"option {name} is {getattr(self, name)}, expected at least 1")
        if self.data_storage_version is not None:
            FileVersion.parse(self.data_storage_version)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """Which rows a stream brings, and how many at once."""

    #: Rows that were inserted, or all changes of rows.
    mode: str = "inserts"
    #: The first version that a stream without a checkpoint tells, or "latest" for those to come. None: first the rows
    #: of the table as they are then.
    starting_version: int | str | None = None
    #: The same by the moment that it was made at, or after.
    starting_timestamp: str | None = None
    max_versions_per_batch: int | None = None
    max_rows_per_batch: int | None = None
    max_bytes_per_batch: int | None = None

    def __post_init__(self) -> None:
        if self.mode not in ("inserts", "changes"):
            raise InvalidInput(f"option stream is {self.mode!r}, expected 'inserts' or 'changes'")
        if self.starting_version is not None and self.starting_timestamp is not None:
            raise InvalidInput("starting_version and starting_timestamp are both given", hint="give one of them")
        for name in ("max_versions_per_batch", "max_rows_per_batch", "max_bytes_per_batch"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidInput(f"option {name} is {value}, expected at least 1")


_CHOICES = {"time_type": "time", "nanoseconds": "nanoseconds", "blobs": "blobs"}
_VALUES = {
    "time_type": ("long", "string", "time"),
    "nanoseconds": ("exact", "truncate", "long"),
    "blobs": ("reference", "bytes"),
}
_ADDRESS = ("version", "tag", "branch", "timestamp")
_READ = tuple(item.name for item in fields(ReadOptions) if item.name != "choices")
_WRITE = tuple(item.name for item in fields(WriteOptions))
_STREAM = {
    "stream": "mode",
    "starting_version": "starting_version",
    "starting_timestamp": "starting_timestamp",
    "max_versions_per_batch": "max_versions_per_batch",
    "max_rows_per_batch": "max_rows_per_batch",
    "max_bytes_per_batch": "max_bytes_per_batch",
}
_SIZES = frozenset({"batch_bytes", "split_size", "max_bytes_per_file", "max_bytes_per_batch"})
_FLAGS = frozenset({"with_row_id", "with_row_address", "enable_stable_row_ids", "copy"})
_NUMBERS = frozenset(
    {"limit", "offset", "batch_size", "max_rows_per_file", "max_versions_per_batch", "max_rows_per_batch", "version"}
)
_ALL = (*_ADDRESS, *_READ, *_CHOICES, *_WRITE, *_STREAM)


def read_options(options: Mapping[str, str], uri: str | None = None) -> tuple[Address, ReadOptions]:
    """The table and what is asked of it; the table's URI may be known from elsewhere.

    >>> address, asked = read_options({"path": "/t", "batchsize": "100", "columns": "a, s.x", "version": "3"})
    >>> address.uri, address.version, asked.batch_size, asked.columns
    ('/t', 3, 100, ('a', 's.x'))
    """
    address, given = _parted(options, uri)
    asked = {name: given[name] for name in _READ if name in given}
    choices = {_CHOICES[name]: given[name] for name in _CHOICES if name in given}
    return address, ReadOptions(**asked, choices=Choices(**choices))  # type: ignore[arg-type]


def write_options(options: Mapping[str, str]) -> tuple[Address, WriteOptions]:
    """The table and how it is written to.

    >>> write_options({"path": "/t", "max_bytes_per_file": "1GiB"})[1].max_bytes_per_file
    1073741824
    """
    address, given = _parted(options, None)
    if address.version is not None or address.tag is not None or address.timestamp is not None:
        raise InvalidInput(
            "rows can be written to the newest version only", hint="leave out version, tag and timestamp"
        )
    return address, WriteOptions(**{name: given[name] for name in _WRITE if name in given})  # type: ignore[arg-type]


def stream_options(options: Mapping[str, str]) -> StreamOptions:
    """Which rows a stream brings.

    >>> stream_options({"path": "/t", "maxversionsperbatch": "2"}).max_versions_per_batch
    2
    """
    _, given = _parted(options, options.get("path"))
    return StreamOptions(**{_STREAM[name]: given[name] for name in _STREAM if name in given})  # type: ignore[arg-type]


def _parted(options: Mapping[str, str], uri: str | None) -> tuple[Address, dict[str, object]]:
    """The address, and our options by their names, each as the type that it has."""
    place = options.get("path") or uri
    if not place:
        raise InvalidInput("there is no path to a table", hint="give one to load, save or start, or as the option path")
    ours = {_plain(name): name for name in _ALL}
    storage_names = _storage_names(place)
    given: dict[str, object] = {}
    storage: dict[str, str] = {}
    for key, text in options.items():
        name = key.lower()
        if name.startswith(_STORAGE_PREFIX):
            storage[name.removeprefix(_STORAGE_PREFIX)] = text
        elif _plain(name) in ours:
            given[ours[_plain(name)]] = _value(ours[_plain(name)], text)
        elif name in storage_names:
            storage[name] = text
        elif name not in _SPARK_OWN and not name.startswith("option."):
            raise _unknown(key, [*_ALL, *storage_names])
    where = {name: given.pop(name) for name in _ADDRESS if name in given}
    return Address(uri=place, storage_options=storage, **where).absolute(), given  # type: ignore[arg-type]


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _storage_names(uri: str) -> Iterable[str]:
    scheme = uri.partition("://")[0].lower()
    try:
        return known_names(parse_location(uri.replace("s3+ddb://", "s3://", 1)).kind) | (
            {"dynamodb_endpoint": ""} if scheme == "s3+ddb" else {}
        )
    except InvalidInput:
        return {}


def _unknown(key: str, known: Iterable[str]) -> InvalidInput:
    near = difflib.get_close_matches(key.lower(), list(known), 1)
    hint = f"did you mean {near[0]}?" if near else f"options of the store are given as {_STORAGE_PREFIX}<name>"
    return InvalidInput(f"option {key!r} is unknown", hint=hint)


def _value(name: str, text: str) -> object:
    if name in _SIZES:
        return parse_size(text)
    if name in _NUMBERS:
        return _number(name, text)
    if name in _FLAGS:
        return _flag(name, text)
    if name in _VALUES and text.lower() not in _VALUES[name]:
        raise InvalidInput(f"option {name} is {text!r}, expected one of {', '.join(_VALUES[name])}")
    if name == "columns":
        return _columns(text)
    if name == "fragments":
        return tuple(_number(name, item) for item in _listed(name, text))
    if name == "starting_version":
        return text.lower() if text.lower() == "latest" else _number(name, text)
    return text.lower() if name in (*_VALUES, "stream") else text


def _number(name: str, text: object) -> int:
    try:
        return int(str(text).strip())
    except ValueError:
        raise InvalidInput(f"option {name} is {text!r}, expected a whole number") from None


def _flag(name: str, text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise InvalidInput(f"option {name} is {text!r}, expected true or false")
    return text.strip().lower() == "true"


def _columns(text: str) -> tuple[str, ...] | dict[str, str]:
    """Names between commas; or, where names hold commas or values are computed, a JSON list or object."""
    if not text.lstrip().startswith("{"):
        named = tuple(map(str, _listed("columns", text)))
        if not named:
            raise InvalidInput("option columns names none", hint="leave it out to read all columns")
        return named
    found = _json("columns", text)
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise InvalidInput("option columns is no JSON object of SQL texts", hint='write {"name": "expression"}')
    return found


def _listed(name: str, text: str) -> list[object]:
    if text.lstrip().startswith("["):
        found = _json(name, text)
        return found if isinstance(found, list) else []
    return [item.strip() for item in text.split(",") if item.strip()]


def _json(name: str, text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"option {name} is no JSON: {error}") from None
