"""Names within a table's folder: manifests, transactions, deletions, data, indexes, tags and branches."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum
from urllib.parse import quote, unquote
from uuid import UUID, uuid4

from lancelet.errors import InvalidInput
from lancelet.format.fragments import DeletionFile

__all__ = [
    "BRANCHES",
    "DATA",
    "DELETIONS",
    "HINT",
    "INDEXES",
    "TAGS",
    "TRANSACTIONS",
    "VERSIONS",
    "ManifestName",
    "NamingScheme",
    "branch_folder",
    "branch_of_path",
    "branch_path",
    "data_file_name",
    "deletion_path",
    "index_folder",
    "manifest_path",
    "new_detached_version",
    "parse_hint",
    "parse_manifest_name",
    "staging_path",
    "tag_path",
    "transaction_name",
    "write_hint",
]

VERSIONS, TRANSACTIONS, DELETIONS, DATA, INDEXES = "_versions", "_transactions", "_deletions", "data", "_indices"
TAGS, BRANCHES, TREE = "_refs/tags", "_refs/branches", "tree"
#: Says which version was the newest when it was written. It may be wrong, and may be missing.
HINT = f"{VERSIONS}/latest_version_hint.json"

_LARGEST = (1 << 64) - 1
#: Set in the numbers of versions that no other version follows.
DETACHED = 1 << 63
_MANIFEST = re.compile(r"(d?)([0-9]{1,20})\.manifest")


class NamingScheme(Enum):
    """How manifests are named: by version, or by what is left up to the largest, so that the newest sorts first."""

    V1 = 1
    V2 = 2


@dataclass(frozen=True, slots=True)
class ManifestName:
    """What the name of a manifest says. Detached versions are named alike in both schemes, so they have none."""

    version: int
    scheme: NamingScheme | None

    @property
    def detached(self) -> bool:
        """Whether the version stands beside the table's history."""
        return self.scheme is None


def manifest_path(version: int, scheme: NamingScheme = NamingScheme.V2) -> str:
    """Where the manifest of a version is.

    >>> manifest_path(1), manifest_path(1, NamingScheme.V1), manifest_path(1 << 63)
    ('_versions/18446744073709551614.manifest', '_versions/1.manifest', '_versions/d9223372036854775808.manifest')
    """
    if not 0 <= version <= _LARGEST:
        raise InvalidInput(f"version {version} is no version, expected 0 to {_LARGEST}")
    if version & DETACHED:
        return f"{VERSIONS}/d{version}.manifest"
    name = str(version) if scheme is NamingScheme.V1 else f"{_LARGEST - version:020}"
    return f"{VERSIONS}/{name}.manifest"


def parse_manifest_name(path: str) -> ManifestName | None:
    """What a path's last part says, or None if it is not that of a manifest.

    >>> parse_manifest_name("_versions/18446744073709551614.manifest")
    ManifestName(version=1, scheme=<NamingScheme.V2: 2>)
    >>> parse_manifest_name("_versions/latest_version_hint.json") is None
    True
    """
    found = _MANIFEST.fullmatch(path.rpartition("/")[2])
    if found is None:
        return None
    number = int(found[2])
    if number > _LARGEST:
        return None
    if found[1]:
        return ManifestName(number, None) if number & DETACHED else None
    if len(found[2]) == 20:
        return ManifestName(_LARGEST - number, NamingScheme.V2)
    return ManifestName(number, NamingScheme.V1)


def new_detached_version() -> int:
    """A number for a detached version, at random."""
    return DETACHED | (uuid4().int & (DETACHED - 1))


def staging_path(path: str) -> str:
    """Where a manifest is written before an external store has put it in its place."""
    return f"{path}-{uuid4()}"


def parse_hint(data: bytes | memoryview) -> int | None:
    """The version in a hint; None if it says nothing usable. A hint is never trusted, so nothing in it is an error.

    >>> parse_hint(write_hint(7)), parse_hint(b"{")
    (7, None)
    """
    try:
        content = json.loads(bytes(data))
    except (ValueError, RecursionError):
        return None
    version = content.get("version") if isinstance(content, dict) else None
    return version if type(version) is int and 0 < version < DETACHED else None


def write_hint(version: int) -> bytes:
    """The hint's content."""
    return b'{"version":%d}' % version


def transaction_name(read_version: int, uuid: str) -> str:
    """The name of a transaction's file, as a manifest tells it.

    >>> transaction_name(3, "c7ee3e63-9faa-4527-8997-df9e6215bc7b")
    '3-c7ee3e63-9faa-4527-8997-df9e6215bc7b.txn'
    """
    return f"{read_version}-{uuid}.txn"


def deletion_path(fragment_id: int, item: DeletionFile) -> str:
    """Where a fragment's deletion file is, below the base path that it names.

    >>> from lancelet.format.fragments import DeletionKind
    >>> deletion_path(4, DeletionFile(DeletionKind.BITMAP, read_version=7, id=9))
    '_deletions/4-7-9.bin'
    """
    return f"{DELETIONS}/{fragment_id}-{item.read_version}-{item.id}.{item.kind.extension}"


def data_file_name(uuid: UUID | None = None) -> str:
    """A new name for a data file: 24 bits of a random number as digits, which spreads names over an object store's
    servers, and the rest in hexadecimal.

    >>> data_file_name(UUID("551e10ba-ec2a-4318-b3b5-69a380ddf381"))
    '010101010001111000010000baec2a4318b3b569a380ddf381.lance'
    """
    value = (uuid or uuid4()).bytes
    return f"{int.from_bytes(value[:3]):024b}{value[3:].hex()}.lance"


def index_folder(uuid: UUID) -> str:
    """Where the files of an index segment are."""
    return f"{INDEXES}/{uuid}"


def tag_path(name: str) -> str:
    """Where a tag is."""
    return f"{TAGS}/{name}.json"


def branch_path(name: str) -> str:
    """Where a branch is described.

    >>> branch_path("feature/x")
    '_refs/branches/feature%2Fx.json'
    """
    return f"{BRANCHES}/{quote(name, safe='')}.json"


def branch_of_path(path: str) -> str:
    """The name of the branch described at a path: the inverse of :func:`branch_path`."""
    return unquote(path.rpartition("/")[2].removesuffix(".json"))


def branch_folder(name: str) -> str:
    """The folder that is to a branch what the table's own is to its main branch.

    >>> branch_folder("feature/x")
    'tree/feature/x'
    """
    return f"{TREE}/{name}"
