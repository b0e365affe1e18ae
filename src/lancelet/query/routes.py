"""Routes: the conditions of a scan in the order in which they are looked at, and what is read for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancelet.encodings.budget import is_fixed
from lancelet.expr import Column, Expr, conjuncts
from lancelet.expr.tree import Call
from lancelet.format.fields import Schema
from lancelet.query.reads import Reads, reads_of

__all__ = ["Route", "Step", "all_of", "rest_of", "route_for"]


@dataclass(frozen=True, slots=True)
class Step:
    """A condition, and what must be read to know for which rows it is true."""

    reads: Reads
    condition: Expr


@dataclass(frozen=True, slots=True)
class Route:
    """How rows are found and read: the steps, each for the rows left by those before, then the remaining columns."""

    steps: tuple[Step, ...]
    #: What the outputs need and no step reads in the same form.
    rest: Reads


def route_for(stored: Schema, condition: Expr | None, reads: Reads) -> Route:
    """The route for rows that must fulfil a condition and of which some columns are read."""
    steps = _steps(stored, condition)
    return Route(steps, rest_of(reads, steps))


def _steps(stored: Schema, condition: Expr | None) -> tuple[Step, ...]:
    """The conditions on values of fixed width first: the others are then looked at for few rows only."""
    if condition is None:
        return ()
    parts = conjuncts(condition)
    cheap = [part for part in parts if _is_cheap(part)]
    dear = [part for part in parts if not _is_cheap(part)]
    groups = [condition] if not cheap or not dear else [all_of(cheap), all_of(dear)]
    return tuple(Step(reads_of(stored, [group]), group) for group in groups)


def all_of(parts: Sequence[Expr]) -> Expr:
    """Conditions that must all hold, as one."""
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts), pa.bool_())


def _is_cheap(expr: Expr) -> bool:
    """Whether only values of a few bytes each are looked at."""
    if isinstance(expr, Column):
        return is_fixed(expr.type) and not pa.types.is_nested(expr.type)
    return all(_is_cheap(argument) for argument in expr.arguments) if isinstance(expr, Call) else True


def rest_of(reads: Reads, steps: Sequence[Step]) -> Reads:
    """What outputs need and no step reads in the same form."""
    known = [field for step in steps for field in step.reads.schema.fields]
    return reads.without([field for field in reads.schema.fields if field in known])
