"""Bring .venv up to date: create it, install lancelet editable with what development needs, compile the kernels.

Run by ``make`` whenever something that .venv was built from has changed; uses the standard library only, because
nothing else is there yet.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
READY = VENV / ".ready"
EXTRAS = "dev,spark"
NO_PIP = """\
{python} cannot make a virtual environment with pip in it: its module ensurepip is missing.
One of these helps:
  Debian, Ubuntu:  apt install python3-venv
  without root:    {python} -m pip --version     (if pip is there, it is used; upgrade one older than 22.3)
                   or put `uv` or `virtualenv` on PATH"""


def main() -> int:
    """Do what is needed, nothing if all is up to date; returns the exit status."""
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is the one that older versions start
        print(f"lancelet needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}", file=sys.stderr)
        return 1
    # A lock on a file that exists in every clone: two makes at once wait for each other.
    with (ROOT / "pyproject.toml").open("rb") as project:
        fcntl.flock(project, fcntl.LOCK_EX)
        requirements = _build_requirements()
        try:
            if not _works():
                _say("making .venv")
                _make()
            if not READY.exists() or READY.read_text() != _fingerprint():
                _say("installing what development needs (minutes the first time)")
                _pip("install", *requirements)
                _pip("install", "--no-build-isolation", "--editable", f".[{EXTRAS}]")
            else:
                _say("compiling the kernels")
                _run(str(PYTHON), "setup.py", "-q", "build_ext", "--inplace")
        except subprocess.CalledProcessError as error:
            print(f"set-up failed: {' '.join(map(str, error.cmd))} gave {error.returncode}", file=sys.stderr)
            return 1
        READY.write_text(_fingerprint())
    return 0


def _build_requirements() -> list[str]:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return list(project["build-system"]["requires"])


def _fingerprint() -> str:
    """What decides which packages are in .venv. Kernel sources do not: they are only compiled again."""
    digest = hashlib.sha256(str(ROOT).encode())
    for name in ("pyproject.toml", "setup.py"):
        if (ROOT / name).exists():
            digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def _works() -> bool:
    """Whether .venv has a Python that starts, is new enough and has pip."""
    probe = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    return PYTHON.exists() and subprocess.run([PYTHON, "-c", probe], capture_output=True, check=False).returncode == 0


def _make() -> None:
    shutil.rmtree(VENV, ignore_errors=True)
    here = sys.executable
    if subprocess.run([here, "-c", "import ensurepip"], capture_output=True, check=False).returncode == 0:
        _run(here, "-m", "venv", str(VENV))
        return
    _run(here, "-m", "venv", "--without-pip", str(VENV))
    for tool in (
        [here, "-m", "pip", "--python", str(PYTHON), "install", "-q", "pip"],
        ["uv", "pip", "install", "-q", "--python", str(PYTHON), "pip"],
        ["virtualenv", "-q", "--python", here, str(VENV)],
    ):
        if shutil.which(tool[0]) and subprocess.run(tool, capture_output=True, check=False).returncode == 0:
            return
    raise SystemExit(NO_PIP.format(python=here))


def _pip(command: str, *arguments: str) -> None:
    # Twice quiet: errors only.
    _run(str(PYTHON), "-m", "pip", command, "-qq", "--disable-pip-version-check", *arguments)


def _run(*command: str) -> None:
    subprocess.run(command, cwd=ROOT, check=True, stdin=subprocess.DEVNULL, env=_environment())


def _environment() -> dict[str, str]:
    """The caller's environment without what would make Python look outside .venv."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}


def _say(message: str) -> None:
    print(f"[set-up] {message}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
