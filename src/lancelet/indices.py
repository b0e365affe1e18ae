"""Indexes, as users name them: types with parameters, versions of files, segments."""

from __future__ import annotations

from lancelet.dataset.index_descriptions import IndexDescription, IndexSegment, IndexSegmentDescription
from lancelet.dataset.index_names import IndexFileVersion, SupportedDistributedIndices
from lancelet.dataset.index_request import IndexConfig

__all__ = [
    "IndexConfig",
    "IndexDescription",
    "IndexFileVersion",
    "IndexSegment",
    "IndexSegmentDescription",
    "SupportedDistributedIndices",
]
