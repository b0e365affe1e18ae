"""The order of the rooms: each imports only from rooms below its own, and only where it belongs from outside."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"

#: Modules with the names that users import, and the package itself, whose name is "".
FACADE = (
    *("dataset", "fragment", "schema", "bitmap", "types", "udf", "progress", "optimize", "blob", "commit", "session"),
    *("debug", "tracing", "log", "util", "arrow", "sampler", "vector", "indices", "io", "hf", "pydantic", ""),
)
#: From the ground up. Rooms in one row do not know each other, except on the ground and within the facade.
ROWS: tuple[tuple[str, ...], ...] = (
    ("errors", "config", "events"),
    ("kernels",),
    ("storage",),
    ("format",),
    ("rows",),
    ("encodings",),
    ("expr",),
    ("file",),
    ("table", "index"),
    ("query",),
    ("ops",),
    FACADE,
    ("spark", "integrations", "torch", "inspect", "testing"),
    ("pipeline",),
    ("cli",),
    ("pyspark_lance",),
)
LEVEL = {room: level for level, row in enumerate(ROWS) for room in row}
#: Rows whose members may import each other.
FAMILIES = (0, LEVEL["dataset"])
#: Packages from outside that only some rooms may import; those with no rooms are for tests alone.
RESERVED: dict[str, tuple[str, ...]] = {
    "lance": (),
    "pylance": (),
    "duckdb": ("integrations",),
    "google.protobuf": ("format",),
    "obstore": ("storage",),
    "pyspark": ("spark", "pyspark_lance", "testing", "pipeline", "cli"),
    "pandas": ("integrations", "spark"),
    "polars": ("integrations",),
    "datasets": ("integrations",),
    "torch": ("integrations", "torch"),
    "sqlglot": ("expr",),
    "pydantic": ("pydantic",),
    "pydantic_core": ("pydantic",),
}


def room_of(module: str) -> str | None:
    """The room a dotted module name belongs to; None for modules from outside."""
    first, _, rest = module.partition(".")
    if first == "lancelet":
        return rest.partition(".")[0]
    return first if first == "pyspark_lance" else None


def imports(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Every import of a file as (line, what was written, dotted name), also those inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, f"import {alias.name}", alias.name
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                yield node.lineno, f"from {module} import {alias.name}", f"{module}.{alias.name}"


def complaint(room: str, name: str, known: frozenset[str]) -> str | None:
    """Why a file of ``room`` may not import the dotted ``name``; None if it may."""
    if name.startswith("."):
        return "imports are absolute"
    if any(piece.endswith(("_pb2", "_pb2_grpc")) for piece in name.split(".")) and room != "format":
        return "protobuf messages stay inside format"
    for package, rooms in RESERVED.items():
        if f"{name}.".startswith(f"{package}.") and room not in rooms:
            return f"{package} is only for {', '.join(rooms) or 'tests'}"
    target = room_of(name)
    if target is None or target == room:
        return None
    if target not in LEVEL:
        # ``from lancelet import something`` that is no module is a name of the package itself.
        if target in known:
            return f"{target} is not a room of the house"
        target = ""
    if LEVEL[target] > LEVEL[room]:
        return f"{target or 'the package itself'} is above {room or 'the package itself'}"
    if LEVEL[target] == LEVEL[room] and LEVEL[room] not in FAMILIES:
        return f"{room} and {target} do not know each other"
    return None


def offences(source: Path) -> list[str]:
    """Every import in the tree below ``source`` that breaks the order, as ``path:line: import: why``."""
    package = source / "lancelet"
    known = frozenset(path.stem for path in package.iterdir()) if package.is_dir() else frozenset()
    found = []
    for path in sorted(source.rglob("*.py")):
        if path.stem.endswith(("_pb2", "_pb2_grpc")):
            continue
        place = path.relative_to(source)
        room = room_of(".".join(place.with_suffix("").parts).removesuffix(".__init__"))
        if room is None or room not in LEVEL:
            found.append(f"{place}: {room} is not a room of the house")
            continue
        for line, written, name in imports(ast.parse(path.read_text(), str(path))):
            if why := complaint(room, name, known):
                found.append(f"{place}:{line}: {written}: {why}")
    return found


def test_every_import_under_src_keeps_the_order_of_the_rooms() -> None:
    assert offences(SOURCE) == []


def tree(root: Path, files: dict[str, str]) -> Path:
    """A made-up source tree."""
    for name, text in {"lancelet/__init__.py": "", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("place", "text", "why"),
    [
        ("lancelet/kernels/a.py", "import lancelet.storage", "storage is above kernels"),
        ("lancelet/errors.py", "from lancelet.kernels import active", "kernels is above errors"),
        ("lancelet/storage/a.py", "from lancelet import table", "table is above storage"),
        ("lancelet/rows/a.py", "def f():\n    import lancelet.query.plan", "query is above rows"),
        ("lancelet/format/a.py", "from lancelet import LanceletError", "the package itself is above format"),
        ("lancelet/table/a.py", "import lancelet.index.scalar", "table and index do not know each other"),
        ("lancelet/index/a.py", "from lancelet.table import snapshot", "index and table do not know each other"),
        ("lancelet/spark/a.py", "import lancelet.inspect", "spark and inspect do not know each other"),
        ("lancelet/testing/a.py", "from lancelet import spark", "testing and spark do not know each other"),
        ("lancelet/dataset.py", "import lancelet.integrations", "integrations is above dataset"),
        ("lancelet/query/a.py", "import lance", "lance is only for tests"),
        ("lancelet/integrations/a.py", "from lance.file import LanceFileReader", "lance is only for tests"),
        ("lancelet/query/a.py", "import duckdb", "duckdb is only for integrations"),
        ("lancelet/ops/a.py", "from pyspark.sql import functions", "pyspark is only for spark"),
        ("lancelet/table/a.py", "from lancelet.format import table_pb2", "protobuf messages stay inside format"),
        ("lancelet/file/a.py", "from google.protobuf import message", "google.protobuf is only for format"),
        ("lancelet/file/a.py", "from .plan import x", "imports are absolute"),
        ("lancelet/attic/a.py", "", "attic is not a room of the house"),
    ],
)
def test_an_offending_import_is_named_with_its_reason(tmp_path: Path, place: str, text: str, why: str) -> None:
    rooms = {f"lancelet/{room}/__init__.py": "" for row in ROWS for room in row if room.isidentifier()}
    found = offences(tree(tmp_path, {**rooms, place: text}))
    assert len(found) == 1
    assert found[0].startswith(place)
    assert why in found[0]


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("lancelet/events.py", "from lancelet.errors import LanceletError"),
        ("lancelet/format/a.py", "from google.protobuf import message\nfrom lancelet.format import table_pb2"),
        ("lancelet/format/table_pb2.py", "from . import anything"),
        ("lancelet/query/a.py", "import lancelet.table, lancelet.index.scalar\nimport lanceotron, numpy"),
        ("lancelet/integrations/a.py", "import duckdb"),
        ("lancelet/spark/a.py", "import pyspark, lancelet\nfrom lancelet import dataset"),
        ("lancelet/__init__.py", "from lancelet.dataset import dataset\nfrom lancelet.errors import Corrupt"),
        ("pyspark_lance/__init__.py", "from lancelet.spark import source"),
    ],
)
def test_an_import_downwards_passes(tmp_path: Path, place: str, text: str) -> None:
    assert offences(tree(tmp_path, {place: text})) == []
