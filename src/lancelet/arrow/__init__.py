"""Arrow types that users of Lance know: 16-bit brain floats, and images by URI, encoded, or as tensors."""

from __future__ import annotations

from importlib import import_module

from lancelet.arrow.bfloat16 import BFloat16, BFloat16Array, BFloat16Scalar, BFloat16Type, bfloat16_array, cast
from lancelet.arrow.images import (
    EncodedImageArray,
    EncodedImageScalar,
    EncodedImageType,
    FixedShapeImageTensorArray,
    FixedShapeImageTensorScalar,
    FixedShapeImageTensorType,
    ImageArray,
    ImageScalar,
    ImageURIArray,
    ImageURIScalar,
    ImageURIType,
)

__all__ = [
    "BFloat16",
    "BFloat16Array",
    "BFloat16Scalar",
    "BFloat16Type",
    "EncodedImageArray",
    "EncodedImageScalar",
    "EncodedImageType",
    "FixedShapeImageTensorArray",
    "FixedShapeImageTensorScalar",
    "FixedShapeImageTensorType",
    "ImageArray",
    "ImageScalar",
    "ImageURIArray",
    "ImageURIScalar",
    "ImageURIType",
    "bfloat16_array",
    "cast",
]


def __getattr__(name: str) -> object:
    if name == "PandasBFloat16Array":
        # By name: pandas is an integration, and those lie above.
        return import_module("lancelet.integrations.pandas").PandasBFloat16Array
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
