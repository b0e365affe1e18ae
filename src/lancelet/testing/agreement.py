"""Agreement: two implementations asked the same, and what they answered or raised compared."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

__all__ = ["Outcome", "disagreement", "normal", "outcome"]

_BUILTIN = {kind for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, BaseException)}
_TOO_WIDE = {Exception, BaseException}


@dataclass(frozen=True)
class Outcome:
    """What a call gave: a value in a form that can be compared, or the builtin exceptions that its error is."""

    value: object = None
    raised: tuple[type[BaseException], ...] = ()
    error: str = ""


def outcome(call: Callable[[], object]) -> Outcome:
    """Carry a call out. Panics of Rust, which are no Exception, count as errors of no kind.

    >>> outcome(lambda: [1, 2]).value, [kind.__name__ for kind in outcome(lambda: {}["a"]).raised]
    ([1, 2], ['KeyError', 'LookupError'])
    """
    try:
        return Outcome(normal(call()))
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # noqa: BLE001
        kinds = tuple(kind for kind in type(error).__mro__ if kind in _BUILTIN and kind not in _TOO_WIDE)
        return Outcome(raised=kinds or (BaseException,), error=f"{type(error).__name__}: {error}")


def disagreement(ours: Callable[[], object], theirs: Callable[[], object]) -> str | None:
    """In words how two calls came out differently; None where they agree.

    Errors agree where ours is also the builtin that theirs is: who catches theirs today catches ours.
    """
    here, there = outcome(ours), outcome(theirs)
    if there.raised:
        if not here.raised:
            return f"they raise {there.error[:200]}, we return {here.value!r}"
        if there.raised[0] is not BaseException and there.raised[0] not in here.raised:
            return f"they raise {there.raised[0].__name__} ({there.error[:200]}), we {here.error[:200]}"
        return None
    if here.raised:
        return f"they return {there.value!r}, we raise {here.error[:400]}"
    if here.value != there.value:
        return f"they return {there.value!r}, we {here.value!r}"
    return None


def normal(value: object) -> object:
    """A value in a form that compares as it should: tables by schema and rows, NaN equal to itself, objects by repr."""
    if isinstance(value, pa.Table | pa.RecordBatch):
        return [*map(str, value.schema), *map(normal, value.to_pylist())]
    if isinstance(value, pa.RecordBatchReader):
        return normal(value.read_all())
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return [str(value.type), *map(normal, value.to_pylist())]
    if isinstance(value, pa.Schema | pa.Field | pa.DataType):
        return str(value)
    if isinstance(value, float):
        return "NaN" if value != value else value
    if isinstance(value, Mapping):
        return {key: normal(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(normal, value))
    if value is None or isinstance(value, bool | int | str | bytes | datetime | set | frozenset):
        return value
    return repr(value) if type(value).__repr__ is not object.__repr__ else type(value).__name__
