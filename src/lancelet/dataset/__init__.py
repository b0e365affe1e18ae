"""Datasets: tables as users handle them. Every method is a few lines that call the rooms below."""

from lancelet.commit import CommitLock
from lancelet.dataset.base_path import DatasetBasePath
from lancelet.dataset.cleanup import CleanupExplanation, CleanupStats
from lancelet.dataset.functions import write_dataset
from lancelet.dataset.history import Version, VersionRef
from lancelet.dataset.lance_dataset import LanceDataset
from lancelet.dataset.operation import Index, IndexFile, LanceOperation, Transaction
from lancelet.dataset.refs import Branch, Branches, Tag, Tags
from lancelet.dataset.tally import IOStats
from lancelet.dataset.transactions import BulkCommitResult
from lancelet.dataset.writing import AutoCleanupConfig
from lancelet.session import Session

__all__ = [
    "AutoCleanupConfig",
    "Branch",
    "Branches",
    "BulkCommitResult",
    "CleanupExplanation",
    "CleanupStats",
    "CommitLock",
    "DatasetBasePath",
    "IOStats",
    "Index",
    "IndexFile",
    "LanceDataset",
    "LanceOperation",
    "Session",
    "Tag",
    "Tags",
    "Transaction",
    "Version",
    "VersionRef",
    "write_dataset",
]
