"""Types of the chosen modules: those of the NumPy twins, which carry the contract."""

from collections.abc import Mapping
from types import ModuleType

from lancelet.kernels.reference import bitpack as bitpack
from lancelet.kernels.reference import runs as runs
from lancelet.kernels.reference import split as split

active: str
why: str

def variants() -> list[str]: ...
def load(variant: str) -> Mapping[str, ModuleType]: ...
