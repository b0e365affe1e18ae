"""Session: datasets that are opened together, and how much the cache may hold that they share."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from lancelet.config import default_options, parse_size
from lancelet.errors import InvalidInput
from lancelet.storage.objects import process_objects

__all__ = ["Session"]

_KIND = "moka"


class Session:
    """What the datasets opened with it share.

    A process has one cache, of what was read of data files and of indexes, which all datasets share. Making a session
    with sizes says how many bytes it may hold from now on; without any, ``LANCELET_CACHE_BYTES`` does. A copy of a
    session that came from another process is the same session.

    >>> session = Session()
    >>> session.is_same_as(session), session.is_same_as(Session())
    (True, False)
    """

    def __init__(
        self,
        index_cache_size_bytes: int | None = None,
        metadata_cache_size_bytes: int | None = None,
        index_cache_backend: str | Mapping[str, object] | None = None,
        metadata_cache_backend: str | Mapping[str, object] | None = None,
    ) -> None:
        self._index = _limit("index_cache", index_cache_size_bytes, index_cache_backend)
        self._metadata = _limit("metadata_cache", metadata_cache_size_bytes, metadata_cache_backend)
        self._token = uuid4().hex
        if self._index is not None or self._metadata is not None:
            half = default_options().cache_bytes // 2
            process_objects().resize(sum(half if limit is None else limit for limit in (self._index, self._metadata)))

    def __repr__(self) -> str:
        held = self.index_cache_size_bytes()
        return f"Session(index_cache_size_bytes={held}, metadata_cache_size_bytes={self.size_bytes() - held})"

    def is_same_as(self, other: Session) -> bool:
        """Whether both are the same session."""
        return self._token == other._token

    def size_bytes(self) -> int:
        """Bytes that the cache holds."""
        return process_objects().counts().bytes_held

    def index_cache_size_bytes(self) -> int:
        """Bytes of it that were read of indexes."""
        return process_objects().bytes_of(_of_index)


def _of_index(key: Hashable) -> bool:
    return isinstance(key, tuple) and "/_indices/" in str(key[0])


def _limit(name: str, size: int | None, backend: str | Mapping[str, object] | None) -> int | None:
    if backend is None:
        if size is not None and size < 0:
            raise InvalidInput(f"{name}_size_bytes is {size}, expected at least 0")
        return size
    if size is not None:
        raise InvalidInput(f"{name}_size_bytes and {name}_backend are both given, expected one of them")
    kind, capacity = _parts(backend)
    if kind != _KIND:
        raise InvalidInput(f"{name}_backend is of kind {kind!r}, expected {_KIND!r}: a cache in memory")
    return None if capacity is None else parse_size(capacity)


def _parts(backend: str | Mapping[str, object]) -> tuple[str, str | None]:
    """The kind and the capacity that a URI such as ``moka://?capacity=1048576``, or a mapping, asks for."""
    if isinstance(backend, str):
        found = urlsplit(backend)
        return found.scheme, parse_qs(found.query).get("capacity", [None])[0]
    options = backend.get("options")
    capacity = options.get("capacity") if isinstance(options, Mapping) else None
    return str(backend.get("kind")), None if capacity is None else str(capacity)
