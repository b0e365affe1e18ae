"""Cleanup policies: which versions are old, as a caller says it or as the config of a table does for every commit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lancelet.errors import InvalidInput

__all__ = [
    "DEFAULT_AGE",
    "UNVERIFIED_AGE",
    "CleanupPolicy",
    "auto_cleanup_config",
    "auto_cleanup_policy",
    "auto_cleanup_rate",
    "format_age",
    "parse_age",
]

#: Versions younger than this stay where nothing else is asked for.
DEFAULT_AGE = timedelta(days=14)
#: Files that no version names are taken for a broken-off write after so long, and for one under way before.
UNVERIFIED_AGE = timedelta(days=7)

_PREFIX = "lance.auto_cleanup."
_DAY = 86_400
# Months and years as the reference counts them: a twelfth of a Julian year, and such a year.
_SECONDS = {
    **dict.fromkeys(("nsec", "ns"), 1e-9),
    **dict.fromkeys(("usec", "us"), 1e-6),
    **dict.fromkeys(("msec", "ms"), 1e-3),
    **dict.fromkeys(("seconds", "second", "secs", "sec", "s"), 1),
    **dict.fromkeys(("minutes", "minute", "mins", "min", "m"), 60),
    **dict.fromkeys(("hours", "hour", "hrs", "hr", "h"), 3600),
    **dict.fromkeys(("days", "day", "d"), _DAY),
    **dict.fromkeys(("weeks", "week", "wks", "wk", "w"), 7 * _DAY),
    **dict.fromkeys(("months", "month", "M"), 2_630_016),
    **dict.fromkeys(("years", "year", "yrs", "yr", "y"), 31_557_600),
}
_AGE = re.compile(r"\s*([0-9]{1,18})\s*([A-Za-z]+)")
_FORMAT = (("year", 31_557_600), ("month", 2_630_016), ("day", _DAY), ("h", 3600), ("m", 60), ("s", 1))


@dataclass(frozen=True, slots=True)
class CleanupPolicy:
    """Which versions may go: those that meet every condition given. The newest, and what refers to it, never goes.

    >>> CleanupPolicy(retain_versions=2).oldest_retained([1, 2, 5, 9])
    5
    """

    #: Only versions made longer ago than this.
    older_than: timedelta | None = None
    #: Only versions before the last so many.
    retain_versions: int | None = None
    #: Only these versions.
    versions: frozenset[int] | None = None
    #: Also files that no version names and that are young enough to belong to a write under way.
    delete_unverified: bool = False
    #: Whether a tagged version among the old ones is an error, or is kept without a word.
    error_if_tagged: bool = True

    def __post_init__(self) -> None:
        if self.retain_versions is not None and self.retain_versions < 1:
            raise InvalidInput(f"retain_versions is {self.retain_versions}, expected at least 1")
        if self.older_than is not None and self.older_than < timedelta(0):
            raise InvalidInput(f"older_than is {self.older_than}, expected no negative age")

    def with_default(self) -> CleanupPolicy:
        """The policy, with an age of two weeks where it has no condition at all."""
        given = (self.older_than, self.retain_versions, self.versions)
        return self if any(item is not None for item in given) else replace(self, older_than=DEFAULT_AGE)

    def oldest_retained(self, versions: Sequence[int]) -> int | None:
        """The first of the versions (in ascending order) that ``retain_versions`` keeps; None where it says nothing."""
        if self.retain_versions is None or not versions:
            return None
        return versions[-self.retain_versions] if self.retain_versions < len(versions) else versions[0]

    def is_old(self, version: int, made: datetime, *, now: datetime, oldest_retained: int | None) -> bool:
        """Whether a version meets every condition."""
        young = self.older_than is not None and now - made <= self.older_than
        recent = oldest_retained is not None and version >= oldest_retained
        spared = self.versions is not None and version not in self.versions
        return not (young or recent or spared)


def auto_cleanup_policy(config: Mapping[str, str], version: int) -> CleanupPolicy | None:
    """What a table's config asks to be cleaned up after ``version`` was committed; None where nothing.

    The version before stays whatever is asked: those who read it meanwhile are the rule.

    >>> config = {"lance.auto_cleanup.interval": "5", "lance.auto_cleanup.older_than": "1m 40s"}
    >>> auto_cleanup_policy(config, 10).older_than, auto_cleanup_policy(config, 11)
    (datetime.timedelta(seconds=100), None)
    """
    interval = _number(config, "interval")
    if interval is None:
        return None
    if interval == 0:
        raise InvalidInput(f"config {_PREFIX}interval is 0, expected at least 1")
    if version % interval:
        return None
    age = config.get(f"{_PREFIX}older_than")
    return CleanupPolicy(
        older_than=None if age is None else parse_age(age),
        retain_versions=_at_least_two(_number(config, "retain_versions")),
        error_if_tagged=False,
    )


def auto_cleanup_rate(config: Mapping[str, str]) -> int | None:
    """How many files a second a cleanup after a commit may remove; None for no limit."""
    return _number(config, "delete_rate_limit")


def auto_cleanup_config(
    interval: int, *, older_than: timedelta | None = None, retain_versions: int | None = None
) -> dict[str, str]:
    """The config entries that ask for a cleanup after every ``interval`` versions.

    >>> auto_cleanup_config(20, older_than=timedelta(days=14))
    {'lance.auto_cleanup.interval': '20', 'lance.auto_cleanup.older_than': '14days'}
    """
    CleanupPolicy(older_than=older_than, retain_versions=retain_versions)
    if interval < 1:
        raise InvalidInput(f"the interval is {interval} versions, expected at least 1")
    entries = {"interval": str(interval)}
    if older_than is not None:
        entries["older_than"] = format_age(older_than)
    if retain_versions is not None:
        entries["retain_versions"] = str(retain_versions)
    return {f"{_PREFIX}{key}": value for key, value in entries.items()}


def parse_age(text: str) -> timedelta:
    """The time meant by numbers with units, added up.

    >>> parse_age("2weeks 1h"), parse_age("1m40s")
    (datetime.timedelta(days=14, seconds=3600), datetime.timedelta(seconds=100))
    """
    seconds, place = 0.0, 0
    stripped = text.strip()
    while place < len(stripped):
        found = _AGE.match(stripped, place)
        if found is None or found[2] not in _SECONDS:
            raise _no_age(text)
        seconds += int(found[1]) * _SECONDS[found[2]]
        place = found.end()
    if not stripped:
        raise _no_age(text)
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        # Longer than any table has been there.
        return timedelta.max


def format_age(age: timedelta) -> str:
    """An age as configs hold it: the reference reads it, and so does :func:`parse_age`.

    >>> format_age(timedelta(seconds=100)), format_age(timedelta(0)), format_age(timedelta(days=1, microseconds=5))
    ('1m 40s', '0s', '1day 5us')
    """
    rest = age.days * _DAY + age.seconds
    pieces: list[str] = []
    for unit, seconds in _FORMAT:
        count, rest = divmod(rest, seconds)
        plural = "s" if len(unit) > 1 and count > 1 else ""
        pieces += [f"{count}{unit}{plural}"] if count else []
    milliseconds, microseconds = divmod(age.microseconds, 1000)
    pieces += [f"{milliseconds}ms"] if milliseconds else []
    pieces += [f"{microseconds}us"] if microseconds else []
    return " ".join(pieces) or "0s"


def _number(config: Mapping[str, str], key: str) -> int | None:
    text = config.get(f"{_PREFIX}{key}")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InvalidInput(f"config {_PREFIX}{key} is {text!r}, expected a whole number")
    return int(text)


def _at_least_two(retained: int | None) -> int:
    # Zero goes through, to be refused where all wrong numbers are.
    return 2 if retained in (None, 1) else retained or 0


def _no_age(text: str) -> InvalidInput:
    return InvalidInput(f"{text!r} is no age", hint="write for example 14days, 2h 30m or 100s")
