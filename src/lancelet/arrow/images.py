"""Images as Arrow columns: URIs of them, their encoded bytes, or tensors of one shape."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from math import prod
from os import PathLike
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.config import default_options
from lancelet.errors import InvalidInput, Unsupported
from lancelet.file.location import open_parent
from lancelet.table.parallel import in_order

__all__ = [
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
]

_STRING, _BINARY = pa.string(), pa.binary()

Decoder = Callable[[pa.Array], npt.NDArray[np.generic]]
Encoder = Callable[[npt.NDArray[np.generic]], pa.Array]


class ImageScalar(pa.ExtensionScalar):  # type: ignore[misc]
    """One image of a column."""

    def as_py(self, **kwargs: object) -> object:
        """The URI, the bytes, or the list of values."""
        return None if self.value is None else self.value.as_py(**kwargs)


class ImageURIScalar(ImageScalar):
    """One URI."""


class EncodedImageScalar(ImageScalar):
    """One image's bytes."""


class FixedShapeImageTensorScalar(ImageScalar):
    """One image's values."""


class ImageURIType(pa.ExtensionType):  # type: ignore[misc]
    """The type of a column of URIs of images."""

    def __init__(self, storage_type: pa.DataType = _STRING) -> None:
        if not (pa.types.is_string(storage_type) or pa.types.is_large_string(storage_type)):
            raise InvalidInput(f"URIs are stored as strings, not as {storage_type}")
        super().__init__(storage_type, "lance.arrow.image_uri")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Self:
        return cls(storage_type)

    def __arrow_ext_class__(self) -> type[ImageURIArray]:
        return ImageURIArray

    def __arrow_ext_scalar_class__(self) -> type[ImageURIScalar]:
        return ImageURIScalar


class EncodedImageType(pa.ExtensionType):  # type: ignore[misc]
    """The type of a column of encoded images: PNG, JPEG and so on."""

    def __init__(self, storage_type: pa.DataType = _BINARY) -> None:
        if not (pa.types.is_binary(storage_type) or pa.types.is_large_binary(storage_type)):
            raise InvalidInput(f"images are stored as binary values, not as {storage_type}")
        super().__init__(storage_type, "lance.arrow.encoded_image")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Self:
        return cls(storage_type)

    def __arrow_ext_class__(self) -> type[EncodedImageArray]:
        return EncodedImageArray

    def __arrow_ext_scalar_class__(self) -> type[EncodedImageScalar]:
        return EncodedImageScalar


class FixedShapeImageTensorType(pa.ExtensionType):  # type: ignore[misc]
    """The type of a column of images as values: height, width and channels are those of all.

    >>> FixedShapeImageTensorType(pa.uint8(), [2, 2, 3]).storage_type.list_size
    12
    """

    def __init__(self, arrow_type: pa.DataType, shape: Sequence[int]) -> None:
        if not len(shape):
            raise InvalidInput("a tensor has at least one dimension")
        self.shape = shape
        self.arrow_type = arrow_type
        super().__init__(pa.list_(arrow_type, prod(shape)), "lance.arrow.fixed_shape_image_tensor")

    def __arrow_ext_serialize__(self) -> bytes:
        return json.dumps({"shape": list(self.shape)}).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Self:
        return cls(storage_type.value_type, json.loads(serialized.decode())["shape"])

    def __arrow_ext_class__(self) -> type[FixedShapeImageTensorArray]:
        return FixedShapeImageTensorArray

    def __arrow_ext_scalar_class__(self) -> type[FixedShapeImageTensorScalar]:
        return FixedShapeImageTensorScalar


class ImageArray(pa.ExtensionArray):  # type: ignore[misc]
    """A column of images in one of three forms."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)}>"

    @classmethod
    def from_array(cls, images: object) -> ImageArray:
        """From text (URIs), binary values (encoded images), pyarrow's tensors, or a list of URIs.

        >>> ImageArray.from_array(["a.png", "b.png"]).type
        ImageURIType(DataType(string))
        """
        if isinstance(images, ImageArray):
            return images
        if isinstance(images, pa.StringArray | pa.LargeStringArray):
            return _stored(ImageURIType(images.type), images)
        if isinstance(images, pa.BinaryArray | pa.LargeBinaryArray):
            return _stored(EncodedImageType(images.type), images)
        if isinstance(images, pa.FixedShapeTensorArray):
            return _stored(FixedShapeImageTensorType(images.type.value_type, images.type.shape), images.storage)
        if isinstance(images, Iterable):
            return _stored(ImageURIType(), pa.array(images, pa.string()))
        raise TypeError(f"images are URIs, binary values or tensors, not {type(images)}")


def _stored(kind: pa.ExtensionType, storage: pa.Array) -> ImageArray:
    made: ImageArray = pa.ExtensionArray.from_storage(kind, storage)
    return made


class ImageURIArray(ImageArray):
    """A column of URIs of images."""

    @classmethod
    def from_uris(cls, uris: pa.StringArray | pa.LargeStringArray | Iterable[str | PathLike[str]]) -> ImageURIArray:
        """From URIs or paths."""
        if not isinstance(uris, pa.StringArray | pa.LargeStringArray):
            if not isinstance(uris, Iterable):
                raise TypeError(f"URIs are text or paths, not {type(uris)}")
            uris = pa.array([str(uri) for uri in uris], pa.string())
        made = _stored(ImageURIType(uris.type), uris)
        assert isinstance(made, ImageURIArray)
        return made

    def read_uris(self, storage_type: pa.DataType = _BINARY) -> EncodedImageArray:
        """The images, read from wherever they are: files, object stores, the web."""
        images = list(in_order(_read, self.storage.to_pylist(), concurrency=default_options().io_concurrency))
        made = _stored(EncodedImageType(storage_type), pa.array(images, storage_type))
        assert isinstance(made, EncodedImageArray)
        return made


def _read(uri: str | None) -> bytes | None:
    if uri is None:
        return None
    store, name = open_parent(uri)
    return bytes(store.read_all(name))


class EncodedImageArray(ImageArray):
    """A column of encoded images."""

    def to_tensor(self, decoder: Decoder | None = None) -> FixedShapeImageTensorArray:
        """The images decoded, by Pillow unless a function is given; all must have one shape."""
        decoded = (decoder or _decoded)(self.storage)
        if isinstance(decoded, pa.FixedShapeTensorArray):
            made = ImageArray.from_array(decoded)
        else:
            made = ImageArray.from_array(pa.FixedShapeTensorArray.from_numpy_ndarray(decoded))
        assert isinstance(made, FixedShapeImageTensorArray)
        return made


class FixedShapeImageTensorArray(ImageArray):
    """A column of images as values."""

    def to_numpy(self) -> npt.NDArray[np.generic]:
        """The images as one array: their number, then their shape."""
        kind = pa.fixed_shape_tensor(self.storage.type.value_type, list(self.type.shape))
        found: npt.NDArray[np.generic] = pa.ExtensionArray.from_storage(kind, self.storage).to_numpy_ndarray()
        return found

    def to_encoded(self, encoder: Encoder | None = None, storage_type: pa.DataType = _BINARY) -> EncodedImageArray:
        """The images encoded, as PNG by Pillow unless a function is given."""
        values = self.to_numpy()
        storage = _encoded(values, storage_type) if encoder is None else encoder(values)
        made = _stored(EncodedImageType(storage_type), storage)
        assert isinstance(made, EncodedImageArray)
        return made


def _decoded(images: pa.Array) -> npt.NDArray[np.generic]:
    pillow = _pillow("decoder")
    return np.stack([np.asarray(pillow.open(io.BytesIO(image))) for image in images.to_pylist()])  # type: ignore[attr-defined]


def _encoded(images: npt.NDArray[np.generic], storage_type: pa.DataType) -> pa.Array:
    pillow = _pillow("encoder")
    found = []
    for image in images:
        with io.BytesIO() as buffer:
            pillow.fromarray(image).save(buffer, format="PNG")  # type: ignore[attr-defined]
            found.append(buffer.getvalue())
    return pa.array(found, storage_type)


def _pillow(what: str) -> object:
    try:
        return import_module("PIL.Image")
    except ImportError:
        raise Unsupported(
            "images are decoded by Pillow, which is missing", hint=f"install it, or give a {what}"
        ) from None


for _kind in (ImageURIType(), EncodedImageType(), FixedShapeImageTensorType(pa.uint8(), (0,))):
    # Another library in the process may have registered a type of the name before: columns then have that one.
    with suppress(pa.ArrowKeyError):
        pa.register_extension_type(_kind)
