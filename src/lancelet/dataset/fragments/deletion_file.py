"""DeletionFile: which file says what rows of a fragment are deleted."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from lancelet.errors import InvalidInput
from lancelet.format.fragments import DeletionFile as Stored
from lancelet.format.fragments import DeletionKind
from lancelet.format.names import deletion_path

__all__ = ["DeletionFile"]

_KINDS = {"array": DeletionKind.ARROW_ARRAY, "bitmap": DeletionKind.BITMAP}
_NAMES = {kind: name for name, kind in _KINDS.items()}


@dataclass(frozen=True, repr=False)
class DeletionFile:
    """A deletion file; its name is made of these numbers and the fragment's id.

    >>> DeletionFile(1, 2, "array", 3).path(7)
    '_deletions/7-1-2.arrow'
    """

    read_version: int
    id: int
    #: ``"array"`` or ``"bitmap"``: how the file lists rows.
    file_type: str
    num_deleted_rows: int | None
    base_id: int | None = None

    def __post_init__(self) -> None:
        if self.file_type not in _KINDS:
            raise InvalidInput(f"file_type is {self.file_type!r}, expected 'array' or 'bitmap'")

    def __repr__(self) -> str:
        return f"DeletionFile(type={self.file_type!r}, num_deleted_rows={self.num_deleted_rows})"

    def asdict(self) -> dict[str, object]:
        """The numbers by name."""
        return asdict(self)

    def json(self) -> str:
        """The numbers as JSON text."""
        return json.dumps(self.asdict(), separators=(",", ":"))

    @staticmethod
    def from_json(json: str) -> DeletionFile:
        """The file that a JSON text describes."""
        return _from_json(json)

    def path(self, fragment_id: int, base_uri: str | None = None) -> str:
        """The file's path, for the deletions of a fragment, below ``base_uri`` if that is given."""
        path = deletion_path(fragment_id, self.to_stored())
        return path if base_uri is None else f"{base_uri.rstrip('/')}/{path}"

    @staticmethod
    def from_stored(stored: Stored) -> DeletionFile:
        """What a manifest's entry says."""
        kind = _NAMES[stored.kind]
        return DeletionFile(stored.read_version, stored.id, kind, stored.num_deleted_rows, stored.base_id)

    def to_stored(self) -> Stored:
        """The entry of a manifest."""
        rows = self.num_deleted_rows or None
        return Stored(_KINDS[self.file_type], self.read_version, self.id, rows, self.base_id)


def _from_json(text: str) -> DeletionFile:
    try:
        found = json.loads(text)
        return DeletionFile(**found)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{text[:80]!r} describes no deletion file: {error}") from None
