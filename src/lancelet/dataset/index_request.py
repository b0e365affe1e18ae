"""What users say who ask for an index: its column, its type, the parameters of that, and who is told of progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from lancelet.dataset.progress import IndexProgress
from lancelet.errors import InvalidInput, Unsupported
from lancelet.events import Event, subscribe
from lancelet.index.kinds import KINDS

__all__ = ["IndexConfig", "IndexTypeLike", "ProgressCallback", "column_named_by", "kind_of_request", "told", "uuid_of"]

ProgressCallback = Callable[[IndexProgress], object]

_TEXT = ("INVERTED", "FTS")
#: Types that pylance knows besides.
_OTHERS = ("BTREE", "BITMAP", "LABEL_LIST", "NGRAM", "ZONEMAP", "BLOOMFILTER", "RTREE", "JSON", "MINHASHLSH", "FM")


@dataclass
class IndexConfig:
    """A type of index, in letters of any case, with its parameters.

    >>> IndexConfig("zonemap", {"rows_per_zone": 4096})
    IndexConfig(index_type='zonemap', parameters={'rows_per_zone': 4096})
    """

    index_type: str
    parameters: dict[str, object] = field(default_factory=dict)


IndexTypeLike = str | IndexConfig


def column_named_by(column: object) -> str:
    """The one column that is named, by itself or as a list of one."""
    if isinstance(column, list | tuple):
        if len(column) != 1:
            raise Unsupported(f"{len(column)} columns are named: an index is over one")
        column = column[0]
    if not isinstance(column, str):
        raise TypeError(f"column must be a str, got {type(column).__name__}")
    return column


def kind_of_request(index_type: object, parameters: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    """The type that is asked for, and its parameters. Unsupported where there is no such type.

    >>> kind_of_request("zonemap", {"rows_per_zone": 10})
    ('ZONEMAP', {'rows_per_zone': 10})
    """
    if isinstance(index_type, IndexConfig):
        name, said = index_type.index_type.upper(), dict(index_type.parameters)
    elif isinstance(index_type, str):
        name, said = index_type.upper(), dict(parameters)
    else:
        raise TypeError(f"index_type must be a str or an IndexConfig, got {type(index_type).__name__}")
    if name in KINDS:
        return name, {key: value for key, value in said.items() if value is not None}
    if name in _TEXT:
        raise Unsupported(f"{name}: indexes for full-text search have not landed")
    if name in _OTHERS:
        raise Unsupported(f"{name} indexes have not landed", hint=f"types are: {', '.join(KINDS)}")
    raise Unsupported(f"there is no index type {name!r} over values", hint=f"types are: {', '.join(KINDS)}")


def uuid_of(text: str | None) -> UUID | None:
    """The id that a segment is to get; InvalidInput for what is none."""
    try:
        return None if text is None else UUID(text)
    except ValueError:
        raise InvalidInput(f"index_uuid is {text!r}, expected a UUID") from None


@contextmanager
def told(callback: ProgressCallback | None, uri: str) -> Iterator[None]:
    """Tell a function of the work on indexes of a table while the block runs. What it raises ends the work."""
    if callback is None:
        yield
        return
    if not callable(callback):
        raise InvalidInput(f"progress_callback must be callable, got {type(callback).__name__}")
    listener = _Teller(callback, uri)
    with subscribe(listener):
        yield


@dataclass(frozen=True, slots=True)
class _Teller:
    """Says in the words of the callback what events say."""

    callback: ProgressCallback
    uri: str

    def __call__(self, event: Event) -> None:
        if event.facts.get("uri") != self.uri:
            return
        match event.name:
            case "index.build.start":
                self._tell("start", 0, event)
            case "index.build.progress":
                self._tell("progress", event.facts["done"], event)
            case "index.build.end":
                self._tell("complete", event.facts["done"], event)

    def _tell(self, what: str, done: object, event: Event) -> None:
        total = event.facts.get("total")
        self.callback(IndexProgress(what, "load_data", completed=done, total=total, unit="rows"))  # type: ignore[arg-type]
