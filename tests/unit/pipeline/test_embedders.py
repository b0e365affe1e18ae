"""Embedders: models of one's own are loaded once, get values in batches, and are held to what was declared."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelet
from lancelet.errors import InvalidInput, NotFound
from lancelet.pipeline import Embed, open_embedder
from lancelet.pipeline.embedders import Embedder, save_text_model
from lancelet.pipeline.references import code_of, resolved
from lancelet.pipeline.text_model import TextModel

VALUES = pa.array([f"text {at}" for at in range(5)])
loads: list[int] = []


def lengths(values: list[str]) -> Any:
    assert len(values) <= 2
    return [[len(value), 1.0] for value in values]


def load_lengths() -> Any:
    loads.append(1)
    return lengths


def embedder(**changes: Any) -> Embedder:
    embed = Embed(column="text", into="vector", dimension=2, batch_size=2)
    usual: dict[str, Any] = {"embed": embed, "code": "here", "uri": "memory://t"}
    return Embedder(**{**usual, **changes})


def test_a_model_is_loaded_once_in_a_process_and_gets_batches() -> None:
    for _ in range(2):
        travelled = pickle.loads(pickle.dumps(embedder(load=load_lengths)))
        np.testing.assert_array_equal(travelled.vectors(VALUES), [[6, 1]] * 5)
    assert loads == [1]
    assert embedder(function=lengths).vectors(VALUES[:0]).shape == (0, 2)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda values: [[1.0]] * len(values), r"array of shape \(2, 1\) of 2 values, expected \(2, 2\)"),
        (lambda _: [[1.0, 2.0]], r"array of shape \(1, 2\) of 2 values, expected \(2, 2\)"),
        (lambda values: [[1.0, float("nan")]] * len(values), "values that are not finite"),
    ],
)
def test_vectors_that_are_not_as_declared_are_refused(model: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        embedder(function=model).vectors(VALUES)


def test_a_sentence_transformer_is_one_line_of_the_declaration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embed = Embed(column="text", into="vector", model="sentence-transformers:small", dimension=2, batch_size=2)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(NotFound, match="sentence-transformers is not installed; pip install"):
        embedder(embed=embed, code="small").vectors(VALUES)
    # What the library's class looks like, which is large and needs a network.
    (tmp_path / "sentence_transformers.py").write_text(
        "class SentenceTransformer:\n"
        "    def __init__(self, name): self.name = name\n"
        "    def encode(self, texts, batch_size, normalize_embeddings, show_progress_bar):\n"
        "        return [[len(self.name), batch_size] for _ in texts]\n"
    )
    np.testing.assert_array_equal(embedder(embed=embed, code="small").vectors(VALUES), [[5, 2]] * 5)


def test_the_model_of_a_column_is_found_by_its_metadata(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 0.0], pa.float32()), 2)
    field = pa.field("vector", vectors.type, metadata={"lancelet.embedder": "_lancelet/m.lance"})
    lancelet.write_dataset(pa.table([["x"], vectors], pa.schema([("text", pa.string()), field])), place)
    model = TextModel(pa.array(["cat", "dog"]), np.ones(2, np.float32), np.eye(2, dtype=np.float32))
    save_text_model(model, place, "_lancelet/m.lance")
    np.testing.assert_array_equal(open_embedder(place).embed(["dog"]), [[0, 1]])
    with pytest.raises(NotFound, match="there is no column 'v'"):
        open_embedder(place, "v")
    with pytest.raises(InvalidInput, match="does not tell which text model"):
        open_embedder(place, "text")


def test_functions_are_found_beside_the_declaration_and_told_apart_by_their_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "lancelet_test_functions.py").write_text("def one(x):\n    return x\n\ndef two(x):\n    return 2 * x\n")
    one, two = "lancelet_test_functions:one", "lancelet_test_functions:two"
    assert resolved(two, str(tmp_path))(3) == 6
    assert code_of(one) != code_of(two)
    for reference, kind, message in (
        ("nothing", InvalidInput, "'nothing' names no function; write module:function"),
        ("no_such_module:x", NotFound, "there is no module 'no_such_module'"),
        ("lancelet_test_functions:x", NotFound, "has no function 'x'"),
    ):
        with pytest.raises(kind, match=message):
            resolved(reference)
