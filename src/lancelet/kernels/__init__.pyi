"""Types of the chosen modules: those of the NumPy twins, which carry the contract."""

from collections.abc import Mapping
from types import ModuleType

from lancelet.kernels.reference import bitpack as bitpack
from lancelet.kernels.reference import bloom as bloom
from lancelet.kernels.reference import chunk_rows as chunk_rows
from lancelet.kernels.reference import chunking as chunking
from lancelet.kernels.reference import distances as distances
from lancelet.kernels.reference import fsst as fsst
from lancelet.kernels.reference import fsst_encode as fsst_encode
from lancelet.kernels.reference import gather as gather
from lancelet.kernels.reference import hashing as hashing
from lancelet.kernels.reference import joining as joining
from lancelet.kernels.reference import jsonb as jsonb
from lancelet.kernels.reference import jsonb_encode as jsonb_encode
from lancelet.kernels.reference import jsonb_find as jsonb_find
from lancelet.kernels.reference import level_index as level_index
from lancelet.kernels.reference import level_runs as level_runs
from lancelet.kernels.reference import levels as levels
from lancelet.kernels.reference import lz4 as lz4
from lancelet.kernels.reference import miniblock as miniblock
from lancelet.kernels.reference import packed_levels as packed_levels
from lancelet.kernels.reference import packed_rows as packed_rows
from lancelet.kernels.reference import prefixes as prefixes
from lancelet.kernels.reference import ravel as ravel
from lancelet.kernels.reference import row_sets as row_sets
from lancelet.kernels.reference import runs as runs
from lancelet.kernels.reference import split as split
from lancelet.kernels.reference import trigrams as trigrams
from lancelet.kernels.reference import utf8 as utf8
from lancelet.kernels.reference import variable as variable
from lancelet.kernels.reference import zipped as zipped
from lancelet.kernels.reference import zipping as zipping

#: The variant in use: "x86-64-v3", "x86-64", "native" or "reference".
active: str
#: How it came to be chosen.
why: str

def variants() -> list[str]: ...
def load(variant: str) -> Mapping[str, ModuleType]: ...
