"""What may be said about a compaction: by the caller, else by the table's config, else as the reference has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

from lancelet.errors import InvalidInput
from lancelet.format.versions import FileVersion

__all__ = ["CONFIG_PREFIX", "MODES", "CompactionOptions", "options_of"]

CONFIG_PREFIX = "lance.compaction."
#: How rows come into new files: decoded and encoded anew; page by page as they are where that can be; or only so.
MODES = ("reencode", "try_binary_copy", "force_binary_copy")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOptions:
    """What is to be compacted, into what.

    >>> CompactionOptions(compaction_mode="zip")
    Traceback (most recent call last):
    lancelet.errors.InvalidInput: compaction_mode is 'zip', expected one of reencode, try_binary_copy, force_binary_copy
    """

    #: Fragments with fewer rows are put together until they have as many.
    target_rows_per_fragment: int = 2**20
    #: Of no meaning but for files of 0.1, which are not written.
    max_rows_per_group: int = 1024
    #: Fragments of as many bytes are not put together with others, and new files are ended there. None for 90 GiB.
    max_bytes_per_file: int | None = None
    #: Whether fragments are written anew of which more than a share of the rows is deleted.
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = 0.1
    #: Tasks under way at once; None for as many as there are processors.
    num_threads: int | None = None
    #: Rows that are handed to a writer at once.
    batch_size: int | None = None
    #: Bytes that may be read ahead by a task.
    io_buffer_size: int | None = None
    #: Whether indexes stay as they are, and an index beside them tells where rows went.
    defer_index_remap: bool = False
    compaction_mode: str | None = None
    #: Bytes that are copied at once where pages are.
    binary_copy_read_batch_bytes: int = 16 * 2**20
    #: At most so much is compacted at once, the oldest first; None without such a limit.
    max_source_fragments: int | None = None
    max_source_rows: int | None = None
    max_source_bytes: int | None = None
    #: Fragments that are left alone; those before and behind are not put together.
    excluded_fragment_ids: tuple[int, ...] = ()
    #: The version of new files; None as the table writes new rows.
    data_storage_version: str | None = None

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise InvalidInput(f"{name} is {value}, expected at least {least}")
        if self.compaction_mode is not None and self.compaction_mode not in MODES:
            raise InvalidInput(f"compaction_mode is {self.compaction_mode!r}, expected one of {', '.join(MODES)}")
        if self.data_storage_version is not None:
            FileVersion.parse(self.data_storage_version)

    @property
    def mode(self) -> str:
        """How rows come into new files."""
        return self.compaction_mode or MODES[0]

    @property
    def rewrites_deletions(self) -> bool:
        """Whether any share of deleted rows is reason enough to write a fragment anew."""
        return self.materialize_deletions and self.materialize_deletions_threshold < 1.0


_LEAST = MappingProxyType(
    {
        "target_rows_per_fragment": 0,
        "max_rows_per_group": 0,
        "max_bytes_per_file": 1,
        "num_threads": 1,
        "batch_size": 1,
        "io_buffer_size": 1,
        "binary_copy_read_batch_bytes": 1,
        "max_source_fragments": 1,
        "max_source_rows": 1,
        "max_source_bytes": 1,
    }
)
#: What a config may not say: it is about one run, or one machine.
_NOT_CONFIGURED = ("num_threads", "io_buffer_size", "excluded_fragment_ids")
_NUMBERS = {*_LEAST} - {*_NOT_CONFIGURED}


def options_of(config: Mapping[str, str], given: Mapping[str, object] | None = None) -> CompactionOptions:
    """The options for a table with some config, where a caller has said something; InvalidInput where they are none.

    >>> options_of({"lance.compaction.target_rows_per_fragment": "50"}, {"num_threads": 2}).target_rows_per_fragment
    50
    """
    said: dict[str, object] = {}
    for item in fields(CompactionOptions):
        text = config.get(f"{CONFIG_PREFIX}{item.name}")
        if text is not None and item.name not in _NOT_CONFIGURED:
            said[item.name] = _configured(item.name, text)
    known = {item.name for item in fields(CompactionOptions)}
    for name, value in (given or {}).items():
        if name not in known:
            raise InvalidInput(f"Invalid compaction option: {name}", hint=f"options are: {', '.join(sorted(known))}")
        said[name] = _typed(name, value)
    return CompactionOptions(**said)  # type: ignore[arg-type]


def _configured(name: str, text: str) -> object:
    key = f"{CONFIG_PREFIX}{name}"
    try:
        if name in _NUMBERS:
            return int(text)
        if name == "materialize_deletions_threshold":
            return float(text)
    except ValueError:
        kind = "a number" if name == "materialize_deletions_threshold" else "a whole number"
        raise InvalidInput(f"Invalid value for {key}: {text!r} (expected {kind})") from None
    if name in ("materialize_deletions", "defer_index_remap"):
        if text.lower() not in ("true", "false"):
            raise InvalidInput(f"Invalid value for {key}: {text!r} (expected 'true' or 'false')")
        return text.lower() == "true"
    return text


_OPTIONAL = frozenset(item.name for item in fields(CompactionOptions) if item.default is None)


def _typed(name: str, value: object) -> object:
    """A value of the type that its option has; TypeError where it is not."""
    if value is None and name in _OPTIONAL:
        return None
    if name in _LEAST:
        return _whole(name, value)
    if name == "excluded_fragment_ids":
        if isinstance(value, str) or not isinstance(value, list | tuple | set | frozenset):
            raise TypeError(f"{name} is {type(value).__name__}, expected a list of fragment ids")
        return tuple(sorted({_whole(name, item) for item in value}))
    kinds: dict[str, tuple[type, ...]] = {
        "materialize_deletions": (bool,),
        "defer_index_remap": (bool,),
        "materialize_deletions_threshold": (float, int),
    }
    expected = kinds.get(name, (str,))
    if not isinstance(value, expected):
        raise TypeError(f"{name} is {type(value).__name__}, expected {expected[0].__name__}")
    return float(value) if expected[0] is float and isinstance(value, float | int) else value


def _whole(name: str, value: object) -> int:
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {type(value).__name__}, expected a whole number")
    return int(value.__index__())
