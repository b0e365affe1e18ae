"""What is installed stays small, compiled kernels included."""

from __future__ import annotations

from pathlib import Path

import lancelet
import pyspark_lance

MOST_BYTES = 10_000_000


def test_the_installed_package_stays_under_its_limit() -> None:
    folders = [Path(module.__file__).parent for module in (lancelet, pyspark_lance)]
    sizes = {
        path.relative_to(folder.parent).as_posix(): path.stat().st_size
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:5]
    assert sum(sizes.values()) < MOST_BYTES, f"{sum(sizes.values()) / 1e6:.1f} MB, largest: {largest}"
