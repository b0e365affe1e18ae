"""Limits that keep the house readable: no file over 400 lines, no function over 70, a first line that says the job."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LONGEST_FILE = 400
LONGEST_FUNCTION = 70
FOLDERS = ("src", "bench", "demo", "tools", "tests")


def python_files() -> list[Path]:
    """Our own files: those git knows or would add, without what the protobuf compiler wrote."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *FOLDERS]
    try:
        names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        # Not a git clone: a source archive holds nothing but our own files.
        names = [str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    return [
        ROOT / name for name in sorted(names) if name.endswith(".py") and "_pb2" not in name and (ROOT / name).exists()
    ]


def complaints(path: Path) -> list[str]:
    """What is too long or unsaid in one file."""
    text = path.read_text()
    lines = text.count("\n")
    module = ast.parse(text, str(path))
    found = [f"{path}: {lines} lines, at most {LONGEST_FILE}"] if lines > LONGEST_FILE else []
    if text.strip() and not ast.get_docstring(module):
        found.append(f"{path}: the first line must say what the file is for")
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > LONGEST_FUNCTION:
                found.append(f"{path}:{node.lineno}: {node.name} has {length} lines, at most {LONGEST_FUNCTION}")
    return found


def test_every_file_and_function_keeps_within_its_limit() -> None:
    assert [complaint for path in python_files() for complaint in complaints(path)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"""A job."""\n' + "x = 1\n" * 399, 0),
        ('"""A job."""\n' + "x = 1\n" * 400, 1),
        ("x = 1\n", 1),
        ("", 0),
        ('"""A job."""\ndef f():\n' + "    x = 1\n" * 69, 0),
        ('"""A job."""\nclass C:\n  async def f():\n' + "    x = 1\n" * 70, 1),
    ],
)
def test_the_limits_count_as_they_say(tmp_path: Path, text: str, expected: int) -> None:
    path = tmp_path / "a.py"
    path.write_text(text)
    assert len(complaints(path)) == expected
