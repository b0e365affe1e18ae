"""Make Spark's Python workers run the interpreter that this process runs."""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping
from pathlib import Path

__all__ = ["use_python"]


def use_python(environment: MutableMapping[str, str] | None = None) -> str:
    """Set ``PYSPARK_PYTHON`` of this process and its children, unless it is set; returns what it is then.

    Without it the workers run the first ``python3`` on PATH, which lacks what is installed here. A path with spaces is
    given by name, its folder first on PATH: Spark asks a shell whether the command exists, without quoting it, and
    looks for no Python data source if the answer is no.

    >>> use_python({"PYSPARK_PYTHON": "python3.12"})
    'python3.12'
    """
    values = os.environ if environment is None else environment
    if not values.get("PYSPARK_PYTHON"):
        here = Path(sys.executable)
        if " " in str(here):
            values["PATH"] = os.pathsep.join(filter(None, [str(here.parent), values.get("PATH")]))
            values["PYSPARK_PYTHON"] = here.name
        else:
            values["PYSPARK_PYTHON"] = str(here)
    return values["PYSPARK_PYTHON"]
