"""References to Python functions: ``module:name`` as declarations write them, found, told apart, carried to workers."""

from __future__ import annotations

import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from lancelet.errors import InvalidInput, NotFound

__all__ = ["Reference", "code_of", "resolved"]

#: A function, or where one is: ``module:name``.
Reference = str | Callable[..., Any]


def resolved(reference: Reference, folder: str | None = None) -> Callable[..., Any]:
    """The function that a reference means; ``folder`` is looked in first, where the declaration is.

    Functions of modules that are not installed travel to Spark's workers by value, so that these need no copy.

    >>> resolved("os.path:basename")("/a/b")
    'b'
    >>> resolved("os.path:nothing")
    Traceback (most recent call last):
    lancelet.errors.NotFound: module 'os.path' has no function 'nothing'
    """
    if not isinstance(reference, str):
        return reference
    place, _, name = reference.partition(":")
    if not place or not name:
        hint = "write module:function"
        raise InvalidInput(f"{reference!r} names no function", hint=hint)
    module = _module(place, folder)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise NotFound(f"module {place!r} has no function {name!r}")
    if not _installed(module):
        from pyspark.cloudpickle import register_pickle_by_value

        register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return found  # type: ignore[no-any-return]


def _module(place: str, folder: str | None) -> ModuleType:
    if folder is not None and folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise
        where = f"in {folder} or " if folder else ""
        raise NotFound(f"there is no module {place!r} {where}among the installed packages") from None


def _installed(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        return True
    homes = {sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib")}
    return any(Path(file).resolve().is_relative_to(Path(home).resolve()) for home in homes)


def code_of(reference: Reference, folder: str | None = None) -> str:
    """What tells one state of a function from another: its name and, where it can be had, its source text.

    Functions that it calls are not looked at.

    >>> code_of("os.path:basename") == code_of("os.path:basename")
    True
    """
    function = resolved(reference, folder)
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        text = "" if code is None else code.co_code.hex() + repr(code.co_consts)
    name = reference if isinstance(reference, str) else getattr(function, "__qualname__", type(function).__qualname__)
    return f"{name} {hashlib.sha256(text.encode()).hexdigest()[:16]}"
