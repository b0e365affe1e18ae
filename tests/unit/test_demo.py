"""What ``make demo`` runs is declared well, and finds its corpus on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lancelet.pipeline import PythonSource, load
from lancelet.pipeline.references import resolved

FOLDER = Path(__file__).resolve().parents[2] / "demo"


def test_the_demo_finds_texts_of_the_packages_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    pipeline = load(FOLDER / "pipeline.yml")
    assert isinstance(pipeline.source, PythonSource)
    names = resolved(pipeline.source.inputs, pipeline.folder)()
    assert names["package/pytest"] == pytest.__version__
    rows = list(resolved(pipeline.source.rows, pipeline.folder)("package/pytest"))
    assert {row["kind"] for row in rows} == {"readme", "docstring"}
    assert all(set(row) == {"package", "kind", "name", "text"} for row in rows)
