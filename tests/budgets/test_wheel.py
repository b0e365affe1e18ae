"""A source archive and a wheel are built, are small, hold what they should, and the wheel works elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILT_FROM = ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py", "src")
MOST_INSTALLED = 10_000_000
LOOK = """
import json, lancelet, lancelet.errors, pyspark_lance
from lancelet import kernels
print(json.dumps([lancelet.__file__, pyspark_lance.__file__, kernels.active]))
"""
pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="a wheel with compiled kernels needs a C compiler"
)


def build(what: str, source: Path, to: Path) -> Path:
    """The one archive that setuptools makes of a folder."""
    command = [sys.executable, "-m", "build", what, "--no-isolation", "--outdir", str(to), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return next(path for path in to.iterdir() if path.is_file())


@pytest.fixture(scope="module", params=["what is compiled here", pytest.param("nothing", marks=pytest.mark.long)])
def wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the source archive, which was made from a copy: nothing else of this clone can leak in.

    The kernels that this clone compiled may be beside the unpacked archive, so that only what differs is compiled.
    """
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "copy").mkdir()
    unwanted = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / "copy" / name, ignore=unwanted)
        elif (ROOT / name).exists():
            shutil.copy(ROOT / name, folder / "copy" / name)
    shutil.unpack_archive(build("--sdist", folder / "copy", folder / "source archive"), folder, filter="data")
    unpacked = next(folder.glob("lancelet-*"))
    if request.param == "what is compiled here":
        for made in (ROOT / "build" / "kernels", *(ROOT / "build").glob("lib.*")):
            shutil.copytree(made, unpacked / "build" / made.name)
    return build("--wheel", unpacked, folder / "wheel")


def test_the_wheel_holds_the_package_and_stays_small(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    assert sum(sizes.values()) < MOST_INSTALLED
    assert {"lancelet/py.typed", "pyspark_lance/__init__.py"} <= sizes.keys()
    tops = {name.split("/")[0] for name in sizes}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"lancelet", "pyspark_lance"}
    copied = wheel.parent.parent / "copy" / "src"
    ours = {path.relative_to(copied).as_posix() for path in copied.rglob("*.py")}
    assert ours - sizes.keys() == set()


def test_the_wheel_works_in_another_environment_with_compiled_kernels(wheel: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "an environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", elsewhere], check=True)
    python = elsewhere / "bin" / "python"
    site = elsewhere / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    # Its dependencies come from here, without a download; files named .pth are not followed through a .pth file,
    # so the editable lancelet of this environment stays invisible.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--disable-pip-version-check", str(wheel)], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LANCELET"))}
    done = subprocess.run(
        [python, "-c", LOOK], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    package, name_for_spark, active = json.loads(done.stdout)
    assert Path(package).is_relative_to(elsewhere)
    assert Path(name_for_spark).is_relative_to(elsewhere)
    assert active != "reference"
