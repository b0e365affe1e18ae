"""What the writer hands to the encodings, and what it gets back: one page of one leaf, before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from lancelet.encodings.chunk_levels import Levels
from lancelet.encodings.values import Bytes, Values
from lancelet.format.arrays import ArrayEncoding
from lancelet.format.layouts import Layer, PageLayout
from lancelet.format.versions import FileVersion

__all__ = ["EncodedPage", "LeafPage", "TooManyLevels"]


class TooManyLevels(Exception):
    """A chunk of the page would need more levels than its header can count: the page must have fewer rows."""


@dataclass(frozen=True, slots=True)
class LeafPage:
    """The rows of one page of a leaf column, its structure already turned into levels.

    ``values`` has one entry for each visible item, null or not; entries of null items repeat another's, or are empty.
    It is None where the type has no values (null, empty struct).
    """

    kind: pa.DataType
    version: FileVersion
    num_rows: int
    #: Innermost first. A layer is nullable only if the page really has such a null.
    layers: tuple[Layer, ...]
    repetition: Levels | None
    definition: Levels | None
    #: Visible items.
    num_items: int
    values: Values | None
    #: One bit for each visible item, least significant first: whether it holds a value; None when all do.
    validity: Bytes | None = None
    #: An Arrow dictionary column: ``values`` are its keys, and these the values they stand for.
    dictionary: Values | None = None
    #: The field's metadata: the ``lance-encoding:*`` keys say how its user wants it stored.
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EncodedPage:
    """A page ready to be placed in a file."""

    layout: PageLayout | ArrayEncoding
    buffers: tuple[Bytes, ...]
    num_rows: int
