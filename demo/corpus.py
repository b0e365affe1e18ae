"""A corpus that every machine has: README texts and docstrings of the installed Python packages."""

from __future__ import annotations

import ast
import sysconfig
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

#: Source files above this size are generated tables rather than prose.
LARGEST_FILE = 400_000
Document = tuple[str, str, str]  # package, name, text


@dataclass(frozen=True, slots=True)
class Task:
    """Files that one Spark task reads."""

    number: int
    readmes: tuple[str, ...]
    sources: tuple[str, ...]
    bytes: int


def plan(tasks: int, budget: int) -> list[Task]:
    """Deal out packages' READMEs and source files, up to ``budget`` bytes of them, into tasks of equal bytes."""
    root = Path(sysconfig.get_path("purelib"))
    sizes = {path: path.stat().st_size for path in sorted(root.rglob("*.py"))}
    chosen: list[tuple[int, Path]] = []
    # The middle sizes first: they hold the most prose for their bytes, and every package has some.
    for path, size in sorted(sizes.items(), key=lambda item: abs(item[1] - 30_000)):
        if size <= LARGEST_FILE and budget > 0:
            chosen.append((size, path))
            budget -= size
    readmes = sorted({distribution.metadata["Name"] for distribution in metadata.distributions(path=[str(root)])})
    shares: list[list[Path]] = [[] for _ in range(tasks)]
    loads = [0] * tasks
    for size, path in sorted(chosen, reverse=True):
        lightest = loads.index(min(loads))
        shares[lightest].append(path)
        loads[lightest] += size
    return [
        Task(number, tuple(readmes[number::tasks]), tuple(map(str, share)), load)
        for number, (share, load) in enumerate(zip(shares, loads, strict=True))
    ]


def documents(task: Task) -> Iterator[Document]:
    """The texts of one task."""
    root = sysconfig.get_path("purelib")
    for package in task.readmes:
        text = metadata.metadata(package).json.get("description")
        if isinstance(text, str) and text.strip():
            yield package, "README", text
    for source in task.sources:
        package = Path(source).relative_to(root).parts[0].removesuffix(".py")
        for name, text in _docstrings(Path(source)):
            yield package, f"{Path(source).relative_to(root)}:{name}", text


def _docstrings(path: Path) -> Iterator[tuple[str, str]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        # Test data and templates of other packages need not be valid Python.
        return
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "name", "module"), text.encode("utf-8", "replace").decode()
