"""One fixture for all parity tests: each kernel variant that this machine can run, the NumPy twins among them."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

import pytest

from lancelet import kernels


@pytest.fixture(params=kernels.variants(), scope="session")
def modules(request: pytest.FixtureRequest) -> Mapping[str, ModuleType]:
    return kernels.load(request.param)
