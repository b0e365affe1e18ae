"""Whichever module is imported first: none needs another to have been imported before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import lancelet

ROOT = Path(lancelet.__file__).parent

#: Forks before each import, so that what all of them need is loaded once.
PROGRAM = """
import os, sys
import numpy, pyarrow, pyarrow.compute, pyarrow.dataset
failed = []
for name in sys.argv[1:]:
    child = os.fork()
    if not child:
        code = 1
        try:
            __import__(name)
            code = 0
        finally:
            os._exit(code)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        failed.append(name)
print(*failed)
"""


def test_each_public_module_and_room_can_be_imported_first() -> None:
    names = [f"lancelet.{path.stem}" for path in ROOT.glob("*.py") if not path.stem.startswith("_")]
    names += [f"lancelet.{path.parent.name}" for path in ROOT.glob("*/__init__.py")]
    assert "lancelet.indices" in names
    done = subprocess.run([sys.executable, "-c", PROGRAM, *sorted(names)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
