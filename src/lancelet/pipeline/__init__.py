"""Pipelines: what is declared in YAML or Python is carried out by Spark, and on the next run for new inputs only.

pipeline = lancelet.pipeline.load("pipeline.yml")
print(lancelet.pipeline.plan(spark, pipeline))      what a run would do
print(lancelet.pipeline.run(spark, pipeline))       what it did
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lancelet.pipeline.declaration import Cleanup, Compact, Embed, Function, Index, Pipeline, Transform, Write
    from lancelet.pipeline.declared_sources import FilesSource, FrameSource, LanceSource, PythonSource, SqlSource
    from lancelet.pipeline.embedders import open_embedder
    from lancelet.pipeline.figures import RunFigures, RunPlan, StepFigures
    from lancelet.pipeline.parsing import load, loads
    from lancelet.pipeline.running import plan, run

__all__ = [
    "Cleanup",
    "Compact",
    "Embed",
    "FilesSource",
    "FrameSource",
    "Function",
    "Index",
    "LanceSource",
    "Pipeline",
    "PythonSource",
    "RunFigures",
    "RunPlan",
    "SqlSource",
    "StepFigures",
    "Transform",
    "Write",
    "load",
    "loads",
    "open_embedder",
    "plan",
    "run",
]

_PLACES = {
    "declaration": ("Cleanup", "Compact", "Embed", "Function", "Index", "Pipeline", "Transform", "Write"),
    "declared_sources": ("FilesSource", "FrameSource", "LanceSource", "PythonSource", "SqlSource"),
    "embedders": ("open_embedder",),
    "figures": ("RunFigures", "RunPlan", "StepFigures"),
    "parsing": ("load", "loads"),
    "running": ("plan", "run"),
}
_PLACE = {name: place for place, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> object:
    place = _PLACE.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{place}"), name)
