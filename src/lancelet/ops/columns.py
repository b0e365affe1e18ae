"""Columns left out, renamed and put in another order: schemas made from schemas, and the commits that set them.

Nothing but the manifest changes: files go on holding what no field names any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lancelet.errors import InvalidInput
from lancelet.format import operations as op
from lancelet.format.fields import Field, Schema
from lancelet.ops.committing import CommitOptions, commit_operation
from lancelet.table.outcome import Outcome
from lancelet.table.snapshot import Snapshot

__all__ = [
    "check_names",
    "drop_columns",
    "plan_drop",
    "plan_rename",
    "plan_reorder",
    "rename_columns",
    "reorder_columns",
]


def plan_drop(schema: Schema, paths: Iterable[str]) -> Schema:
    """A schema without the columns at some dotted paths, and structs left without any field. InvalidInput where nothing
    would be left.

    >>> two = Schema((Field("a", "int8"), Field("b", "int8"))).with_ids()
    >>> [(item.name, item.id) for item in plan_drop(two, ["a"]).fields]
    [('b', 1)]
    """
    for path in paths:
        _existing(schema, path)
        schema = replace(schema, fields=_without(schema.fields, path.split(".")))
    if not schema.fields:
        raise InvalidInput("no column would be left", hint="keep at least one")
    return schema


def plan_rename(schema: Schema, names: Mapping[str, str]) -> Schema:
    """A schema in which the columns at some dotted paths have other names. All paths are those of the given schema.

    >>> two = Schema((Field("a", "int8"), Field("b", "int8"))).with_ids()
    >>> [item.name for item in plan_rename(two, {"a": "b", "b": "a"}).fields]
    ['b', 'a']
    """
    renamed = {_existing(schema, path).id: name for path, name in names.items()}
    for name in renamed.values():
        if not name or "." in name:
            raise InvalidInput(f"a column cannot be named {name!r}", hint="give a name without dots")
    schema = replace(schema, fields=tuple(_renamed(item, renamed) for item in schema.fields))
    check_names(schema.fields, "the table")
    return schema


def plan_reorder(schema: Schema, names: Sequence[str]) -> Schema:
    """A schema with its top-level columns in another order; every one must be named once.

    >>> two = Schema((Field("a", "int8"), Field("b", "int8"))).with_ids()
    >>> [(item.name, item.id) for item in plan_reorder(two, ["b", "a"]).fields]
    [('b', 1), ('a', 0)]
    """
    known = {item.name: item for item in schema.fields}
    if sorted(names) != sorted(known):
        raise InvalidInput(f"the columns are {list(known)}, the order given is {list(names)}")
    return replace(schema, fields=tuple(known[name] for name in names))


def drop_columns(
    snapshot: Snapshot, paths: Iterable[str], *, message: str | None = None, options: CommitOptions | None = None
) -> Outcome:
    """Leave columns out.

    >>> import pyarrow as pa
    >>> from lancelet.ops.write import create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> store = open_store("memory://dropped")
    >>> made = create(store, pa.table({"x": [1], "y": [2]}))
    >>> drop_columns(open_snapshot(store), ["x"]).manifest.schema.fields[0].name
    'y'
    """
    return _project(snapshot, plan_drop(snapshot.schema, paths), options or CommitOptions(message=message))


def rename_columns(snapshot: Snapshot, names: Mapping[str, str], *, message: str | None = None) -> Outcome:
    """Give columns other names."""
    return _project(snapshot, plan_rename(snapshot.schema, names), CommitOptions(message=message))


def reorder_columns(snapshot: Snapshot, names: Sequence[str], *, message: str | None = None) -> Outcome:
    """Put the top-level columns in another order."""
    return _project(snapshot, plan_reorder(snapshot.schema, names), CommitOptions(message=message))


def _project(snapshot: Snapshot, schema: Schema, options: CommitOptions) -> Outcome:
    # No field that is left allows fewer values than before.
    return commit_operation(snapshot, op.Project(schema, preserves_nullability=True), options)


def _existing(schema: Schema, path: str) -> Field:
    found = schema.find(path)
    if found is None:
        raise InvalidInput(f"there is no column {path!r}", column=path, hint=f"there are {_names(schema.fields)}")
    return found


def _without(fields: Sequence[Field], path: Sequence[str]) -> tuple[Field, ...]:
    """Fields but for the one at a path."""
    kept = []
    for item in fields:
        if item.name != path[0]:
            kept.append(item)
        elif len(path) > 1:
            # A struct without fields is none.
            children = _without(item.children, path[1:])
            if children:
                kept.append(replace(item, children=children))
    return tuple(kept)


def _renamed(item: Field, names: Mapping[int, str]) -> Field:
    children = tuple(_renamed(child, names) for child in item.children)
    check_names(children, repr(item.name))
    return replace(item, name=names.get(item.id, item.name), children=children)


def check_names(fields: Sequence[Field], where: str) -> None:
    """InvalidInput where two fields of one place, which is told by ``where``, would have one name."""
    seen: set[str] = set()
    for item in fields:
        if item.name in seen:
            raise InvalidInput(f"{where} would have two fields {item.name!r}", column=item.name)
        seen.add(item.name)


def _names(fields: Sequence[Field]) -> list[str]:
    return [item.name for item in fields]
