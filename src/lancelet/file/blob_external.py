"""External blobs: which base of the table a URI lies below, and whether it can stand alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelet.errors import InvalidInput

__all__ = ["external_places"]

_ABSOLUTE = r"^[A-Za-z][A-Za-z0-9+.\-]+:/"


def external_places(
    uri: pa.StringArray, where: npt.NDArray[np.bool_], bases: Mapping[int, str]
) -> tuple[npt.NDArray[np.uint32], pa.StringArray]:
    """The base id and the path below it for each URI, or 0 and the URI itself; 0 and nothing where there is none.

    >>> found = external_places(pa.array(["s3://b/dir/x", "s3://c/y"]), np.array([True, True]), {7: "s3://b/dir"})
    >>> found[0].tolist(), found[1].to_pylist()
    ([7, 0], ['x', 's3://c/y'])
    """
    base_id = np.zeros(len(uri), np.uint32)
    kept = pc.if_else(pa.array(where), uri, "").fill_null("")
    if not where.any():
        return base_id, kept
    # Plain paths and file URIs name the same place.
    plain = _plain(kept)
    result = kept
    # The longest base wins, so it comes last.
    for number, root in sorted(bases.items(), key=lambda item: len(item[1])):
        prefix = _plain(pa.array([root]))[0].as_py().rstrip("/") + "/"
        below = pc.and_(pc.starts_with(plain, prefix), pc.greater(pc.binary_length(plain), len(prefix.encode())))
        result = pc.if_else(below, pc.utf8_slice_codeunits(plain, len(prefix)), result)
        base_id[np.asarray(below)] = number
    lost = where & (base_id == 0) & ~np.asarray(pc.match_substring_regex(kept, _ABSOLUTE))
    if lost.any():
        found = kept[int(np.argmax(lost))].as_py()
        raise InvalidInput(
            f"external blob URI {found!r} is neither absolute nor below a base of the table", uri=found or None
        )
    return base_id, result


def _plain(uri: pa.StringArray) -> pa.StringArray:
    return pc.replace_substring_regex(uri, r"^file://(localhost)?/", "/", max_replacements=1)
