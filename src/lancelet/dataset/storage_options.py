"""Storage options as pylance hands them on: an object that tells them, and by what it is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["StorageOptionsAccessor"]

_REFRESH = 60


@dataclass(frozen=True, slots=True, repr=False)
class StorageOptionsAccessor:
    """Storage options that stay what they are.

    >>> accessor = StorageOptionsAccessor.with_static_options({"region": "eu-west-1"})
    >>> accessor.get_storage_options(), accessor.has_provider()
    ({'region': 'eu-west-1'}, False)
    """

    #: Credentials among them, so that they are never shown.
    _options: Mapping[str, str] = field(hash=False)

    @staticmethod
    def with_static_options(options: Mapping[str, str]) -> StorageOptionsAccessor:
        """The accessor of some options."""
        return StorageOptionsAccessor(dict(options))

    def __repr__(self) -> str:
        return f"StorageOptionsAccessor(id={self.accessor_id()}, has_provider=false)"

    def accessor_id(self) -> str:
        """A text that is the same for the same options."""
        digest = hashlib.sha256(json.dumps(dict(self._options), sort_keys=True).encode()).hexdigest()
        return f"static_options_{digest[:16]}"

    def get_storage_options(self) -> dict[str, str]:
        """The options that the next request is made with."""
        return dict(self._options)

    def initial_storage_options(self) -> dict[str, str]:
        """The options as they were given."""
        return dict(self._options)

    def has_provider(self) -> bool:
        """Whether something gives new options when the old ones end: nothing does."""
        return False

    def refresh_offset_secs(self) -> int:
        """How many seconds before their end options would be asked for anew."""
        return _REFRESH
