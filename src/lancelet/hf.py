"""Hugging Face: columns as its descriptions say what they are."""

from __future__ import annotations

import io
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import pyarrow as pa

__all__ = ["HuggingFaceConverter"]


class HuggingFaceConverter:
    """Makes what training takes of columns of tables that Hugging Face's ``datasets`` wrote.

    ``ds_info`` is what it left in the metadata of the schema, under ``huggingface``.
    """

    def __init__(self, ds_info: Mapping[str, Any]) -> None:
        self.ds_info = ds_info

    def to_pytorch(self, col: str, array: pa.Array) -> list[Any] | None:
        """A column of images as images of Pillow, None for nulls; None for a column that is not described.

        >>> HuggingFaceConverter({"info": {"features": {}}}).to_pytorch("x", pa.array([1])) is None
        True
        """
        feature = self.ds_info.get("info", {}).get("features", {}).get(col)
        if feature is None:
            return None
        if feature.get("_type") != "Image":
            raise NotImplementedError(
                f"column {col!r} is a {feature.get('_type')} to Hugging Face, of which no tensor is made: "
                "choose other columns, or give a to_tensor_fn"
            )
        return [None if row is None else _image(row) for row in array.to_pylist()]


def _image(row: Mapping[str, Any]) -> Any:
    # By name: Pillow is needed here alone.
    image = import_module("PIL.Image")
    content = row.get("bytes")
    return image.open(row["path"] if content is None else io.BytesIO(content))
