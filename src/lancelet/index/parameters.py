"""Parameters of index types as users give them: numbers within bounds, or a refusal that says which."""

from __future__ import annotations

from collections.abc import Mapping

from lancelet.errors import InvalidInput

__all__ = ["number", "whole"]


def whole(parameters: Mapping[str, object], name: str, default: int, *, least: int = 1, most: int = 2**32 - 1) -> int:
    """A whole number.

    >>> whole({"zone_size": 10}, "zone_size", 4096), whole({}, "zone_size", 4096)
    (10, 4096)
    """
    value = parameters.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(f"parameter {name} is {value!r}, expected a whole number from {least} to {most}")
    return value


def number(parameters: Mapping[str, object], name: str, default: float, *, above: float, below: float) -> float:
    """A number strictly between two others.

    >>> number({}, "probability", 0.1, above=0, below=1)
    0.1
    """
    value = parameters.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not above < value < below:
        raise InvalidInput(f"parameter {name} is {value!r}, expected a number between {above} and {below}")
    return float(value)
