"""Feature flags: what a reader, and what a writer, must understand before it touches a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from lancelet.errors import Corrupt, InvalidInput, Unsupported
from lancelet.format.fragment_list import Fragments
from lancelet.format.indexes import IndexMetadata
from lancelet.format.manifest import Manifest
from lancelet.format.versions import FileVersion

__all__ = [
    "FLAGS",
    "Flag",
    "Words",
    "check_readable",
    "check_writable",
    "flag_names",
    "flags_for",
]

_WORD = 64


class Words(Enum):
    """In which of the two words, the reader's and the writer's, a flag stands when it is set."""

    BOTH = "both"
    WRITER = "writer"
    #: Nobody sets it any more, and nobody looks.
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Flag:
    """One bit. ``paired`` flags are corrupt in one word alone; those not ``supported`` refuse the table."""

    bit: int
    name: str
    words: Words = Words.BOTH
    paired: bool = False
    supported: bool = True

    @property
    def value(self) -> int:
        """The flag as a number."""
        return 1 << self.bit


DELETION_FILES = Flag(0, "deletion files")
STABLE_ROW_IDS = Flag(1, "stable row ids")
V2_FORMAT = Flag(2, "v2 format", Words.DEAD)
TABLE_CONFIG = Flag(3, "table config", Words.WRITER)
BASE_PATHS = Flag(4, "base paths")
NO_TRANSACTION_FILE = Flag(5, "no transaction file", Words.WRITER)
OVERLAY_FILES = Flag(6, "data overlay files", supported=False)
COVERING_INDEXES = Flag(7, "covering indexes")
MIXED_VERSIONS = Flag(8, "mixed data file versions", paired=True)
REUSE_WITH_ROW_IDS = Flag(9, "fragment reuse with stable row ids", supported=False)
TAGGED_REUSE = Flag(10, "tagged fragment reuse", paired=True)
SPILLED_LINEAGE = Flag(11, "spilled row lineage")
FRAGMENT_TREE = Flag(12, "fragment tree", supported=False)
INDEPENDENT_COVERING = Flag(13, "independent covering fields", supported=False)
MANAGED_BLOBS = Flag(14, "managed blobs", paired=True)
UNIQUE_FIELD_IDS = Flag(15, "field ids never used again", Words.WRITER)
ZONE_SEEDS = Flag(16, "zone seeds at write", paired=True, supported=False)

#: Every flag with a meaning, by its bit.
FLAGS: dict[int, Flag] = {
    flag.bit: flag
    for flag in (
        DELETION_FILES,
        STABLE_ROW_IDS,
        V2_FORMAT,
        TABLE_CONFIG,
        BASE_PATHS,
        NO_TRANSACTION_FILE,
        OVERLAY_FILES,
        COVERING_INDEXES,
        MIXED_VERSIONS,
        REUSE_WITH_ROW_IDS,
        TAGGED_REUSE,
        SPILLED_LINEAGE,
        FRAGMENT_TREE,
        INDEPENDENT_COVERING,
        MANAGED_BLOBS,
        UNIQUE_FIELD_IDS,
        ZONE_SEEDS,
    )
}

# Once set these stay: what they mean cannot be seen in a manifest, or was true of a version that may be restored.
_KEPT = MIXED_VERSIONS.value | TAGGED_REUSE.value | MANAGED_BLOBS.value


def _are_mixed(manifest: Manifest, fragments: Fragments) -> bool:
    """Whether files are of several versions, or of one that is not the table's own."""
    # A version may be told by more than one pair of numbers.
    found = {FileVersion.known(*pair) or pair for pair in fragments.versions()}
    own = None if manifest.data_format is None else _own_version(manifest.data_format.version)
    return len(found) > 1 or bool(found and own is not None and own not in found)


def _own_version(name: str) -> FileVersion | None:
    """The version that new files get; None where old manifests say one that was never meant."""
    version = FileVersion.parse(name)
    return None if version is FileVersion.V0_1 else version


def flag_names(word: int) -> list[str]:
    """The flags set in a word, for people.

    >>> flag_names(0b11 | 1 << 40)
    ['deletion files', 'stable row ids', 'bit 40 (unknown)']
    """
    bits = (bit for bit in range(_WORD) if word >> bit & 1)
    return [FLAGS[bit].name if bit in FLAGS else f"bit {bit} (unknown)" for bit in bits]


def check_readable(manifest: Manifest) -> None:
    """Refuse a table that this release cannot read right: Unsupported with the flags' names, or Corrupt."""
    _check_pairs(manifest)
    _check_known(manifest.reader_flags, "reading", manifest.version)


def check_writable(manifest: Manifest) -> None:
    """Refuse a table that this release cannot change without harm; one that it may not read is refused as well."""
    check_readable(manifest)
    _check_known(manifest.writer_flags, "writing", manifest.version)


def _check_known(word: int, doing: str, version: int) -> None:
    refused = sum(1 << bit for bit in range(_WORD) if word >> bit & 1 and not (bit in FLAGS and FLAGS[bit].supported))
    if refused:
        raise Unsupported(
            f"{doing} the table needs {', '.join(flag_names(refused))}, which this release does not support",
            version=version,
            hint="a newer implementation of Lance may have written the table",
        )


def _check_pairs(manifest: Manifest) -> None:
    reader, writer = manifest.reader_flags, manifest.writer_flags
    for flag in FLAGS.values():
        if flag.paired and (reader ^ writer) & flag.value:
            found = "the reader's" if reader & flag.value else "the writer's"
            raise Corrupt(f"flag {flag.name!r} is set in {found} word only, expected in both", version=manifest.version)
    if reader & UNIQUE_FIELD_IDS.value:
        found = f"flag {UNIQUE_FIELD_IDS.name!r} is set in the reader's word, expected in the writer's only"
        raise Corrupt(found, version=manifest.version)
    if bool(writer & UNIQUE_FIELD_IDS.value) != (manifest.max_allocated_field_id is not None):
        found = "no" if manifest.max_allocated_field_id is None else "a"
        raise Corrupt(
            f"flag {UNIQUE_FIELD_IDS.name!r} is {'' if found == 'no' else 'not '}set, but there is {found} highest id",
            version=manifest.version,
        )


def flags_for(
    manifest: Manifest,
    *,
    fragments: Fragments | None = None,
    indexes: Iterable[IndexMetadata] = (),
    stable_row_ids: bool | None = None,
    transaction_file: bool = True,
) -> tuple[int, int]:
    """The reader's and the writer's word for what is in a manifest about to be written.

    ``manifest`` has the words of the version before, from which flags that stay are kept.
    ``fragments`` are those to look at where not all need it. ``stable_row_ids`` None means: as before.

    >>> from lancelet.format.fields import Schema
    >>> flags_for(Manifest(Schema(()), config={"a": "1"}))
    (0, 8)
    """
    seen = manifest.fragments if fragments is None else fragments
    stable = bool(manifest.reader_flags & STABLE_ROW_IDS.value) if stable_row_ids is None else stable_row_ids
    some, every = seen.row_ids_known()
    if (some or stable) and not every:
        raise InvalidInput("some fragments have no row ids, expected them in all, because the table's are stable")
    conditions = (
        (DELETION_FILES, bool(seen.with_deletions())),
        (STABLE_ROW_IDS, some or stable),
        (TABLE_CONFIG, bool(manifest.config)),
        (BASE_PATHS, bool(manifest.base_paths)),
        (NO_TRANSACTION_FILE, not transaction_file),
        (OVERLAY_FILES, seen.overlaid()),
        (COVERING_INDEXES, any(index.covering_fields for index in indexes)),
        (MIXED_VERSIONS, _are_mixed(manifest, seen)),
        (SPILLED_LINEAGE, seen.spilled()),
        (UNIQUE_FIELD_IDS, manifest.max_allocated_field_id is not None),
    )
    both = sum(flag.value for flag, holds in conditions if holds and flag.words is Words.BOTH)
    writer = sum(flag.value for flag, holds in conditions if holds and flag.words is Words.WRITER)
    both |= manifest.reader_flags & manifest.writer_flags & _KEPT
    return both, both | writer
