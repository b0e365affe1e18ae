"""The generated protobuf modules are those that the .proto files give, and run on any protobuf since 5.29."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


def tool() -> ModuleType:
    """The module ``tools/protos.py``, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("protos_tool", ROOT / "tools/protos.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generating_again_changes_nothing() -> None:
    pytest.importorskip("grpc_tools", reason="the protobuf compiler is a tool of developers")
    made = tool().generate()
    assert made
    assert [name for name, text in made.items() if (ROOT / "src" / name).read_text() != text] == []


def test_no_generated_module_ties_itself_to_one_version_of_protobuf() -> None:
    modules = sorted((ROOT / "src/lancelet/format/protos").glob("*_pb2.py"))
    assert modules
    assert [path.name for path in modules if "runtime_version" in path.read_text()] == []
