"""Generate the checked-in protobuf modules and their stubs from ``src/lancelet/format/protos/*.proto``.

The generated modules carry no runtime version check: it would tie one major version of protobuf to a release of ours,
while the little they use (the descriptor pool and the message builder) is the same from 5.29 on. The stubs come from
mypy-protobuf. Run ``python tools/protos.py`` after each change of a .proto file; ``--check`` says what would change.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
FOLDER = "lancelet/format/protos"
_VERSION_LINES = re.compile(
    r"^# Protobuf Python Version.*\n"
    r"|^from google\.protobuf import runtime_version.*\n"
    r"|^_runtime_version\.ValidateProtobufRuntimeVersion\([^)]*\)\n",
    re.MULTILINE,
)


def generate(source: Path = SOURCE) -> dict[str, str]:
    """The text of every generated file, by its path below ``src``."""
    protos = sorted(str(path.relative_to(source)) for path in (source / FOLDER).glob("*.proto"))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        outputs = [f"--python_out={folder}", f"--mypy_out=quiet:{folder}"]
        command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={source}", *outputs, *protos]
        subprocess.run(command, check=True, env={**os.environ, "PATH": path})
        made = sorted(path for path in Path(folder).rglob("*_pb2.py*") if path.suffix in (".py", ".pyi"))
        return {str(path.relative_to(folder)): _VERSION_LINES.sub("", path.read_text()) for path in made}


def main() -> int:
    """Write the generated files, or with ``--check`` name those that differ and return 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a file would change")
    arguments = parser.parse_args()
    stale = []
    for name, text in generate().items():
        path = SOURCE / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not arguments.check:
            path.write_text(text)
    sys.stdout.writelines(f"{'differs' if arguments.check else 'wrote'}: {name}\n" for name in stale)
    return int(arguments.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
