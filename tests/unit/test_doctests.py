"""The examples in docstrings and in the guides are true."""

from __future__ import annotations

import doctest
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lancelet import log
from lancelet.storage import memory

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
#: Compiled or written by the protobuf compiler: no examples there.
SKIPPED = ("_pb2", "/kernels/source/")
#: Pages whose examples are run with a session, by tests/spark/test_guide.py and test_pipeline.py.
ON_SPARK = [ROOT / "docs" / "spark-streaming.md", ROOT / "docs" / "pipeline.md"]
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if page not in ON_SPARK]


def modules_with_examples() -> list[str]:
    """Dotted names of the modules under src whose text has a doctest prompt."""
    return [
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(SOURCE.rglob("*.py"))
        if not any(word in path.as_posix() for word in SKIPPED) and ">>> " in path.read_text()
    ]


@pytest.fixture(autouse=True)
def _nothing_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What examples keep in memory, and loggers that they set, end with them: other tests of this process have own."""
    monkeypatch.setattr(memory, "_objects", {})
    yield
    log._listening.close()


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_are_true(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES if page.exists()]
)
def test_the_python_blocks_of_a_page_run_in_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)):
        exec(compile(block, f"{page.name}, block {number + 1}", "exec"), names)
