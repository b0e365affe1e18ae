"""Remote stores against real servers: the contract on S3 and Azure, and what pylance and lancelet share there."""

from __future__ import annotations

import pytest

from lancelet.storage.remote import RemoteStore
from lancelet.testing.servers import ServedStore
from lancelet.testing.storage import Check, checks


@pytest.fixture(params=["s3_server", "azure_server"], ids=["s3", "azure"])
def server(request: pytest.FixtureRequest) -> ServedStore:
    """Each kind of server in turn."""
    found: ServedStore = request.getfixturevalue(request.param)
    return found


def store_on(server: ServedStore) -> RemoteStore:
    """A store at a new place of a server."""
    return RemoteStore(server.place(), storage_options=server.storage_options)


@pytest.mark.parametrize("check", checks(), ids=str)
def test_remote_stores_keep_the_contract(check: Check, server: ServedStore) -> None:
    check(lambda: store_on(server))
