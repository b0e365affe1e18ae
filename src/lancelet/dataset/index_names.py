"""Names of file versions and of types of indexes, as pylance has them."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["IndexFileVersion", "SupportedDistributedIndices"]


class IndexFileVersion(StrEnum):
    """Versions of the files of indexes over vectors.

    >>> IndexFileVersion("V3").name
    'V3'
    """

    LEGACY = "Legacy"
    V3 = "V3"


class SupportedDistributedIndices(StrEnum):
    """Types that pylance's ``merge_index_metadata`` knows."""

    BTREE = "BTREE"
    INVERTED = "INVERTED"
    IVF_FLAT = "IVF_FLAT"
    IVF_PQ = "IVF_PQ"
    IVF_SQ = "IVF_SQ"
    VECTOR = "VECTOR"
