"""Data files: reading and writing one, with the names of pylance's ``lance.file``."""

from lancelet.file.blob_descriptors import BlobDescriptor, BlobDescriptorArrayBuilder
from lancelet.file.blob_file import BlobFile
from lancelet.file.blob_reader import BlobReader
from lancelet.file.blob_sidecars import DedicatedBlobWriter, PackedBlobWriter
from lancelet.file.metadata import (
    LanceBufferDescriptor,
    LanceColumnMetadata,
    LanceColumnStatistics,
    LanceFileMetadata,
    LanceFileStatistics,
    LancePageMetadata,
)
from lancelet.file.page_map import MappedPage, PageMap, page_map
from lancelet.file.plan import FilePlan, PagePlan
from lancelet.file.reader import LanceFileReader, ReaderResults
from lancelet.file.session import LanceFileSession, ListResult
from lancelet.file.writer import LanceFileWriter
from lancelet.format.versions import DEFAULT_VERSION

__all__ = [
    "BlobDescriptor",
    "BlobDescriptorArrayBuilder",
    "BlobFile",
    "BlobReader",
    "DedicatedBlobWriter",
    "FilePlan",
    "LanceBufferDescriptor",
    "LanceColumnMetadata",
    "LanceColumnStatistics",
    "LanceFileMetadata",
    "LanceFileReader",
    "LanceFileSession",
    "LanceFileStatistics",
    "LanceFileWriter",
    "LancePageMetadata",
    "ListResult",
    "MappedPage",
    "PackedBlobWriter",
    "PageMap",
    "PagePlan",
    "ReaderResults",
    "page_map",
    "stable_version",
]


def stable_version() -> str:
    """The data file version that is written unless another is asked for.

    >>> stable_version()
    '2.2'
    """
    return DEFAULT_VERSION.label
