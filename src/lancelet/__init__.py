"""Lance tables from pip alone."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from lancelet.errors import LanceletError

if TYPE_CHECKING:
    from lancelet.bitmap import Bitmap
    from lancelet.blob import Blob, BlobArray, BlobColumn, blob_array, blob_field
    from lancelet.dataset.base_path import DatasetBasePath
    from lancelet.dataset.cleanup import CleanupCandidateFile, CleanupExplanation, CleanupReferencedBranch, CleanupStats
    from lancelet.dataset.fragments.lance_fragment import LanceFragment
    from lancelet.dataset.fragments.metadata import FragmentMetadata
    from lancelet.dataset.functions import dataset, write_dataset
    from lancelet.dataset.lance_dataset import LanceDataset
    from lancelet.dataset.merge_insert import MergeInsertBuilder
    from lancelet.dataset.operation import Index, IndexFile, LanceOperation, Transaction
    from lancelet.dataset.progress import IndexProgress
    from lancelet.dataset.scan_options import ScanStatistics
    from lancelet.dataset.scanner import LanceScanner
    from lancelet.dataset.statistics import DataStatistics, FieldStatistics
    from lancelet.dataset.tally import bytes_read_counter, iops_counter
    from lancelet.dataset.udf import batch_udf
    from lancelet.file import (
        BlobDescriptor,
        BlobDescriptorArrayBuilder,
        BlobFile,
        DedicatedBlobWriter,
        PackedBlobWriter,
    )
    from lancelet.log import set_logger
    from lancelet.schema.json import json_to_schema, schema_to_json
    from lancelet.session import Session
    from lancelet.util import sanitize_ts

__all__ = [
    "Bitmap",
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobDescriptor",
    "BlobDescriptorArrayBuilder",
    "BlobFile",
    "CleanupCandidateFile",
    "CleanupExplanation",
    "CleanupReferencedBranch",
    "CleanupStats",
    "DataStatistics",
    "DatasetBasePath",
    "DedicatedBlobWriter",
    "FieldStatistics",
    "FragmentMetadata",
    "Index",
    "IndexFile",
    "IndexProgress",
    "LanceDataset",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "LanceletError",
    "MergeInsertBuilder",
    "PackedBlobWriter",
    "ScanStatistics",
    "Session",
    "Transaction",
    "__version__",
    "batch_udf",
    "blob_array",
    "blob_field",
    "bytes_read_counter",
    "dataset",
    "iops_counter",
    "json_to_schema",
    "sanitize_ts",
    "schema_to_json",
    "set_logger",
    "write_dataset",
]

__version__ = "0.1.0"

#: In which module each name is. Nothing is imported before it is asked for: the package itself costs next to nothing.
_HOMES = {
    "lancelet.bitmap": ("Bitmap",),
    "lancelet.blob": (
        "Blob",
        "BlobArray",
        "BlobColumn",
        "blob_array",
        "blob_field",
    ),
    "lancelet.dataset.base_path": ("DatasetBasePath",),
    "lancelet.dataset.cleanup": (
        "CleanupCandidateFile",
        "CleanupExplanation",
        "CleanupReferencedBranch",
        "CleanupStats",
    ),
    "lancelet.dataset.fragments.lance_fragment": ("LanceFragment",),
    "lancelet.dataset.fragments.metadata": ("FragmentMetadata",),
    "lancelet.dataset.functions": (
        "dataset",
        "write_dataset",
    ),
    "lancelet.dataset.lance_dataset": ("LanceDataset",),
    "lancelet.dataset.merge_insert": ("MergeInsertBuilder",),
    "lancelet.dataset.operation": (
        "Index",
        "IndexFile",
        "LanceOperation",
        "Transaction",
    ),
    "lancelet.dataset.progress": ("IndexProgress",),
    "lancelet.dataset.scan_options": ("ScanStatistics",),
    "lancelet.dataset.scanner": ("LanceScanner",),
    "lancelet.dataset.statistics": (
        "DataStatistics",
        "FieldStatistics",
    ),
    "lancelet.dataset.tally": (
        "bytes_read_counter",
        "iops_counter",
    ),
    "lancelet.dataset.udf": ("batch_udf",),
    "lancelet.file": (
        "BlobDescriptor",
        "BlobDescriptorArrayBuilder",
        "BlobFile",
        "DedicatedBlobWriter",
        "PackedBlobWriter",
    ),
    "lancelet.log": ("set_logger",),
    "lancelet.schema.json": (
        "json_to_schema",
        "schema_to_json",
    ),
    "lancelet.session": ("Session",),
    "lancelet.util": ("sanitize_ts",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


class _Package(ModuleType):
    """The package as a module in which a function and a submodule can have one name: ``dataset``.

    ``lancelet.dataset`` is the function; ``from lancelet.dataset import ...`` finds the submodule all the same.
    """

    def __setattr__(self, name: str, value: object) -> None:
        # The import system puts each submodule into its package when it is first imported.
        if name in _HOME_OF and isinstance(value, ModuleType):
            return
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[object, ...]:
        # Functions that name the package travel to Spark's and other workers, as those that name plain modules do.
        return import_module, (self.__name__,)


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is not None:
        value = getattr(import_module(home), name)
        globals()[name] = value
        return value
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        # Submodules, as those who wrote lance.fragment.write_fragments are used to.
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


sys.modules[__name__].__class__ = _Package
