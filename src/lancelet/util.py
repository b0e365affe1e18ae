"""Small things that users import: moments and lengths of time as pylance takes them."""

from __future__ import annotations

from datetime import datetime, timedelta

from lancelet.errors import InvalidInput

__all__ = ["sanitize_ts", "td_to_micros"]


def sanitize_ts(ts: datetime | str) -> datetime:
    """A moment from a datetime, a pandas timestamp or a text of ISO 8601.

    >>> sanitize_ts("2026-01-31 12:00:00"), sanitize_ts("2026-01-31")
    (datetime.datetime(2026, 1, 31, 12, 0), datetime.datetime(2026, 1, 31, 0, 0))
    """
    if isinstance(ts, str):
        try:
            return datetime.fromisoformat(ts)
        except ValueError:
            raise InvalidInput(f"{ts!r} is no moment", hint="write for example 2026-01-31 12:00:00") from None
    # A pandas timestamp is a datetime that knows nanoseconds.
    to_datetime = getattr(ts, "to_pydatetime", None)
    if to_datetime is not None:
        ts = to_datetime()
    if not isinstance(ts, datetime):
        raise TypeError(f"{ts!r} of type {type(ts).__name__} is no moment")
    return ts


def td_to_micros(td: timedelta) -> int:
    """A length of time in microseconds.

    >>> td_to_micros(timedelta(seconds=2))
    2000000
    """
    return round(td / timedelta(microseconds=1))
