"""What all tests share: Hypothesis without deadlines (two busy cores make any example slow once) and real servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from lancelet.errors import NotFound
from lancelet.testing import servers

CACHE = Path(__file__).resolve().parents[1] / ".cache/node"

hypothesis.settings.register_profile("shared-machine", deadline=None, print_blob=True)
hypothesis.settings.load_profile("shared-machine")


@pytest.fixture(scope="session")
def s3_server() -> Iterator[servers.ServedStore]:
    """A moto S3 server; ask it for a ``place()`` of your own."""
    with servers.s3_server() as server:
        yield server


@pytest.fixture(scope="session")
def azure_server() -> Iterator[servers.ServedStore]:
    """An Azurite server; ask it for a ``place()`` of your own. Skips where there is no Node.js to run it."""
    try:
        servers.install_azurite(CACHE)
    except NotFound as error:
        pytest.skip(str(error))
    with servers.azure_server(CACHE) as server:
        yield server
