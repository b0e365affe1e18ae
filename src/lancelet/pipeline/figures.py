"""Figures: what a run would do, step by step, and what it did, as data that prints itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["RunFigures", "RunPlan", "StepFigures", "StepPlan"]


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One step of a plan: what it would do, in words and as facts. ``idle`` if that is nothing."""

    name: str
    does: str
    idle: bool = False
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run would do now.

    >>> print(RunPlan("docs", "/t", (StepPlan("inputs", "2 new"), StepPlan("compact", "nothing", idle=True))))
    plan of docs into /t
      inputs    2 new
      compact   nothing
    """

    pipeline: str
    table: str
    steps: tuple[StepPlan, ...]

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return all(step.idle for step in self.steps)

    def __str__(self) -> str:
        return "\n".join(
            [f"plan of {self.pipeline} into {self.table}", *(f"  {step.name:<9} {step.does}" for step in self.steps)]
        )


@dataclass(frozen=True, slots=True)
class StepFigures:
    """One step of a run: what it did, in words and as facts, and how long it took. ``idle`` if that was nothing."""

    name: str
    did: str
    seconds: float
    idle: bool = False
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What a run did.

    >>> print(RunFigures("docs", "/t", None, 1, (StepFigures("write", "2 rows", 0.5),)))
    run of docs into /t: version 1 in 0.5 s
      write       0.5 s  2 rows
    """

    pipeline: str
    table: str
    #: Versions of the table before and after; None where there is none.
    version_before: int | None
    version: int | None
    steps: tuple[StepFigures, ...]

    @property
    def seconds(self) -> float:
        """What all steps took together."""
        return sum(step.seconds for step in self.steps)

    @property
    def idle(self) -> bool:
        """Whether there was nothing to do."""
        return all(step.idle for step in self.steps)

    def step(self, name: str) -> StepFigures:
        """The step of a name."""
        return next(step for step in self.steps if step.name == name)

    def __str__(self) -> str:
        what = "nothing to do" if self.idle else f"version {self.version}"
        head = f"run of {self.pipeline} into {self.table}: {what} in {self.seconds:.1f} s"
        return "\n".join([head, *(f"  {step.name:<9} {step.seconds:5.1f} s  {step.did}" for step in self.steps)])
