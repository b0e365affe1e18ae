"""Declarations: what a pipeline is to do, as frozen data that is checked when it is made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lancelet.errors import InvalidInput
from lancelet.pipeline.declared_sources import Source
from lancelet.pipeline.references import Reference

__all__ = ["Cleanup", "Compact", "Embed", "Function", "Index", "Pipeline", "Transform", "Write"]

MODES = ("sync", "merge", "append")
TRANSFORMERS = "sentence-transformers:"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A Python function of one row's values that SQL may call, and the type that it returns."""

    python: Reference
    returns: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """One step from columns to columns: an SQL statement, expressions, or a Python function of a DataFrame.

    ``sql`` reads the view ``input``, and must hand out the column ``_input``, which tells where a row came from.
    ``select`` names expressions, ``where`` chooses rows, ``explode`` makes a row of each item of a list.
    """

    sql: str | None = None
    select: Mapping[str, str] | None = None
    where: str | None = None
    explode: str | None = None
    python: Reference | None = None

    def __post_init__(self) -> None:
        parts = [self.sql is not None, self.python is not None, bool(self.select or self.where or self.explode)]
        if sum(parts) != 1:
            found = "a transform says nothing" if not any(parts) else "a transform says several things at once"
            raise InvalidInput(found, hint="give one of sql, python, or select, where and explode")


@dataclass(frozen=True, slots=True, kw_only=True)
class Embed:
    """Vectors of a column's values: by the built-in text model, a sentence transformer, or a function.

    ``function`` gets a list of values and returns as many vectors. ``load`` is called once in each Python worker and
    returns such a function: for models that are loaded from somewhere.

    >>> Embed(column="text", into="vector", model="word2vec")
    Traceback (most recent call last):
    lancelet.errors.InvalidInput: the model is 'word2vec', expected 'builtin' or 'sentence-transformers:<name>'
    """

    column: str
    into: str
    model: str = "builtin"
    function: Reference | None = None
    load: Reference | None = None
    dimension: int = 128
    #: Values that a model gets at once.
    batch_size: int = 256
    #: Of the built-in model: most terms that it knows, and most texts that it learns from.
    vocabulary: int = 20_000
    sample: int = 50_000

    def __post_init__(self) -> None:
        if not self.builtin and self.function is None and self.load is None and not self.model.startswith(TRANSFORMERS):
            raise InvalidInput(f"the model is {self.model!r}, expected 'builtin' or '{TRANSFORMERS}<name>'")
        if self.function is not None and self.load is not None:
            raise InvalidInput("function and load are both given", hint="give one of them")
        for name in ("dimension", "batch_size", "vocabulary", "sample"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} is {getattr(self, name)}, expected at least 1")

    @property
    def builtin(self) -> bool:
        """Whether the vectors are those of the built-in model."""
        return self.model == "builtin" and self.function is None and self.load is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """How rows come into the table.

    ``sync``: the rows of a changed input take the place of those that it had, those of an input that is gone are
    deleted. ``merge``: rows are found by ``key``; other columns of theirs stay as they are. ``append``: rows are added.
    """

    table: str
    mode: str = "sync"
    key: str | tuple[str, ...] = ()
    #: Rows of inputs that are gone: ``delete`` or ``keep``. Deleted by ``sync`` unless it is said, else kept.
    removed: str | None = None
    #: Inputs that are written by one commit; a run that is stopped goes on after the last.
    inputs_per_commit: int = 100_000
    enable_stable_row_ids: bool = False
    data_storage_version: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidInput(f"mode is {self.mode!r}, expected one of {', '.join(MODES)}")
        if (self.mode == "merge") != bool(self.key):
            found = "mode merge has no key" if self.mode == "merge" else f"mode {self.mode} has a key"
            raise InvalidInput(found, hint="name the columns that identify a row, for mode merge alone")
        if self.removed not in (None, "delete", "keep") or (self.mode == "append" and self.removed == "delete"):
            raise InvalidInput(
                f"removed is {self.removed!r} for mode {self.mode}, expected keep or, unless appending, delete"
            )
        if self.inputs_per_commit < 1:
            raise InvalidInput(f"inputs_per_commit is {self.inputs_per_commit}, expected at least 1")

    @property
    def deletes(self) -> bool:
        """Whether rows of inputs that are gone are deleted."""
        return self.removed == "delete" or (self.removed is None and self.mode == "sync")


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index on a column: made if there is none, and brought up to date."""

    column: str
    type: str = "BTREE"
    name: str | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact:
    """Small fragments become large ones, and deleted rows go."""

    target_rows_per_fragment: int = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleanup:
    """Old versions go, and files that only they need. Two weeks are kept where nothing is said."""

    retention_hours: float | None = None
    retain_versions: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """From a source through transforms and embeddings into a table, which is then indexed, compacted, cleaned up."""

    #: What tells the rows of this pipeline from those of others in the same table.
    name: str
    source: Source
    write: Write
    functions: Mapping[str, Function] = field(default_factory=dict)
    transform: tuple[Transform, ...] = ()
    embed: tuple[Embed, ...] = ()
    index: tuple[Index, ...] = ()
    compact: Compact | None = None
    cleanup: Cleanup | None = None
    #: Where functions are looked for first, and relative paths of the source and the table begin.
    folder: str | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidInput(f"the name is {self.name!r}, expected letters, digits and _.- only")
        into = [item.into for item in self.embed]
        if len(set(into)) < len(into):
            raise InvalidInput(f"several embeddings go into one column: {', '.join(into)}")
