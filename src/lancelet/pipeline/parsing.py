"""Reading declarations from YAML: what is unknown, missing or of another kind is refused by its place in the file."""

from __future__ import annotations

import difflib
import os
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from lancelet.errors import InvalidInput, LanceletError, NotFound
from lancelet.pipeline.declaration import Pipeline
from lancelet.pipeline.declared_sources import Source

__all__ = ["load", "loads"]

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
#: The field by which each kind of source is known, in the order in which they are told.
_SOURCES = {next(iter(fields(kind))).name: kind for kind in get_args(Source)}
_KINDS = {"str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false"}


def load(path: str | os.PathLike[str]) -> Pipeline:
    """The pipeline that a YAML file declares; paths and functions in it are looked for from its folder on.

    Texts may hold ``${NAME}`` or ``${NAME:-default}``: variables of the environment.
    """
    place = Path(path)
    try:
        text = place.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFound("there is no declaration of a pipeline", uri=str(place)) from None
    return replace(loads(text, name=str(place)), folder=str(place.resolve().parent))


def loads(text: str, *, name: str = "<text>") -> Pipeline:
    """The pipeline that a YAML text declares; ``name`` is what errors call it.

    >>> loads('''
    ... name: items
    ... source: {files: "/data/*.json", format: json}
    ... write: {table: /data/items.lance}
    ... ''').write.mode
    'sync'
    >>> loads('''name: items
    ... source: {files: "/data/*.json", fromat: json}
    ... ''')
    Traceback (most recent call last):
    lancelet.errors.InvalidInput: source.fromat is unknown [uri=<text>:2:33]; did you mean format?
    """
    yaml: Any = _yaml()
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = name if mark is None else f"{name}:{mark.line + 1}:{mark.column + 1}"
        problem = " ".join(str(getattr(error, "problem", error)).split())
        raise InvalidInput(f"the declaration is no YAML: {problem}", uri=where) from None
    if node is None:
        raise InvalidInput("the declaration is empty", uri=name, hint="it has name, source and write")
    return _Reader(name).read(node, Pipeline, "")  # type: ignore[no-any-return]


def _yaml() -> Any:
    try:
        return import_module("yaml")
    except ModuleNotFoundError:
        raise NotFound("PyYAML is not installed", hint="pip install 'lancelet[pipeline]'") from None


@lru_cache(maxsize=32)
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


class _Reader:
    """Makes values of the types that declarations have out of nodes, each with its line and column."""

    def __init__(self, file: str) -> None:
        self._file = file

    def read(self, node: Any, kind: Any, path: str) -> Any:
        """A node as a value of a type; ``path`` is what errors call it."""
        origin, inner = get_origin(kind), get_args(kind)
        if kind == Source:
            return self._source(node, path)
        if origin in (Union, types.UnionType):
            return self._one_of(node, inner, path)
        if origin is tuple:
            items = node.value if self._shape(node) == "a list" else [node]
            return tuple(self.read(item, inner[0], f"{path}[{at}]") for at, item in enumerate(items))
        if origin is not None and issubclass(origin, Mapping):
            pairs = self._pairs(node, path)
            return {name: self.read(value, inner[1], f"{path}.{name}") for name, (_, value) in pairs.items()}
        if is_dataclass(kind):
            return self._made(node, kind, path)
        return self._scalar(node, kind, path)

    def _source(self, node: Any, path: str) -> Any:
        named = [name for name in self._pairs(node, path) if name in _SOURCES]
        if len(named) != 1:
            found = f"{path} has {' and '.join(named)}" if named else f"{path} says nowhere to read from"
            raise self._error(node, found, f"give one of {', '.join(_SOURCES)}")
        return self._made(node, _SOURCES[named[0]], path)

    def _one_of(self, node: Any, kinds: tuple[Any, ...], path: str) -> Any:
        if types.NoneType in kinds and self._is_null(node):
            return None
        listed = [kind for kind in kinds if get_origin(kind) is tuple]
        if listed and self._shape(node) == "a list":
            return self.read(node, listed[0], path)
        return self.read(node, next(kind for kind in kinds if kind is not types.NoneType), path)

    def _made(self, node: Any, kind: Any, path: str) -> Any:
        known = {item.name: item for item in fields(kind) if not (kind is Pipeline and item.name == "folder")}
        given: dict[str, Any] = {}
        for name, (key, value) in self._pairs(node, path).items():
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"
                raise self._error(key, f"{_under(path, name)} is unknown", hint)
            if not (self._is_null(value) and _has_default(known[name])):
                given[name] = self.read(value, _hints(kind)[name], _under(path, name))
            elif is_dataclass(_optional(_hints(kind)[name])):
                # ``compact:`` alone means the step with nothing said about it.
                given[name] = _optional(_hints(kind)[name])()
        missing = [name for name, item in known.items() if name not in given and not _has_default(item)]
        if missing:
            raise self._error(node, f"{_under(path, missing[0])} is missing", None)
        try:
            return kind(**given)
        except InvalidInput as error:
            message = f"{path}: {error.message}" if path else error.message
            raise self._error(node, message, error.hint) from None

    def _pairs(self, node: Any, path: str) -> dict[str, tuple[Any, Any]]:
        if self._shape(node) != "a mapping":
            raise self._error(node, f"{path or 'the declaration'} is {self._shown(node)}, expected a mapping", None)
        found: dict[str, tuple[Any, Any]] = {}
        for key, value in node.value:
            name = str(key.value)
            if name in found:
                raise self._error(key, f"{_under(path, name)} is given twice", None)
            found[name] = (key, value)
        return found

    def _scalar(self, node: Any, kind: Any, path: str) -> Any:
        if self._shape(node) != "a value":
            wanted = _KINDS.get(getattr(kind, "__name__", ""), "one value")
            raise self._error(node, f"{path} is {self._shape(node)}, expected {wanted}", None)
        tag = node.tag.rpartition(":")[2]
        text = self._expanded(node, path)
        if kind is object:
            known: dict[str, Callable[[str], object]] = {"int": int, "float": float, "bool": _truth}
            return known.get(tag, str)(text)
        if kind is str and tag != "null":
            # Numbers and truths where a text belongs are meant as they are written.
            return text
        if kind in (int, float) and tag in ("int", "float"[: 5 * (kind is float)]):
            try:
                return kind(text.replace("_", ""))
            except ValueError:
                pass
        if kind is bool and tag == "bool":
            return _truth(text)
        wanted = _KINDS.get(getattr(kind, "__name__", ""), "a value")
        raise self._error(node, f"{path} is {self._shown(node)}, expected {wanted}", None)

    def _expanded(self, node: Any, path: str) -> str:
        def value(match: re.Match[str]) -> str:
            found = os.environ.get(match[1], match[2])
            if found is None:
                hint = "set it, or write ${" + match[1] + ":-default}"
                raise self._error(node, f"{path} needs the variable {match[1]}, which the environment lacks", hint)
            return found

        return _VARIABLE.sub(value, node.value)

    @staticmethod
    def _is_null(node: Any) -> bool:
        return bool(node.tag.endswith(":null"))

    @staticmethod
    def _shape(node: Any) -> str:
        return {"MappingNode": "a mapping", "SequenceNode": "a list"}.get(type(node).__name__, "a value")

    def _shown(self, node: Any) -> str:
        if self._is_null(node):
            return "empty"
        return repr(node.value) if self._shape(node) == "a value" else self._shape(node)

    def _error(self, node: Any, message: str, hint: str | None) -> LanceletError:
        mark = node.start_mark
        return InvalidInput(message, uri=f"{self._file}:{mark.line + 1}:{mark.column + 1}", hint=hint)


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _truth(text: str) -> bool:
    return text.lower() in ("true", "yes", "on")


def _has_default(item: Any) -> bool:
    return item.default is not MISSING or item.default_factory is not MISSING


def _optional(kind: Any) -> Any:
    """The type that may also be missing."""
    inner = [item for item in get_args(kind) if item is not types.NoneType]
    return inner[0] if types.NoneType in get_args(kind) and len(inner) == 1 else None
