"""Namespaces are refused by all that pylance lets one be given to, instead of being passed over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lancelet
from lancelet.errors import Unsupported
from lancelet.file import LanceFileReader, LanceFileSession, LanceFileWriter


@pytest.mark.parametrize("given", [{"namespace_client": object()}, {"table_id": ["a", "b"]}])
@pytest.mark.parametrize("opened", [LanceFileReader, LanceFileWriter, LanceFileSession, lancelet.dataset])
def test_a_namespace_is_refused(tmp_path: Path, opened: Callable[..., object], given: dict[str, object]) -> None:
    with pytest.raises(Unsupported, match="namespaces"):
        opened(str(tmp_path / "a.lance"), **given)
    assert list(tmp_path.iterdir()) == []
