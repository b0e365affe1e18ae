"""Planning blob reads: from descriptors to the objects that hold the bytes, and which part of which object is whose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelet.errors import Corrupt
from lancelet.file.blobs import BlobKind, Descriptors, sidecar_path

__all__ = ["BlobPlan", "ObjectName", "plan_blobs"]

Ints = npt.NDArray[np.int64]

_FARTHEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ObjectName:
    """An object: a path in the data file's own store, or a URI, below a base of the table unless ``base`` is 0."""

    name: str
    external: bool = False
    base: int = 0


@dataclass(frozen=True, slots=True)
class BlobPlan:
    """For each row the number of its object (-1 for a null) and its part of that object.

    The size is -1 where the blob is the whole object from its position on.
    """

    objects: tuple[ObjectName, ...]
    number: Ints
    position: Ints
    size: Ints

    def __len__(self) -> int:
        return len(self.number)

    def sized(self, size_of: Callable[[int], int]) -> BlobPlan:
        """The plan with the sizes of whole objects, which ``size_of`` the object's number tells."""
        unknown = np.flatnonzero(self.size < 0)
        if not len(unknown):
            return self
        sizes = self.size.copy()
        for number in np.unique(self.number[unknown]).tolist():
            rows = unknown[self.number[unknown] == number]
            sizes[rows] = size_of(number) - self.position[rows]
        if np.any(sizes < 0):
            row = int(np.argmin(sizes))
            raise Corrupt(f"the blob of row {row:,} starts beyond the end of {self.objects[self.number[row]].name!r}")
        return replace(self, size=sizes)

    def windows(self, most: int) -> Iterator[slice]:
        """Rows cut into runs of at most ``most`` bytes, or of one row that has more."""
        ends = np.cumsum(self.size)
        start = 0
        while start < len(self):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + most, "right")))
            yield slice(start, stop)
            start = stop

    def by_object(self, rows: slice) -> Iterator[tuple[int, Ints]]:
        """The objects that some rows need, and for each those of the rows that have bytes in it, in row order."""
        wanted = np.flatnonzero(self.size[rows] > 0) + rows.start
        numbers = self.number[wanted]
        order = np.argsort(numbers, kind="stable")
        cuts = np.flatnonzero(np.diff(numbers[order])) + 1
        for part in np.split(order, cuts) if len(order) else ():
            yield int(numbers[part[0]]), wanted[part]


def plan_blobs(found: Descriptors, data_path: str, bases: Mapping[int, str]) -> BlobPlan:
    """Where the blobs of a data file lie.

    >>> from lancelet.file.blobs import parse_descriptors
    >>> plan = plan_blobs(parse_descriptors(pa.array([{"position": 64, "size": 5}, None])), "a.lance", {})
    >>> plan.objects[0].name, plan.number.tolist(), plan.position.tolist(), plan.size.tolist()
    ('a.lance', [0, -1], [64, 0], [5, 0])
    """
    # Sums of 64-bit numbers wrap around, so the limit is put to their difference.
    farthest = np.uint64(_FARTHEST)
    far = (found.size > farthest) | (found.position > farthest - np.minimum(found.size, farthest))
    if far.any():
        row = int(np.argmax(far))
        text = f"the blob of row {row:,} has {found.size[row]:,} bytes at {found.position[row]:,}"
        raise Corrupt(f"{text}, beyond the end of any file")
    objects = [ObjectName(data_path)]
    number = np.where(found.valid, 0, -1)
    aside = (found.kind == BlobKind.PACKED) | (found.kind == BlobKind.DEDICATED)
    ids, which = np.unique(found.blob_id[aside], return_inverse=True)
    number[aside] = len(objects) + which
    objects.extend(ObjectName(sidecar_path(data_path, blob_id)) for blob_id in ids.tolist())
    external = found.kind == BlobKind.EXTERNAL
    size = found.size.astype(np.int64)
    if external.any():
        names, which = _external(found, external, bases)
        number[external] = len(objects) + which
        objects.extend(names)
        size[external & (found.size == 0)] = -1
    return BlobPlan(tuple(objects), number, found.position.astype(np.int64), size)


def _external(
    found: Descriptors, external: npt.NDArray[np.bool_], bases: Mapping[int, str]
) -> tuple[list[ObjectName], Ints]:
    """The distinct external objects, and which of them each external row means."""
    encoded = pc.dictionary_encode(found.uri.filter(pa.array(external)))
    uris = encoded.dictionary.to_pylist()
    base = found.blob_id[external].astype(np.int64)
    pairs, which = np.unique(base * len(uris) + np.asarray(encoded.indices), return_inverse=True)
    names = [ObjectName(uris[pair % len(uris)], external=True, base=pair // len(uris)) for pair in pairs.tolist()]
    for name in names:
        if name.base and name.base not in bases:
            raise Corrupt(f"an external blob names base {name.base}, the table has {sorted(bases) or 'none'}")
    return names, which.astype(np.int64)
