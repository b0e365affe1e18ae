"""The exception tree: one class per outcome, each also the builtin that users catch today."""

from __future__ import annotations

__all__ = [
    "AlreadyExists",
    "Conflict",
    "Corrupt",
    "InvalidInput",
    "LanceletError",
    "NotFound",
    "OverBudget",
    "Storage",
    "Unsupported",
]

_FACTS = ("uri", "version", "column", "fragment", "page", "byte_range", "retryable", "hint")


class LanceletError(Exception):
    """Base of every error that lancelet raises on purpose.

    The message says what happened; the attributes say where, so that programs need not parse it.

    >>> error = Corrupt("footer magic is b'LANX', expected b'LANC'", uri="a.lance", byte_range=(36, 4))
    >>> error.byte_range
    (36, 4)
    >>> str(error)
    "footer magic is b'LANX', expected b'LANC' [uri=a.lance, bytes 36..40]"
    """

    #: Whether the same call may succeed when it is made again.
    retryable: bool = False

    def __init__(
        self,
        message: str,
        *,
        uri: str | None = None,
        version: int | None = None,
        column: str | None = None,
        fragment: int | None = None,
        page: int | None = None,
        byte_range: tuple[int, int] | None = None,
        retryable: bool | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.uri = uri
        self.version = version
        self.column = column
        self.fragment = fragment
        self.page = page
        #: ``(start, length)`` within the file that ``uri`` names.
        self.byte_range = byte_range
        self.hint = hint
        if retryable is not None:
            self.retryable = retryable

    def where(self, **facts: object) -> LanceletError:
        """Fill in places that the raiser could not know, without overwriting those it did; returns itself.

        >>> Corrupt("page ends early").where(column="a", page=3).column
        'a'
        """
        unknown = set(facts) - set(_FACTS)
        if unknown:
            raise TypeError(f"unknown facts: {sorted(unknown)}")
        for name, value in facts.items():
            if getattr(self, name) is None:
                setattr(self, name, value)
        return self

    def __str__(self) -> str:
        places = [
            f"{name}={value}"
            for name in ("uri", "version", "fragment", "column", "page")
            if (value := getattr(self, name)) is not None
        ]
        if self.byte_range is not None:
            start, length = self.byte_range
            places.append(f"bytes {start}..{start + length}")
        text = self.message + (f" [{', '.join(places)}]" if places else "")
        return f"{text}; {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, {name: getattr(self, name) for name in _FACTS})


def _rebuild(kind: type[LanceletError], message: str, facts: dict[str, object]) -> LanceletError:
    return kind(message, **facts)  # type: ignore[arg-type]


class NotFound(LanceletError, FileNotFoundError, ValueError):
    """What was named does not exist."""


class AlreadyExists(LanceletError, FileExistsError, ValueError):
    """What was to be created is there already."""


class Corrupt(LanceletError, OSError, ValueError):
    """Stored bytes break the format."""


class Unsupported(LanceletError, NotImplementedError, ValueError):
    """Valid, but outside what this release or this file version can do."""


class InvalidInput(LanceletError, ValueError, OSError):
    """The caller's arguments cannot be carried out as given."""


class Conflict(LanceletError, OSError):
    """Another writer's commit stands in the way. Commit locks raise it, too, to say so."""

    def __init__(
        self,
        message: str = "another writer's commit stands in the way",
        retryable: bool | None = None,
        *,
        uri: str | None = None,
        version: int | None = None,
        column: str | None = None,
        fragment: int | None = None,
        page: int | None = None,
        byte_range: tuple[int, int] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(
            message,
            uri=uri,
            version=version,
            column=column,
            fragment=fragment,
            page=page,
            byte_range=byte_range,
            retryable=retryable,
            hint=hint,
        )


class OverBudget(LanceletError, MemoryError):
    """The work does not fit the memory budget."""


class Storage(LanceletError, OSError):
    """The store refused, failed, or did not answer."""
