"""Names and columns that tell where a row came from, and the parts of declarations that Spark needs in other words."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, lit, struct, to_json, xxhash64

from lancelet.errors import InvalidInput
from lancelet.storage.paths import split_uri

__all__ = ["FINGERPRINT", "INPUT", "KIND", "MARK", "SIZE", "as_names", "beside", "content_mark", "identity", "quoted"]

#: Columns of the table: which input a row came from, and in which state the input and the declaration were.
INPUT, FINGERPRINT = "_input", "_fingerprint"
#: Columns of inputs while they are compared: what tells one state from another, and what is to become of the input.
MARK, KIND = "__lancelet_mark", "__lancelet_kind"
#: How many bytes an input has, where the source knows without reading it.
SIZE = "__lancelet_size"
# Every digit, so that values that differ are told apart.
_JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def quoted(name: str) -> str:
    """A column's name as SQL takes it.

    >>> quoted("a`b")
    '`a``b`'
    """
    return f"`{name.replace('`', '``')}`"


def as_names(given: str | Sequence[str]) -> tuple[str, ...]:
    """One name or several, as several.

    >>> as_names("id"), as_names(("a", "b"))
    (('id',), ('a', 'b'))
    """
    return (given,) if isinstance(given, str) else tuple(given)


def beside(place: str, folder: str | None) -> str:
    """A path seen from a folder; absolute ones and URIs are what they are.

    >>> beside("data/x.json", "/jobs"), beside("s3://b/x", "/jobs"), beside("/x", "/jobs")
    ('/jobs/data/x.json', 's3://b/x', '/x')
    """
    if folder is None or split_uri(place)[0] or os.path.isabs(place):
        return place
    return os.path.normpath(os.path.join(folder, place))


def identity(frame: DataFrame, key: Sequence[str]) -> Column:
    """What identifies a row: the value of its key as text, or those of several as JSON."""
    missing = [name for name in key if name not in frame.columns]
    if missing:
        raise InvalidInput(
            f"the source has no column {missing[0]!r} for its key", hint=f"it has: {', '.join(frame.columns)}"
        )
    if len(key) == 1:
        return col(quoted(key[0])).cast("string")
    return to_json(struct(*(col(quoted(name)) for name in key)), {**_JSON, "ignoreNullFields": "false"})


def content_mark(frame: DataFrame) -> Column:
    """A fingerprint of a row's values, of any types that Spark has."""
    values = to_json(struct(*(col(quoted(name)) for name in frame.columns)), _JSON)
    return xxhash64(values, lit(1)).cast("string")
