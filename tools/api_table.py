"""Writes docs/api.md: every public name of pylance beside ours. ``python tools/api_table.py [--check]``.

Both packages are imported and looked at; PyTorch is stood in for by empty classes, so that the table is the same
whether it is installed or not. A name that is missing, or lacks parameters, must have a reason in
``tools/api_reasons.py``.
"""

from __future__ import annotations

import enum
import importlib
import importlib.abc
import importlib.machinery
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import ClassVar, TypeAlias

from api_reasons import REASONS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/api.md"
EXPECTED = "14.0.2"
MODULES = (
    *("", "dataset", "fragment", "file", "blob", "schema", "types", "udf", "indices", "optimize", "vector"),
    *("sampler", "torch", "torch.data", "torch.dist", "torch.async_dataset", "torch.distance", "torch.kmeans"),
    *("torch.bench_utils", "hf", "pydantic", "query", "util", "tracing", "log", "debug", "progress", "otel"),
    *("namespace", "mem_wal", "io", "arrow", "bitmap", "commit"),
)
#: Modules that hand on names of others, those that do so most last.
HANDING_ON = {"fragment": 1, "dataset": 2, "": 3}
Counted: TypeAlias = dict[str, object]


class _Torch(ModuleType):
    """PyTorch as far as modules name it when they are imported: every name is an empty class or such a module."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        found = type(name, (), {}) if name[0].isupper() else _Torch(f"{self.__name__}.{name}")
        setattr(self, name, found)
        return found

    def __call__(self, decorated: object) -> object:
        """As a decorator: what is decorated."""
        return decorated


class _TorchFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != "torch":
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Torch(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


@dataclass(frozen=True)
class Row:
    """A name of pylance: what there is of ours, and a remark."""

    name: str
    #: ``same``, ``differs`` or ``missing``.
    state: str
    remark: str = ""


def main() -> int:
    """Write the page; with ``--check`` only say whether it is up to date and whether every gap has a reason."""
    sys.meta_path.insert(0, _TorchFinder())
    if version("pylance") != EXPECTED:
        print(f"the table is about pylance {EXPECTED}, installed is {version('pylance')}", file=sys.stderr)
        return 2
    for module in MODULES:
        imported(f"lance.{module}".rstrip("."))
        imported(f"lancelet.{module}".rstrip("."))
    sections = {module: rows_of(module) for module in MODULES}
    page = rendered(sections)
    unexplained = [row.name for rows in sections.values() for row in rows if re.search(r"(^|: )\?($|;)", row.remark)]
    if unexplained:
        print("no reason in tools/api_reasons.py for: " + ", ".join(unexplained), file=sys.stderr)
        return 1
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page)
    elif not PAGE.exists() or PAGE.read_text() != page:
        print("docs/api.md is not up to date: run `make api`", file=sys.stderr)
        return 1
    return 0


def rows_of(module: str) -> list[Row]:
    """The rows of a module."""
    theirs = public_names(imported(f"lance.{module}".rstrip(".")))
    ours = imported(f"lancelet.{module}".rstrip("."))
    return [row for name in sorted(theirs) for row in compared(module, name, theirs[name], getattr(ours, name, None))]


def imported(name: str) -> ModuleType:
    """A module; one without names where lancelet has none of the name."""
    try:
        # The package hides the modules whose names its functions have.
        importlib.import_module(name)
        return sys.modules[name]
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("lancelet"):
            raise
        return ModuleType(name)


def public_names(module: ModuleType) -> Counted:
    """What users may import from a module of pylance: not what it imports from others but pylance's own."""
    declared = set(getattr(module, "__all__", ()))
    found = {name: value for name, value in vars(module).items() if name in declared}
    for name, value in vars(module).items():
        if name.startswith(("_", "Py", "lance_")) or isinstance(value, ModuleType) or name in found:
            continue
        home = getattr(value, "__module__", None)
        if declared and home != module.__name__:
            continue
        if is_theirs(value, home, module.__name__) or (name.isupper() and isinstance(value, int | str)):
            found[name] = value
    return {
        name: value for name, value in found.items() if name != "TYPE_CHECKING" and not isinstance(value, ModuleType)
    }


def is_theirs(value: object, home: str | None, within: str = "") -> bool:
    """Whether pylance defines a class or function: in Python, or in its shared library, which names no module."""
    if inspect.isclass(value):
        compiled = (
            home == "builtins" and getattr(importlib.import_module("builtins"), value.__name__, None) is not value
        )
        return compiled or (home or "").partition(".")[0] in ("lance", "_lib")
    if inspect.isbuiltin(value):
        return home is None
    return inspect.isfunction(value) and home in (within, "lance")


def compared(module: str, name: str, theirs: object, ours: object) -> Iterator[Row]:
    """One row for a name, and for a class one more for each member that differs."""
    full = f"{module}.{name}".lstrip(".")
    home = home_of(module, name, theirs, ours)
    if home is not None:
        yield Row(full, "same", f"see `lance.{home}`")
        return
    if ours is None:
        yield Row(full, "missing", reason(full))
        return
    if not inspect.isclass(theirs):
        yield row_of(full, difference(theirs, ours))
        return
    if not inspect.isclass(ours):
        yield Row(full, "differs", "no class")
        return
    same = []
    rows = [row_of(full, difference(theirs, ours))]
    own = members(theirs)
    for member in sorted(own):
        if not hasattr(ours, member) and member not in annotations(ours):
            rows.append(Row(f"{full}.{member}", "missing", reason(f"{full}.{member}")))
        elif inspect.isclass(own[member]):
            rows.extend(compared(full, member, own[member], getattr(ours, member)))
        elif differs := difference(own[member], inspect.getattr_static(ours, member, None)):
            rows.append(row_of(f"{full}.{member}", differs))
        else:
            same.append(member)
    remark = "; ".join(filter(None, [rows[0].remark, f"the same: {', '.join(same)}" if same else ""]))
    yield Row(full, rows[0].state, remark)
    yield from rows[1:]


def home_of(module: str, name: str, theirs: object, ours: object) -> str | None:
    """The module that tells about a name which others hand on, if both packages mean the same by it there."""
    if ours is None:
        return None
    for other in sorted(MODULES, key=lambda item: HANDING_ON.get(item, 0)):
        if other == module:
            return None
        if is_at(theirs, f"lance.{other}".rstrip("."), name) and is_at(ours, f"lancelet.{other}".rstrip("."), name):
            return other
    return None


def is_at(value: object, module: str, name: str) -> bool:
    """Whether a module that is imported has a name, and means a certain thing by it."""
    return getattr(sys.modules.get(module), name, None) is value


def members(kind: type) -> Counted:
    """The public members that pylance gives a class, not those of classes of others that it builds on."""
    found: Counted = dict.fromkeys(annotations(kind))
    for base in reversed(kind.__mro__):
        if is_theirs(base, base.__module__) or base is kind:
            found |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    if issubclass(kind, enum.Enum):
        return {name: found[name] for name in kind.__members__}
    return {name: value for name, value in found.items() if not name.startswith("_")}


def annotations(kind: type) -> dict[str, object]:
    """The fields that a class declares."""
    return {name: kind for base in reversed(kind.__mro__) for name in vars(base).get("__annotations__", {})}


def row_of(name: str, differs: str) -> Row:
    """The row of a name that is there; parameters that are missing need a reason as missing names do."""
    if not differs:
        return Row(name, "same")
    why = f": {reason(name, differs)}" if differs.startswith("without ") else ""
    return Row(name, "differs", differs + why)


def reason(name: str, differs: str = "") -> str:
    """Why a name is missing; a question mark where nobody said."""
    lacking = [f"{name}.{word.strip('`,;')}" for word in differs.split() if word.startswith("`")]
    for candidate in (name, *lacking):
        for pattern, why in REASONS:
            if fnmatchcase(candidate, pattern) or fnmatchcase(candidate, f"*.{pattern}"):
                return why
    return "?"


def difference(theirs: object, ours: object) -> str:
    """In which way two things of one name differ for who calls them; empty if they do not."""
    asked, given = signature(theirs), signature(ours)
    if asked is None or given is None:
        return ""
    their, our = named(asked), named(given)
    takes_all = any(item.kind is inspect.Parameter.VAR_KEYWORD for item in given.parameters.values())
    lacking = [name for name in their if name not in our and not takes_all]
    further = [name for name in our if name not in their]
    other = [name for name in our if name in their and not same_default(their[name].default, our[name].default)]
    named_only = [
        name
        for name in our
        if name in their
        and our[name].kind is inspect.Parameter.KEYWORD_ONLY
        and their[name].kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    said = [
        lacking and f"without {listed(lacking)}",
        further and f"also {listed(further)}",
        named_only and f"by name only: {listed(named_only)}",
        other and "default " + ", ".join(f"`{name}={shown(our[name].default)}`" for name in other),
        order_differs(their, our) and "in another order",
    ]
    return "; ".join(text for text in said if text)


def signature(value: object) -> inspect.Signature | None:
    """What something is called with; None for what is not called, or does not tell."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if not callable(value) or (inspect.isclass(value) and issubclass(value, enum.Enum | dict)):
        return None
    if inspect.isclass(value) and value.__init__ is object.__init__ and value.__new__ is object.__new__:
        return None
    try:
        return inspect.signature(value)
    except (ValueError, TypeError):
        return None


def named(found: inspect.Signature) -> dict[str, inspect.Parameter]:
    """The parameters that have names of their own."""
    skipped = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {
        name: item
        for name, item in found.parameters.items()
        if item.kind not in skipped and name not in ("self", "cls") and not name.startswith("_")
    }


def order_differs(their: dict[str, inspect.Parameter], our: dict[str, inspect.Parameter]) -> bool:
    """Whether parameters that may be given by place have other places."""
    by_place = [name for name, item in their.items() if item.kind is not inspect.Parameter.KEYWORD_ONLY]
    common = [name for name in by_place if name in our and our[name].kind is not inspect.Parameter.KEYWORD_ONLY]
    return common != [name for name in our if name in common]


def same_default(theirs: object, ours: object) -> bool:
    """Whether two defaults are the same, as far as that can be told."""
    plain = (bool, int, float, str, type(None))
    if theirs is ... or not isinstance(theirs, plain) or not isinstance(ours, plain):
        return (theirs is inspect.Parameter.empty) == (ours is inspect.Parameter.empty)
    return theirs == ours


def shown(default: object) -> str:
    """A default as it is shown."""
    return "(required)" if default is inspect.Parameter.empty else repr(default)


def listed(names: list[str]) -> str:
    """Names as code, with commas."""
    return ", ".join(f"`{name}`" for name in names)


def rendered(sections: dict[str, list[Row]]) -> str:
    """The page."""
    states = [row.state for rows in sections.values() for row in rows]
    lines = [
        f"# The API beside that of pylance {EXPECTED}",
        "",
        "Written by `make api`; a test fails where it is not up to date. `import lancelet as lance` gives the names",
        "below. A class and those of its members that are the same are one row. Parameters that only lancelet has are",
        "listed as `also`; whatever is missing has its reason here. What differs behind equal names is told in",
        "[Differences from pylance](differences.md).",
        "",
        f"{states.count('same')} rows are the same, {states.count('differs')} differ, {states.count('missing')} miss.",
    ]
    for module, rows in sections.items():
        if not rows:
            continue
        lines += ["", f"## `{f'lance.{module}'.rstrip('.')}`", "", "| pylance | lancelet | Remark |", "|---|---|---|"]
        lines += [f"| `{short(row.name, module)}` | {row.state} | {row.remark} |" for row in rows]
    return "\n".join(lines) + "\n"


def short(name: str, module: str) -> str:
    """A name without that of its module."""
    return name.removeprefix(f"{module}.") if module else name


if __name__ == "__main__":
    sys.exit(main())
