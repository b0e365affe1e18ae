"""Datasets of the instances of a pydantic model."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import Enum
from importlib import import_module
from typing import Any, Self

import pyarrow as pa

from lancelet.dataset.core import DatasetCore
from lancelet.dataset.writing import WriteRequest, write_rows
from lancelet.errors import InvalidInput, NotFound

__all__ = ["DatasetModels"]

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


class DatasetModels(DatasetCore):
    """What makes datasets of models."""

    @classmethod
    def from_pydantic_model(
        cls,
        model_class: type,
        data: list[Any],
        uri: str | os.PathLike[str] | None = None,
        mode: str = "create",
        **kwargs: Any,
    ) -> Self:
        """Write instances of a pydantic model, whose annotations give the schema; the options of ``write_dataset``.

        Without a ``uri`` it is the model's name in letters that are small, ``my_item`` for ``MyItem``.

        >>> import lancelet, pydantic
        >>> class Item(pydantic.BaseModel):
        ...     id: int
        ...     label: str | None = None
        >>> made = lancelet.LanceDataset.from_pydantic_model(Item, [Item(id=1), Item(id=2)], "memory://models")
        >>> made.schema
        id: int64 not null
        label: string
        """
        schema = _schema_of(model_class)
        if not isinstance(data, list):
            raise TypeError(f"data must be a list of {model_class.__name__}, got {type(data).__name__}")
        odd = next((place for place, item in enumerate(data) if type(item) is not model_class), None)
        if odd is not None:
            found = f"data[{odd}] is of {type(data[odd]).__name__}"
            raise TypeError(f"{found}, expected {model_class.__name__} itself and no class derived from it")
        if not data:
            raise InvalidInput("there are no instances of the model", hint="give at least one")
        table = pa.Table.from_pylist([_plain(item.model_dump()) for item in data], schema=schema)
        target = _CAPITAL.sub("_", model_class.__name__).lower() if uri is None else uri
        return cls._open(*write_rows(table, target, WriteRequest(mode=mode, **kwargs)))


def _schema_of(model: object) -> pa.Schema:
    try:
        module = import_module("lancelet.pydantic")
    except ModuleNotFoundError as error:
        if error.name not in ("pydantic", "pydantic_core"):
            raise
        raise NotFound("pydantic is not installed", hint="pip install 'lancelet[pydantic]'") from None
    if not (isinstance(model, type) and issubclass(model, module.BaseModel)):
        raise TypeError(f"model_class must be a class derived from pydantic.BaseModel, got {model!r}")
    return module.pydantic_to_schema(model)


def _plain(value: object) -> object:
    """A value as Arrow takes it: members of enumerations are their values."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        # Vectors, which hold numbers alone, are many.
        return value if value and isinstance(value[0], float) else [_plain(item) for item in value]
    return value
