"""Embedders: what makes vectors of values, loaded once in each process, wherever the process runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.errors import InvalidInput, NotFound
from lancelet.file import LanceFileSession
from lancelet.format.arrow import schema_to_arrow
from lancelet.pipeline.declaration import TRANSFORMERS, Embed
from lancelet.pipeline.text_model import TextModel
from lancelet.spark.address import Address

__all__ = ["EMBEDDER", "Embedder", "load_text_model", "model_path", "open_embedder", "save_text_model"]

#: In the metadata of a column of vectors: which model made them, as a path within the table.
EMBEDDER = "lancelet.embedder"
Floats = npt.NDArray[np.float32]
#: What was loaded in this process, by what tells models apart.
_loaded: dict[str, Callable[[Any], Any]] = {}


@dataclass(frozen=True, slots=True)
class Embedder:
    """Which model makes vectors, in a form that travels to workers; it is loaded where it is first used."""

    embed: Embed
    #: What tells the model from others.
    code: str
    #: The table, and the path of the built-in model in it.
    uri: str
    path: str | None = None
    function: Callable[[Any], Any] | None = None
    load: Callable[[], Callable[[Any], Any]] | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def vectors(self, values: pa.Array) -> Floats:
        """A vector for each of the values, of which none is null."""
        if self.path is not None:
            return load_text_model(self.uri, self.path, tuple(sorted(self.storage_options.items()))).embed(values)
        model, size = self._model(), self.embed.batch_size
        parts = [self._checked(model, values.slice(at, size).to_pylist()) for at in range(0, len(values), size)]
        return np.concatenate(parts) if parts else np.zeros((0, self.embed.dimension), np.float32)

    def _model(self) -> Callable[[Any], Any]:
        if self.function is not None:
            return self.function
        if self.code not in _loaded:
            _loaded[self.code] = self.load() if self.load is not None else _transformer(self.embed)
        return _loaded[self.code]

    def _checked(self, model: Callable[[Any], Any], values: list[object]) -> Floats:
        made = np.asarray(model(values), np.float32)
        expected = (len(values), self.embed.dimension)
        if made.shape != expected:
            hint = "set the dimension of the embedding, or make the model return a vector for each value"
            found = f"the model made an array of shape {made.shape} of {len(values)} values, expected {expected}"
            raise InvalidInput(found, column=self.embed.into, hint=hint)
        if not np.isfinite(made).all():
            raise InvalidInput("the model made vectors with values that are not finite", column=self.embed.into)
        return made


def _transformer(embed: Embed) -> Callable[[Any], Any]:
    try:
        library: Any = import_module("sentence_transformers")
    except ModuleNotFoundError:
        hint = "pip install sentence-transformers, also where Spark's workers run"
        raise NotFound("sentence-transformers is not installed", hint=hint) from None
    model = library.SentenceTransformer(embed.model.removeprefix(TRANSFORMERS))

    def run(texts: list[str]) -> Any:
        return model.encode(texts, batch_size=embed.batch_size, normalize_embeddings=True, show_progress_bar=False)

    return run


def model_path(pipeline: str, embed: Embed) -> str:
    """Where the built-in model lies in its table: another one for another declaration."""
    said = f"{embed.column} {embed.into} {embed.dimension} {embed.vocabulary} {embed.sample}"
    return f"_lancelet/pipelines/{pipeline}/text-{hashlib.sha256(said.encode()).hexdigest()[:12]}.lance"


def save_text_model(model: TextModel, uri: str, path: str, storage_options: Mapping[str, str] | None = None) -> None:
    """Write a model as a data file within its table, which other implementations and cleanups leave alone."""
    table = model.table()
    with LanceFileSession(uri, storage_options).open_writer(path, schema=table.schema) as writer:
        writer.write_batch(table)


@lru_cache(maxsize=8)
def load_text_model(uri: str, path: str, storage_options: tuple[tuple[str, str], ...] = ()) -> TextModel:
    """A model that was saved; once in each process."""
    return TextModel.of(LanceFileSession(uri, dict(storage_options)).open_reader(path).read_all().to_table())


def open_embedder(uri: str, column: str = "vector", *, storage_options: Mapping[str, str] | None = None) -> TextModel:
    """The built-in model that made a table's column of vectors, to make those of questions.

    query = open_embedder("/data/docs.lance").embed(["how do I retry a request"])[0]
    """
    address = Address(uri=uri, storage_options=dict(storage_options or {})).absolute()
    schema = schema_to_arrow(address.open().schema)
    if column not in schema.names:
        raise NotFound(f"there is no column {column!r}", uri=uri, hint=f"there are: {', '.join(schema.names)}")
    path = (schema.field(column).metadata or {}).get(EMBEDDER.encode())
    if path is None:
        hint = "make the query's vector with the model that made the column's"
        raise InvalidInput("the column does not tell which text model made its vectors", column=column, hint=hint)
    return load_text_model(address.uri, path.decode(), tuple(sorted(address.storage_options.items())))
