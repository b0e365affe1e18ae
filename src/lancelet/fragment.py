"""Fragments as users handle them."""

from lancelet.bitmap import Bitmap
from lancelet.dataset.fragments.deletion_file import DeletionFile
from lancelet.dataset.fragments.lance_fragment import FragmentSession, LanceFragment
from lancelet.dataset.fragments.lineage import RowDatasetVersionMeta, RowIdMeta
from lancelet.dataset.fragments.metadata import DataFile, FragmentMetadata
from lancelet.dataset.fragments.row_ids import RowIdSequence
from lancelet.dataset.fragments.writing import write_fragments
from lancelet.dataset.progress import FragmentWriteProgress, NoopFragmentWriteProgress
from lancelet.dataset.udf import BatchUDF
from lancelet.dataset.writing import BYTES_PER_FILE as DEFAULT_MAX_BYTES_PER_FILE
from lancelet.session import Session

__all__ = [
    "DEFAULT_MAX_BYTES_PER_FILE",
    "BatchUDF",
    "Bitmap",
    "DataFile",
    "DeletionFile",
    "FragmentMetadata",
    "FragmentSession",
    "FragmentWriteProgress",
    "LanceFragment",
    "NoopFragmentWriteProgress",
    "RowDatasetVersionMeta",
    "RowIdMeta",
    "RowIdSequence",
    "Session",
    "write_fragments",
]
