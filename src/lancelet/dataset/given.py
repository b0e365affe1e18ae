"""Passing parameters on: functions with the long parameter lists of pylance hand them over in one piece."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["given"]


def given(parameters: Mapping[str, object], *dropped: str) -> dict[str, Any]:
    """The parameters of the function that passes its ``locals()`` before anything else, without some of them.

    >>> def many(self, a, b=2):
    ...     return given(locals(), "a")
    >>> many(None, 1)
    {'b': 2}
    """
    return {name: value for name, value in parameters.items() if name != "self" and name not in dropped}
