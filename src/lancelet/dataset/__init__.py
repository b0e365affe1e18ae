"""Datasets: tables as users handle them. Every method is a few lines that call the rooms below."""

from lancelet.bitmap import Bitmap
from lancelet.blob import DEFAULT_BLOB_BUFFER_SIZE, BlobFile
from lancelet.commit import CommitLock
from lancelet.dataset.base_path import DatasetBasePath
from lancelet.dataset.changes import DeleteResult, UpdateResult
from lancelet.dataset.cleanup import CleanupExplanation, CleanupStats
from lancelet.dataset.columns import AlterColumn
from lancelet.dataset.compacting import Compaction, CompactionMetrics
from lancelet.dataset.delta import DatasetDelta
from lancelet.dataset.fragments.lance_fragment import LanceFragment
from lancelet.dataset.fragments.metadata import DataFile, FragmentMetadata
from lancelet.dataset.functions import write_dataset
from lancelet.dataset.history import Version, VersionRef
from lancelet.dataset.index_descriptions import IndexDescription, IndexInformation, IndexSegment
from lancelet.dataset.index_names import SupportedDistributedIndices
from lancelet.dataset.index_request import IndexConfig
from lancelet.dataset.lance_dataset import LanceDataset
from lancelet.dataset.merge_insert import ExecuteResult, MergeInsertBuilder
from lancelet.dataset.operation import Index, IndexFile, LanceOperation, Transaction
from lancelet.dataset.optimizing import DatasetOptimizer
from lancelet.dataset.refs import Branch, Branches, Tag, Tags
from lancelet.dataset.scan_options import ColumnOrdering, ScanStatistics, serialize_row_addrs
from lancelet.dataset.scanner import LanceScanner
from lancelet.dataset.scanner_builder import ScannerBuilder
from lancelet.dataset.sql import SqlQuery, SqlQueryBuilder
from lancelet.dataset.statistics import DatasetStats, DataStatistics, FieldStatistics, LanceStats
from lancelet.dataset.tally import IOStats
from lancelet.dataset.transactions import BulkCommitResult
from lancelet.dataset.udf import BatchUDF, batch_udf, normalize_transform
from lancelet.dataset.udf_checkpoint import BatchUDFCheckpoint
from lancelet.dataset.writing import AutoCleanupConfig
from lancelet.format.transaction import COMMIT_MESSAGE as LANCE_COMMIT_MESSAGE_KEY
from lancelet.schema import LanceSchema
from lancelet.session import Session

__all__ = [
    "DEFAULT_BLOB_BUFFER_SIZE",
    "LANCE_COMMIT_MESSAGE_KEY",
    "AlterColumn",
    "AutoCleanupConfig",
    "BatchUDF",
    "BatchUDFCheckpoint",
    "Bitmap",
    "BlobFile",
    "Branch",
    "Branches",
    "BulkCommitResult",
    "CleanupExplanation",
    "CleanupStats",
    "ColumnOrdering",
    "CommitLock",
    "Compaction",
    "CompactionMetrics",
    "DataFile",
    "DataStatistics",
    "DatasetBasePath",
    "DatasetDelta",
    "DatasetOptimizer",
    "DatasetStats",
    "DeleteResult",
    "ExecuteResult",
    "FieldStatistics",
    "FragmentMetadata",
    "IOStats",
    "Index",
    "IndexConfig",
    "IndexDescription",
    "IndexFile",
    "IndexInformation",
    "IndexSegment",
    "LanceDataset",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "LanceSchema",
    "LanceStats",
    "MergeInsertBuilder",
    "ScanStatistics",
    "ScannerBuilder",
    "Session",
    "SqlQuery",
    "SqlQueryBuilder",
    "SupportedDistributedIndices",
    "Tag",
    "Tags",
    "Transaction",
    "UpdateResult",
    "Version",
    "VersionRef",
    "batch_udf",
    "normalize_transform",
    "serialize_row_addrs",
    "write_dataset",
]
