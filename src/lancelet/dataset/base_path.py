"""DatasetBasePath: a place besides the table's own folder where files of it lie."""

from __future__ import annotations

from lancelet.format.manifest import BasePath

__all__ = ["DatasetBasePath"]


class DatasetBasePath:
    """A place where files of a table lie; ids are given when it is added.

    >>> DatasetBasePath("s3://bucket/hot", "hot")
    DatasetBasePath(id=0, name='hot', path='s3://bucket/hot', is_dataset_root=False)
    """

    __slots__ = ("_stored",)

    def __init__(
        self, path: str, name: str | None = None, is_dataset_root: bool = False, id: int | None = None
    ) -> None:
        self._stored = BasePath(id or 0, str(path), is_dataset_root, name)

    @staticmethod
    def from_stored(stored: BasePath) -> DatasetBasePath:
        """What a manifest's entry says."""
        made = DatasetBasePath.__new__(DatasetBasePath)
        made._stored = stored
        return made

    def to_stored(self) -> BasePath:
        """The entry of a manifest."""
        return self._stored

    @property
    def id(self) -> int:
        """By what number files say that they lie here."""
        return self._stored.id

    @property
    def name(self) -> str | None:
        """What users call it."""
        return self._stored.name

    @property
    def path(self) -> str:
        """Where it is."""
        return self._stored.path

    @property
    def is_dataset_root(self) -> bool:
        """Whether files lie in ``data``, ``_deletions`` and so on below it, as in a table, or directly in it."""
        return self._stored.is_dataset_root

    def __eq__(self, other: object) -> bool:
        return self._stored == other._stored if isinstance(other, DatasetBasePath) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._stored)

    def __repr__(self) -> str:
        names = ("id", "name", "path", "is_dataset_root")
        return f"DatasetBasePath({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def __reduce__(self) -> tuple[object, ...]:
        return DatasetBasePath.from_stored, (self._stored,)
