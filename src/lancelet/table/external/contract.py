"""The contract of external manifest stores: a map from (table, version) to a manifest's path, with conditional puts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = ["ManifestRecord", "ManifestStore"]


@dataclass(frozen=True, slots=True)
class ManifestRecord:
    """What is known of one version: where its manifest is, under its final name or a staging one."""

    version: int
    #: As the other users of the store write it: for DynamoDB the object's full key in the bucket.
    path: str
    #: None where another writer did not say.
    size: int | None = None
    e_tag: str | None = None


@runtime_checkable
class ManifestStore(Protocol):
    """Who was first, for any number of tables; each is known by its ``base``.

    What was answered is durable and seen by every later call, from any process. Failures are
    :class:`~lancelet.errors.Storage`; after one, a put may or may not have been carried out. Stores pickle by their
    description and may be used from many threads.
    """

    def get(self, base: str, version: int) -> ManifestRecord | None:
        """The record of a version; None if there is none."""

    def latest(self, base: str) -> ManifestRecord | None:
        """The record of the highest version, detached ones left out; None if the table has none."""

    def put_if_absent(self, base: str, record: ManifestRecord) -> None:
        """Add the record of a version: of many racing writers one succeeds, the others get AlreadyExists."""

    def put_if_exists(self, base: str, record: ManifestRecord) -> None:
        """Replace the record of a version. NotFound if there is none."""

    def delete(self, base: str) -> None:
        """Forget a table that was dropped."""
