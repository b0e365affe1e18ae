"""Which Python Spark's workers are told to run."""

from __future__ import annotations

import sys

import pytest

from lancelet.spark.python import use_python


def test_the_workers_run_this_python() -> None:
    environment = {"PATH": "/usr/bin"}
    assert use_python(environment) in (sys.executable, sys.executable.rsplit("/", 1)[-1])


def test_a_path_with_spaces_is_given_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/my home/bin/python3")
    environment = {"PATH": "/usr/bin"}
    use_python(environment)
    assert environment == {"PATH": "/my home/bin:/usr/bin", "PYSPARK_PYTHON": "python3"}


def test_what_the_user_set_stays() -> None:
    environment = {"PYSPARK_PYTHON": "/other/python"}
    use_python(environment)
    assert environment == {"PYSPARK_PYTHON": "/other/python"}
