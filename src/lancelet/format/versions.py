"""Versions of the data file format: their names, their numbers on disk, and how they compare."""

from __future__ import annotations

from enum import IntEnum

from lancelet.errors import InvalidInput, Unsupported

__all__ = ["DEFAULT_VERSION", "FileVersion"]


class FileVersion(IntEnum):
    """A data file version. Later versions compare greater.

    >>> FileVersion.parse("stable"), FileVersion.V2_0 < FileVersion.V2_1
    (<FileVersion.V2_2: 22>, True)
    >>> FileVersion.V2_0.label, FileVersion.V2_0.footer_numbers, FileVersion.V2_0.manifest_numbers
    ('2.0', (0, 3), (2, 0))
    """

    V0_1 = 1
    V2_0 = 20
    V2_1 = 21
    V2_2 = 22
    V2_3 = 23

    @property
    def label(self) -> str:
        """The version's own name, such as ``"2.1"``."""
        return f"{self.value // 10}.{self.value % 10}"

    @property
    def footer_numbers(self) -> tuple[int, int]:
        """(major, minor) at the end of a data file."""
        return _FOOTER.get(self, self.manifest_numbers)

    @property
    def manifest_numbers(self) -> tuple[int, int]:
        """(major, minor) with which a manifest describes the data file."""
        return (0, 2) if self is FileVersion.V0_1 else (self.value // 10, self.value % 10)

    @staticmethod
    def parse(name: str | FileVersion) -> FileVersion:
        """The version that a user means by a name or an alias (``legacy``, ``stable``, ``next``), in any case."""
        if isinstance(name, FileVersion):
            return name
        version = _NAMES.get(name.strip().lower())
        if version is None:
            raise InvalidInput(f"unknown data file version {name!r}", hint=f"known names: {', '.join([*_NAMES])}")
        return version

    @staticmethod
    def known(major: int, minor: int) -> FileVersion | None:
        """As :meth:`from_numbers`, but None for numbers that mean no version.

        >>> FileVersion.known(0, 0), FileVersion.known(9, 9)
        (<FileVersion.V0_1: 1>, None)
        """
        return _NUMBERS.get((major, minor))

    @staticmethod
    def from_numbers(major: int, minor: int) -> FileVersion:
        """The version that a footer or a manifest means by two numbers.

        >>> FileVersion.from_numbers(0, 3) is FileVersion.from_numbers(2, 0) is FileVersion.V2_0
        True
        """
        version = FileVersion.known(major, minor)
        if version is None:
            raise Unsupported(
                f"data file version {major}.{minor} is unknown, expected one of 0.1, 2.0, 2.1, 2.2, 2.3",
                hint="a newer implementation of Lance may have written the file",
            )
        return version


DEFAULT_VERSION = FileVersion.V2_2

_FOOTER = {FileVersion.V2_0: (0, 3)}
_NAMES = {version.label: version for version in FileVersion} | {
    "legacy": FileVersion.V0_1,
    "stable": FileVersion.V2_2,
    "next": FileVersion.V2_3,
}
_NUMBERS = {version.manifest_numbers: version for version in FileVersion} | {
    (0, 0): FileVersion.V0_1,
    (0, 1): FileVersion.V0_1,
    (0, 3): FileVersion.V2_0,
}
