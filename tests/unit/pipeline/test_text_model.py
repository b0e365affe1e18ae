"""The built-in text model: terms, weights and places, and vectors that are near where texts are about the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lancelet.pipeline.embedders import load_text_model, save_text_model
from lancelet.pipeline.learning import decomposed
from lancelet.pipeline.text_model import TextModel, projected, spread
from lancelet.pipeline.text_terms import counted_terms, terms_of, weighted_terms

ANIMALS = ["cat", "dog", "fur", "paw"]
METALS = ["iron", "copper", "ore", "rust"]


def texts(count: int = 400) -> pa.Array:
    draw = np.random.default_rng(1)
    halves = [ANIMALS if at % 2 else METALS for at in range(count)]
    return pa.array([" ".join(["the", *draw.choice(half, 3)]) for half in halves])


def model(dimension: int = 3) -> TextModel:
    counts = counted_terms([texts()])
    known = counts.filter(pa.array(np.asarray(counts["texts"]) < 300))
    weights = np.log(400 / np.asarray(known["texts"])).astype(np.float32)
    share = weighted_terms(texts(), known["term"], weights)
    return TextModel(known["term"], weights, decomposed([share], len(known), dimension))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Files, file; FILES", ["file", "file", "file"]),
        ("readHTTPFile read_http_file", ["read", "http", "file", "read", "http", "file"]),
        ("a b2 class glass", ["b2", "class", "glass"]),
        ("naïve Überfälle 数据", ["naïve", "überfälle", "数据"]),
        ("", []),
        (None, []),
        ("x" * 40, []),
    ],
)
def test_texts_are_taken_apart_into_terms(text: str | None, terms: list[str]) -> None:
    assert terms_of(pa.array([text], pa.string()))[0].to_pylist() == terms


def test_terms_are_counted_once_for_each_text() -> None:
    counts = counted_terms([pa.array(["cat cat dog", "dog"]), pa.array([None, "dog bird"], pa.string())])
    assert dict(zip(counts["term"].to_pylist(), counts["texts"].to_pylist(), strict=True)) == {
        "cat": 1,
        "dog": 3,
        "bird": 1,
    }
    assert counted_terms([]).num_rows == 0


def test_projection_and_its_transposition_are_those_of_the_matrix() -> None:
    known = pa.array([*ANIMALS, *METALS])
    share = weighted_terms(texts(50), known, np.ones(8, np.float32))
    places, weights, starts = share
    matrix = np.zeros((50, 8), np.float32)
    matrix[np.repeat(np.arange(50), np.diff(np.append(starts, len(places)))), places] = weights
    draw = np.random.default_rng(2)
    right, left = draw.standard_normal((8, 5)).astype(np.float32), draw.standard_normal((50, 5)).astype(np.float32)
    np.testing.assert_allclose(projected(share, right), matrix @ right, atol=1e-5)
    np.testing.assert_allclose(spread(share, left, 8), matrix.T @ left, atol=1e-5)


def test_texts_about_the_same_are_near_also_without_a_word_in_common() -> None:
    found = model(2).embed(["cat fur", "dog paw", "iron ore", "copper rust", "nothing known", ""])
    alike = found @ found.T
    assert alike[0, 1] > 0.5 > alike[0, 2]
    assert alike[2, 3] > 0.5 > alike[1, 3]
    assert not found[4:].any()
    np.testing.assert_allclose(np.linalg.norm(found[:4], axis=1), 1, atol=1e-5)


def test_more_dimensions_than_terms_are_filled_with_zeros() -> None:
    assert model(64).embed(["cat"]).shape == (1, 64)


def test_a_saved_model_makes_the_same_vectors() -> None:
    made = model()
    save_text_model(made, "memory://model", "m.lance")
    again = load_text_model("memory://model", "m.lance")
    np.testing.assert_array_equal(made.embed(["a cat", "iron"]), again.embed(["a cat", "iron"]))
