"""Manifest stores in SQL databases: a SQLite file on one machine, PostgreSQL for many."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from contextlib import closing
from dataclasses import dataclass, field

from lancelet.errors import AlreadyExists, NotFound, Storage, Unsupported
from lancelet.table.external.contract import ManifestRecord

__all__ = ["PostgresManifestStore", "SqliteManifestStore"]

_TABLE = "lance_manifests"
_CREATE = f"""CREATE TABLE IF NOT EXISTS {_TABLE} (base_uri TEXT NOT NULL, version BIGINT NOT NULL,
path TEXT NOT NULL, size BIGINT, e_tag TEXT, PRIMARY KEY (base_uri, version))"""
_COLUMNS = "version, path, size, e_tag"
_GET = f"SELECT {_COLUMNS} FROM {_TABLE} WHERE base_uri = ? AND version = ?"
_LATEST = f"SELECT {_COLUMNS} FROM {_TABLE} WHERE base_uri = ? ORDER BY version DESC LIMIT 1"
_ADD = f"INSERT INTO {_TABLE} (base_uri, {_COLUMNS}) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_CHANGE = f"UPDATE {_TABLE} SET path = ?, size = ?, e_tag = ? WHERE base_uri = ? AND version = ?"
_DELETE = f"DELETE FROM {_TABLE} WHERE base_uri = ?"
#: Creating a table twice at once is an error in PostgreSQL even IF NOT EXISTS; this number is ours to wait at.
_LOCK = f"SELECT pg_advisory_xact_lock({int.from_bytes(b'lancelet')})"

Value = str | int | None
Row = tuple[int, str, int | None, str | None]


class _NoTableError(Exception):
    """The database has not been written to yet."""


class _SqlManifestStore(ABC):
    """What both have in common. Each call is one transaction on a connection of its own: commits are rare."""

    __slots__ = ()

    def get(self, base: str, version: int) -> ManifestRecord | None:
        """The record of a version."""
        return self._one(_GET, base, version)

    def latest(self, base: str) -> ManifestRecord | None:
        """The record of the highest version."""
        return self._one(_LATEST, base)

    def put_if_absent(self, base: str, record: ManifestRecord) -> None:
        """Add the record of a version."""
        values = (base, record.version, record.path, record.size, record.e_tag)
        try:
            added, _ = self._run(_ADD, values)
        except _NoTableError:
            self._create()
            added, _ = self._run(_ADD, values)
        if not added:
            raise AlreadyExists(f"{base!r} has a record of the version", uri=self._place, version=record.version)

    def put_if_exists(self, base: str, record: ManifestRecord) -> None:
        """Replace the record of a version."""
        values = (record.path, record.size, record.e_tag, base, record.version)
        try:
            changed, _ = self._run(_CHANGE, values)
        except _NoTableError:
            changed = 0
        if not changed:
            raise NotFound(f"{base!r} has no record of the version", uri=self._place, version=record.version)

    def delete(self, base: str) -> None:
        """Forget a table."""
        try:
            self._run(_DELETE, (base,))
        except _NoTableError:
            return

    def _one(self, statement: str, *values: Value) -> ManifestRecord | None:
        try:
            _, rows = self._run(statement, values)
        except _NoTableError:
            return None
        return ManifestRecord(*rows[0]) if rows else None

    @property
    @abstractmethod
    def _place(self) -> str:
        """What errors call the database."""

    @abstractmethod
    def _create(self) -> None:
        """Make the table if there is none."""

    @abstractmethod
    def _run(self, statement: str, values: tuple[Value, ...]) -> tuple[int, list[Row]]:
        """Rows changed, and rows found."""


@dataclass(frozen=True, slots=True)
class SqliteManifestStore(_SqlManifestStore):
    """Records in a SQLite file, for writers on one machine: file locks of network drives are not to be trusted."""

    path: str
    #: Seconds to wait for other writers.
    timeout: float = 30.0

    @property
    def _place(self) -> str:
        return self.path

    def _create(self) -> None:
        self._run(_CREATE, ())

    def _run(self, statement: str, values: tuple[Value, ...]) -> tuple[int, list[Row]]:
        try:
            with closing(sqlite3.connect(self.path, timeout=self.timeout, isolation_level=None)) as connection:
                cursor = connection.execute(statement, values)
                return cursor.rowcount, cursor.fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                raise _NoTableError from None
            busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            raise Storage(f"SQLite failed: {error}", uri=self.path, retryable=busy) from error
        except sqlite3.Error as error:
            raise Storage(f"SQLite failed: {error}", uri=self.path) from error


@dataclass(frozen=True, slots=True)
class PostgresManifestStore(_SqlManifestStore):
    """Records in a PostgreSQL database, by libpq's connection string or URI. Needs the extra ``postgres``."""

    # It may hold a password.
    connection: str = field(repr=False)

    @property
    def _place(self) -> str:
        return "postgresql"

    def _create(self) -> None:
        self._run(_CREATE, (), first=_LOCK)

    def _run(self, statement: str, values: tuple[Value, ...], *, first: str = "") -> tuple[int, list[Row]]:
        try:
            import psycopg
        except ImportError:
            hint = "pip install 'lancelet[postgres]'"
            raise Unsupported("PostgreSQL needs the package psycopg", hint=hint) from None
        try:
            with psycopg.connect(self.connection) as connection:
                if first:
                    connection.execute(first.encode())
                cursor = connection.execute(statement.replace("?", "%s").encode(), values)
                return cursor.rowcount, cursor.fetchall() if cursor.description else []
        except psycopg.errors.UndefinedTable:
            raise _NoTableError from None
        except psycopg.OperationalError as error:
            raise Storage(f"PostgreSQL did not answer: {error}", uri=self._place, retryable=True) from error
        except psycopg.Error as error:
            raise Storage(f"PostgreSQL failed: {error}", uri=self._place) from error
