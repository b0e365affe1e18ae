"""Outcomes: what became of a commit, as a value; raising is left to those who have nothing else to try."""

from __future__ import annotations

from dataclasses import dataclass

from lancelet.errors import Conflict as ConflictError
from lancelet.format.manifest import Manifest
from lancelet.format.transaction import Transaction

__all__ = ["Committed", "Conflict", "Outcome", "committed"]


@dataclass(frozen=True, slots=True)
class Committed:
    """The commit is in: ``manifest`` is its version, ``transaction`` what it did after all rebasing."""

    manifest: Manifest
    transaction: Transaction
    #: How often the version aimed at was taken by somebody else first.
    attempts: int = 1

    @property
    def version(self) -> int:
        """The version that the commit made."""
        return self.manifest.version


@dataclass(frozen=True, slots=True)
class Conflict:
    """Somebody else's commit stands in the way; nothing of ours is visible.

    Retryable means that the same request may succeed when it is worked out anew from the newest version.
    """

    retryable: bool
    #: The version that won, and the name of the operation that made it.
    version: int
    operation: str
    reason: str

    def error(self, uri: str | None = None) -> ConflictError:
        """The same as an error.

        >>> error = Conflict(True, 7, "Rewrite", "Delete changes fragment 3, which is gone").error()
        >>> error.retryable, str(error)
        (True, 'Delete changes fragment 3, which is gone (Rewrite was committed first) [version=7]; work the request \
out from the newest version and try again')
        """
        hint = "work the request out from the newest version and try again" if self.retryable else None
        text = f"{self.reason} ({self.operation} was committed first)"
        return ConflictError(text, uri=uri, version=self.version, retryable=self.retryable, hint=hint)


Outcome = Committed | Conflict


def committed(outcome: Outcome, uri: str | None = None) -> Committed:
    """The commit, or the conflict raised: for callers at the edge."""
    if isinstance(outcome, Conflict):
        raise outcome.error(uri)
    return outcome
