"""The tests of this folder on other kinds of Spark: executors of their own, a standalone master, a Connect server.

And on other versions of Spark, each in an environment of its own below ``.cache/spark``, made from PyPI once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lancelet.spark.java import use_java
from lancelet.spark.python import use_python
from lancelet.testing.spark_kinds import run_tests, standalone

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
#: What is run everywhere; the rest only where minutes do not count.
COMMON = [HERE / "test_common.py"]
ALL = sorted(path for path in HERE.glob("test_*.py") if path.name != "test_kinds.py")
#: The newest of each line of Spark besides the one that all other tests run on.
VERSIONS = ["4.0.5", "4.1.4", "4.2.1"]
#: What lancelet needs, what its tests need, and what older Sparks can work with.
PACKAGES = (
    *("numpy>=1.26", "obstore>=0.8", "protobuf>=5.29", "pyarrow>=17", "pyroaring>=1.0.3", "sqlglot>=30"),
    *("pylance==14.0.2", "hypothesis>=6.100", "psutil>=6", "pytest>=8", "pandas<3"),
)


@pytest.fixture(autouse=True)
def _java() -> None:
    use_java()
    use_python()


#: A read, a write, a merge, a failure: executors of their own take long to start.
SOME = "read_with_options or behind_and_in_place or updated_and_merged or a_job_that_fails"


@pytest.mark.parametrize(("kind", "chosen"), [("connect", ""), ("local-cluster[2,1,1024]", SOME)])
def test_what_is_common_holds_on_connect_and_on_executors_of_their_own(tmp_path: Path, kind: str, chosen: str) -> None:
    run_tests(kind, tmp_path, COMMON, chosen=chosen)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["connect", "local-cluster[2,1,1024]", "standalone"])
def test_all_of_it_holds_on_every_kind(tmp_path: Path, kind: str) -> None:
    if kind == "standalone":
        with standalone(tmp_path) as master:
            run_tests(master, tmp_path, ALL)
    else:
        run_tests(kind, tmp_path, ALL)


def python_beside(version: str) -> Path:
    """The interpreter of an environment with a version of Spark; the environment is made if there is none."""
    folder = ROOT / ".cache" / "spark" / version
    ready, python = folder / ".ready", folder / "bin" / "python"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "-q", f"pyspark[connect]=={version}", *PACKAGES]
        subprocess.run(pip, check=True)
        ready.touch()
    return python


@pytest.mark.long
@pytest.mark.parametrize("kind", ["local[2]", "connect"])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_common_holds_with_older_sparks(
    tmp_path: Path, version: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")])))
    run_tests(kind, tmp_path, COMMON, python=str(python_beside(version)))
