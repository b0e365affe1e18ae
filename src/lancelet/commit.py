"""Commit locks: for stores whose conditional writes cannot be trusted, under the names that users import."""

from __future__ import annotations

from lancelet.errors import Conflict
from lancelet.table.commit import CommitLock

__all__ = ["CommitConflictError", "CommitLock"]

#: What a commit lock raises when somebody else has the version, and what a commit raises that others stand in the way
#: of. ``retryable`` says whether the same request may succeed when it is worked out anew.
CommitConflictError = Conflict
