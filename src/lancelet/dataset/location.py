"""Where a table is and how it is reached: its URI, and the options for it and for each of its base paths."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from lancelet.config import Options, default_options
from lancelet.dataset.tally import Tally, tallied
from lancelet.errors import InvalidInput
from lancelet.file.location import refuse_namespace
from lancelet.format.manifest import BasePath
from lancelet.session import Session
from lancelet.storage import open_store
from lancelet.storage.folder import Folder
from lancelet.storage.store import Store
from lancelet.table.commit import CommitLock
from lancelet.table.external.tables import open_table_store
from lancelet.table.paths import same_place

__all__ = ["BaseOpener", "StorageOptions", "TableLocation", "learn", "refuse_namespace", "uri_of"]

StorageOptions = Mapping[str, str]

#: Options for one base path alone: base_<id>.<key>.
_SCOPED = re.compile(r"base_(\d+)\.(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLocation:
    """How a table is reached. Its repr shows no option: most are credentials."""

    uri: str
    storage_options: StorageOptions | None = field(default=None, repr=False)
    #: Options for base paths, by their URIs.
    base_store_params: Mapping[str, StorageOptions] | None = field(default=None, repr=False)
    commit_lock: CommitLock | None = None
    session: Session = field(default_factory=Session, repr=False)
    options: Options = field(default_factory=default_options, repr=False)
    tally: Tally = field(default_factory=Tally, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.commit_lock is not None and not callable(self.commit_lock):
            raise TypeError(f"commit_lock must be a function, got {type(self.commit_lock)}")

    def at(self, uri: str) -> TableLocation:
        """Another place, reached in the same way."""
        return replace(self, uri=uri)

    def given(
        self,
        storage_options: StorageOptions | None,
        base_store_params: Mapping[str, StorageOptions] | None = None,
        commit_lock: CommitLock | None = None,
    ) -> TableLocation:
        """The same place, with what a caller gave instead of what was known; None where nothing was given."""
        return replace(
            self,
            storage_options=self.storage_options if storage_options is None else storage_options,
            base_store_params=self.base_store_params if base_store_params is None else base_store_params,
            commit_lock=self.commit_lock if commit_lock is None else commit_lock,
        )

    def open(self) -> Store:
        """The store of the table's folder, which opens those of its base paths, too; nothing is read or made yet."""
        plain = unscoped(self.storage_options)
        by_place = {same_place(uri): options for uri, options in (self.base_store_params or {}).items()}
        opener = BaseOpener(by_place, self.storage_options, self.options, self.tally)
        return tallied(open_table_store(self.uri, storage_options=plain, options=self.options), self.tally, opener)


@dataclass(frozen=True, slots=True)
class BaseOpener:
    """Opens stores elsewhere: with the options of the base path that is there, else with the table's."""

    by_place: Mapping[str, StorageOptions] = field(repr=False)
    otherwise: StorageOptions | None = field(repr=False)
    options: Options = field(repr=False)
    tally: Tally = field(repr=False)
    #: Ids of base paths by their places, as far as manifests were seen.
    ids: dict[str, int] = field(default_factory=dict, repr=False)

    def learn(self, bases: Iterable[BasePath]) -> None:
        """Know which base path is where from now on: options may be for one of them."""
        self.ids.update({same_place(item.path): item.id for item in bases})

    def __call__(self, uri: str) -> Store:
        """The store at a URI."""
        place = same_place(uri)
        chosen = self.by_place.get(place) or scoped(self.otherwise, self.ids.get(place))
        return tallied(open_store(uri, storage_options=chosen, options=self.options), self.tally, self)


def learn(store: Store, bases: Iterable[BasePath]) -> None:
    """Let the opener of a table's store know which base path is where."""
    while isinstance(store, Folder):
        store = store.inner
    opener = getattr(store, "elsewhere", None)
    if isinstance(opener, BaseOpener):
        opener.learn(bases)


def unscoped(options: StorageOptions | None) -> StorageOptions | None:
    """The options that are not for a base path alone.

    >>> unscoped({"region": "a", "base_1.region": "b"})
    {'region': 'a'}
    """
    return None if options is None else {key: value for key, value in options.items() if not _SCOPED.fullmatch(key)}


def scoped(options: StorageOptions | None, base_id: int | None) -> StorageOptions | None:
    """The options for a base path: those for all, and what is said for it alone.

    >>> scoped({"region": "a", "base_1.region": "b"}, 1)
    {'region': 'b'}
    """
    if options is None:
        return None
    own = {found[2]: value for key, value in options.items()
           if (found := _SCOPED.fullmatch(key)) and int(found[1]) == base_id}  # fmt: skip
    return {**(unscoped(options) or {}), **own}


def uri_of(uri: object) -> str:
    """A URI or path as text. TypeError for what is neither."""
    if not isinstance(uri, str | os.PathLike):
        raise TypeError(f"a dataset's uri is text or a path, not {type(uri).__name__}")
    text = os.fspath(uri)
    if not isinstance(text, str) or not text:
        raise InvalidInput(f"{text!r} names no dataset", hint="give a path or a URI")
    return text
