"""Branches and clones of a dataset, made."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Self

from lancelet.dataset.core import DatasetCore
from lancelet.dataset.location import StorageOptions, uri_of
from lancelet.dataset.references import Reference
from lancelet.dataset.refs import Branches, Tags
from lancelet.table.branches import create_branch
from lancelet.table.clone import deep_clone, shallow_clone
from lancelet.table.references import resolve_ref
from lancelet.table.snapshot import Snapshot

__all__ = ["DatasetClones"]


class DatasetClones(DatasetCore):
    """Where a dataset's versions go on elsewhere."""

    @property
    def tags(self) -> Tags:
        """Names for versions of the table."""
        return Tags(self)

    @property
    def branches(self) -> Branches:
        """Lines of versions of the table beside the main one."""
        return Branches(self)

    def create_branch(
        self, branch: str, reference: Reference | None = None, storage_options: StorageOptions | None = None
    ) -> Self:
        """Start a branch at a version, the one that the dataset is at if no other is given; a dataset at its start.

        The branch shares all files with the table, and has commits of its own.
        """
        source = self._referred(reference)
        location = self._location
        if storage_options is not None:
            location = replace(location, storage_options=storage_options)
        made = create_branch(source, branch)
        return self._open(location.at(made.uri), made, scan_defaults=self._default_scan_options)

    def shallow_clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Reference,
        storage_options: StorageOptions | None = None,
        **kwargs: object,
    ) -> Self:
        """Make a version the first of another table that shares its files; a dataset over that table.

        The clone breaks when the files are cleaned up here: tag the version to keep them.
        """
        return self._clone(target_path, reference, storage_options, kwargs, deep=False)

    def deep_clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Reference,
        storage_options: StorageOptions | None = None,
        **kwargs: object,
    ) -> Self:
        """Make a copy of a version, with all its files, the first of another table; a dataset over that table."""
        return self._clone(target_path, reference, storage_options, kwargs, deep=True)

    def _clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Reference,
        storage_options: StorageOptions | None,
        given: dict[str, object],
        *,
        deep: bool,
    ) -> Self:
        uri = uri_of(target_path)
        options = self._location.storage_options if storage_options is None else storage_options
        location = replace(self._location.at(uri), storage_options=options)
        source = self._referred(reference)
        if deep:
            deep_clone(source, location.open())
        else:
            shallow_clone(source, location.open())
        return type(self)(uri, storage_options=options, **given)

    def _referred(self, reference: Reference | None) -> Snapshot:
        return self._snapshot if reference is None else resolve_ref(self._snapshot, reference)
