"""docs/api.md, which lists every public name of pylance beside ours, is up to date, and every gap has a reason."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(
    version("pylance") != "14.0.2", reason="the table is about pylance 14.0.2, another one is installed"
)
def test_the_page_is_what_the_script_makes_of_both_packages_and_every_gap_has_its_reason() -> None:
    command = [sys.executable, "tools/api_table.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
