"""Progress: objects that are told of fragments as they are written, and what is told of an index being built."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lancelet.dataset.fragments.convert import from_stored
from lancelet.dataset.fragments.metadata import FragmentMetadata
from lancelet.format.fragments import Fragment
from lancelet.storage import open_store

__all__ = [
    "FileSystemFragmentWriteProgress",
    "FragmentWriteProgress",
    "IndexProgress",
    "NoopFragmentWriteProgress",
    "ProgressListener",
]


@dataclass(frozen=True)
class IndexProgress:
    """What a builder of an index says about its work.

    >>> IndexProgress("progress", "sort", completed=1, total=4).fraction
    0.25
    """

    event: Literal["start", "progress", "complete"]
    stage: str
    completed: int | None = None
    total: int | None = None
    unit: str = ""

    @property
    def fraction(self) -> float | None:
        """How much of the stage is done; None where nobody knows."""
        if self.completed is None or not self.total:
            return None
        return min(self.completed / self.total, 1.0)


class FragmentWriteProgress(ABC):
    """Is told of each fragment that a write begins and completes, in the process that writes it."""

    @abstractmethod
    def begin(self, fragment: FragmentMetadata, **kwargs: object) -> None:
        """A fragment is begun; hardly anything is known of it yet."""

    @abstractmethod
    def complete(self, fragment: FragmentMetadata, **kwargs: object) -> None:
        """A fragment's file is written."""


class NoopFragmentWriteProgress(FragmentWriteProgress):
    """Does nothing with what it is told."""

    def begin(self, fragment: FragmentMetadata, **kwargs: object) -> None:
        """Nothing."""

    def complete(self, fragment: FragmentMetadata, **kwargs: object) -> None:
        """Nothing."""


class FileSystemFragmentWriteProgress(FragmentWriteProgress):
    """Keeps files at a place: ``fragment_<id>.json``, and ``fragment_<id>.in_progress`` as long as it is written.

    >>> from lancelet.dataset.fragments.metadata import FragmentMetadata
    >>> progress = FileSystemFragmentWriteProgress("memory://progress")
    >>> progress.begin(FragmentMetadata(3, [], 0))
    >>> sorted(entry.path for entry in open_store("memory://progress").list_from(""))
    ['fragment_3.in_progress', 'fragment_3.json']
    """

    PROGRESS_EXT: str = ".in_progress"

    def __init__(self, base_uri: str, metadata: Mapping[str, str] | None = None) -> None:
        self._store = open_store(base_uri)
        self._metadata = dict(metadata or {})

    def begin(self, fragment: FragmentMetadata, **kwargs: object) -> None:
        """Put both files."""
        told = {"fragment_id": fragment.id, "metadata": self._metadata}
        self._store.put(f"fragment_{fragment.id}{self.PROGRESS_EXT}", json.dumps(told).encode())
        self._store.put(f"fragment_{fragment.id}.json", json.dumps(fragment.to_json()).encode())

    def complete(self, fragment: FragmentMetadata, **kwargs: object) -> None:
        """Remove the file that says that the fragment is being written."""
        self._store.delete([f"fragment_{fragment.id}{self.PROGRESS_EXT}"])


@dataclass(frozen=True, slots=True)
class ProgressListener:
    """Passes what the writing of fragments tells on to a user's object."""

    listener: FragmentWriteProgress

    def begin(self, fragment: Fragment) -> None:
        """As the user's object."""
        self.listener.begin(from_stored(fragment))

    def complete(self, fragment: Fragment) -> None:
        """As the user's object."""
        self.listener.complete(from_stored(fragment))
