"""A manifest store that fails, or dies, before or after a call: for tests of half-done commits."""

from __future__ import annotations

from dataclasses import dataclass

from lancelet.table.external.contract import ManifestRecord, ManifestStore

__all__ = ["FaultyManifests"]


@dataclass(slots=True)
class FaultyManifests:
    """Another manifest store, where ``error`` is raised once: before a call of ``verb``, or when it is done."""

    inner: ManifestStore
    verb: str
    error: BaseException
    after: bool = False
    struck: bool = False

    def get(self, base: str, version: int) -> ManifestRecord | None:
        """As the inner store, or not."""
        self._strike("get", after=False)
        found = self.inner.get(base, version)
        self._strike("get", after=True)
        return found

    def latest(self, base: str) -> ManifestRecord | None:
        """As the inner store, or not."""
        self._strike("latest", after=False)
        found = self.inner.latest(base)
        self._strike("latest", after=True)
        return found

    def put_if_absent(self, base: str, record: ManifestRecord) -> None:
        """As the inner store, or not."""
        self._strike("put_if_absent", after=False)
        self.inner.put_if_absent(base, record)
        self._strike("put_if_absent", after=True)

    def put_if_exists(self, base: str, record: ManifestRecord) -> None:
        """As the inner store, or not."""
        self._strike("put_if_exists", after=False)
        self.inner.put_if_exists(base, record)
        self._strike("put_if_exists", after=True)

    def delete(self, base: str) -> None:
        """As the inner store, or not."""
        self._strike("delete", after=False)
        self.inner.delete(base)
        self._strike("delete", after=True)

    def _strike(self, verb: str, *, after: bool) -> None:
        if not self.struck and verb == self.verb and after is self.after:
            self.struck = True
            raise self.error
