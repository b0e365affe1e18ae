"""Picks the kernels for this processor: the compiled modules where there are any, else their NumPy twins.

``LANCELET_KERNELS`` (``reference``, ``x86-64``, ``x86-64-v3`` or ``native``) asks for one kind.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType

from lancelet.errors import InvalidInput, Unsupported
from lancelet.events import emit
from lancelet.kernels import reference

# Best first: variant -> its package. The reference package is the list of what every variant must have.
_PACKAGES = {
    "x86-64-v3": "lancelet.kernels.x86_64_v3",
    "x86-64": "lancelet.kernels.x86_64",
    "native": "lancelet.kernels.native",
    "reference": "lancelet.kernels.reference",
}
_NAMES = tuple(sorted(module.name for module in iter_modules(reference.__path__)))

__all__ = ["active", "load", "variants", "why", *_NAMES]


def _present(variant: str) -> bool:
    """Whether the variant was compiled and runs on this processor."""
    if variant == "reference":
        return True
    if variant == "x86-64-v3":
        # The question is put to a module that any x86-64 processor can run.
        return _present("x86-64") and bool(_cpu().supports_x86_64_v3()) and _has_cpu_module(variant)
    return _has_cpu_module(variant)


def _has_cpu_module(variant: str) -> bool:
    try:
        return find_spec(f"{_PACKAGES[variant]}.cpu") is not None
    except ModuleNotFoundError:
        return False


def _cpu() -> ModuleType:
    return import_module("lancelet.kernels.x86_64.cpu")


def variants() -> list[str]:
    """The variants that this installation and this processor can use, best first; ``reference`` is always there.

    >>> variants()[-1]
    'reference'
    """
    return [variant for variant in _PACKAGES if _present(variant)]


def load(variant: str) -> Mapping[str, ModuleType]:
    """The modules of one variant by name; a module that cannot be loaded is replaced by its twin, with an event.

    >>> sorted(load("reference"))[0]
    'bitpack'
    """
    available = variants()
    if variant not in _PACKAGES:
        raise InvalidInput(f"unknown kernels {variant!r}, expected one of: {', '.join(available)}")
    if variant not in available:
        raise Unsupported(f"kernels {variant!r} are not available here, choose from: {', '.join(available)}")
    modules: dict[str, ModuleType] = {}
    for name in _NAMES:
        try:
            modules[name] = import_module(f"{_PACKAGES[variant]}.{name}")
        except ImportError as error:
            emit("kernels.reference", module=name, why=f"the {variant} build lacks {name}: {error}")
            modules[name] = import_module(f"{_PACKAGES['reference']}.{name}")
    return modules


def _choose(wanted: str | None) -> tuple[str, str]:
    """The variant to use and the reason for it."""
    if wanted:
        return wanted, f"LANCELET_KERNELS={wanted}"
    best = variants()[0]
    return best, "no compiled kernels are installed" if best == "reference" else "the best for this processor"


#: ``active`` names the variant in use, ``why`` says how it came to be chosen.
active, why = _choose(os.environ.get("LANCELET_KERNELS"))
globals().update(load(active))
if active == "reference":
    emit("kernels.reference", module=None, why=why)
