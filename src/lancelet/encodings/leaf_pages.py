"""From skeleton arrays to leaf pages: structure becomes levels, and pages that no layout can hold are cut in two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.encodings.blob import PendingBlobs
from lancelet.encodings.chunk_levels import Levels
from lancelet.encodings.flatten import flatten
from lancelet.encodings.leaf_page import EncodedPage, LeafPage, TooManyLevels
from lancelet.encodings.shape import Shape, items_per_row, path_shape
from lancelet.encodings.values import Bytes, Values, from_arrow
from lancelet.errors import InvalidInput, LanceletError
from lancelet.format.layouts import Layer
from lancelet.format.versions import FileVersion
from lancelet.kernels import ravel

__all__ = ["LeafWriter", "TooManyLevels"]


@dataclass(frozen=True, slots=True)
class LeafWriter:
    """Turns the rows of one leaf column into encoded pages."""

    path: tuple[Shape, ...]
    version: FileVersion
    encode: Callable[[LeafPage], EncodedPage | PendingBlobs]
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def scale(self) -> int:
        """Items for each row: more than one below structural fixed-size lists."""
        return items_per_row(self.path)

    def pages(self, skeleton: pa.Array) -> Iterator[EncodedPage | PendingBlobs]:
        """The pages that hold the rows, in order; mostly one."""
        try:
            encoded = self.encode(self._leaf_page(skeleton))
        except TooManyLevels:
            if len(skeleton) < 2:
                raise
            middle = len(skeleton) // 2
            yield from self.pages(skeleton.slice(0, middle))
            yield from self.pages(skeleton.slice(middle))
            return
        except LanceletError as error:
            raise error.where(column=".".join(node.field.name for node in self.path)) from None
        yield encoded

    def _leaf_page(self, skeleton: pa.Array) -> LeafPage:
        (part,) = flatten(path_shape(self.path), skeleton)
        repetition, definition, codes = ravel.ravel(part.layers)
        layers = tuple(map(Layer, codes))
        values, dictionary = _values(part.values)
        return LeafPage(
            kind=part.values.type,
            version=self.version,
            num_rows=len(skeleton),
            layers=layers,
            repetition=repetition,
            definition=definition,
            num_items=len(part.values),
            values=values,
            validity=_validity(definition, layers),
            dictionary=dictionary,
            metadata=self.metadata,
        )


def _values(array: pa.Array) -> tuple[Values | None, Values | None]:
    kind = array.type
    if pat.is_null(kind) or (pat.is_struct(kind) and not kind.num_fields):
        return None, None
    if isinstance(array, pa.DictionaryArray):
        keys = array.indices
        if keys.null_count:
            keys = keys.fill_null(0)
        return from_arrow(keys), from_arrow(array.dictionary)
    if pat.is_struct(kind):
        _refuse_null_fields(array)
    return from_arrow(array), None


def _refuse_null_fields(array: pa.StructArray) -> None:
    """A packed struct is null as a whole or not at all: its fields have no place for nulls of their own."""
    for at in range(array.type.num_fields):
        nulls = array.field(at).is_null() if array.field(at).null_count else None
        if nulls is not None and pc.any(pc.and_(nulls, array.is_valid())).as_py():
            raise InvalidInput(
                f"field {array.type.field(at).name!r} of a packed struct is null where the struct is not",
                hint="leave lance-encoding:packed out, or fill the nulls",
            )


def _validity(definition: Levels | None, layers: tuple[Layer, ...]) -> Bytes | None:
    """Which visible items hold a value: level 0. Items of null and empty lists are not visible."""
    if definition is None:
        return None
    highest = 0
    for layer in layers:
        if layer.is_list:
            definition = definition[definition <= highest]
            break
        highest += layer.definition_levels
    valid = definition == 0
    return None if valid.all() else np.packbits(valid, bitorder="little")
