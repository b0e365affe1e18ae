"""A corpus that every machine has: README texts and docstrings of the installed Python packages, and a few notes.

An input of the pipeline is a package, whose version tells whether it changed, or a note, whose text does.
"""

from __future__ import annotations

import ast
import hashlib
import sysconfig
import warnings
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

#: Of each package so many bytes of source are read, and no file above this size: those are generated tables.
BUDGET, LARGEST = 250_000, 120_000
#: Source files of about this size hold the most prose for their bytes.
BEST = 30_000
SHORTEST = 60
NOTES = Path(__file__).resolve().parent.parent / "build" / "demo" / "notes"


def names() -> dict[str, str]:
    """Every input, with what tells whether it changed."""
    found = {f"package/{item.metadata['Name']}": item.version for item in _packages()}
    notes = sorted(NOTES.glob("*.md"))
    return found | {f"note/{note.stem}": hashlib.sha256(note.read_bytes()).hexdigest() for note in notes}


def rows(name: str) -> Iterator[dict[str, object]]:
    """The texts of an input."""
    kind, _, place = name.partition("/")
    if kind == "note":
        yield {"package": "notes", "kind": "note", "name": place, "text": (NOTES / f"{place}.md").read_text()}
        return
    package = metadata.distribution(place)
    readme = package.metadata.json.get("description")
    if isinstance(readme, str) and readme.strip():
        yield {"package": place, "kind": "readme", "name": "README", "text": _clean(readme)}
    for path in _sources(package):
        for where, text in _docstrings(path):
            if len(text) >= SHORTEST:
                yield {"package": place, "kind": "docstring", "name": where, "text": text}


def _packages() -> list[metadata.Distribution]:
    root = sysconfig.get_path("purelib")
    return [item for item in metadata.distributions(path=[root]) if item.metadata["Name"]]


def _sources(package: metadata.Distribution) -> Iterator[Path]:
    """Some of the package's source files, as its own record names them."""
    listed = [item for item in package.files or () if item.suffix == ".py" and "tests" not in item.parts]
    budget = BUDGET
    for item in sorted(listed, key=lambda item: (abs((item.size or 0) - BEST), str(item))):
        size = item.size or 0
        if 0 < size <= min(LARGEST, budget):
            budget -= size
            yield Path(str(item.locate()))


def _docstrings(path: Path) -> Iterator[tuple[str, str]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        # Records name files that are gone, and templates of other packages need not be valid Python.
        return
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield f"{path.stem}.{getattr(node, 'name', '__doc__')}", _clean(text)


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
