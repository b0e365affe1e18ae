"""Distances of vectors: every variant comes to the twin's result but for the last bits, and refuses the same input."""

from __future__ import annotations

import numpy as np
import pytest

from lancelet.errors import InvalidInput
from lancelet.kernels.reference import distances as twin

SIZES = (1, 3, 7, 8, 15, 16, 17, 31, 33, 128, 1000)
FUNCTIONS = ("squared_l2", "dot_products", "cosine")


def vectors(size: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(size)
    rows = draw.standard_normal((29, size)).astype(dtype)
    rows[3] = 0
    rows[4, size // 2] = np.nan
    rows[5, 0] = np.inf
    rows[6] = -np.inf
    return rows, draw.standard_normal(size).astype(dtype)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_distances_are_those_of_the_twin(modules, function, dtype, size):
    rows, query = vectors(size, dtype)
    found, expected = np.zeros((2, len(rows)), np.float32)
    getattr(modules["distances"], function)(rows.ravel(), query, found)
    getattr(twin, function)(rows.ravel(), query, expected)
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-5, equal_nan=True)
    exact = np.zeros(len(rows), np.float32)
    getattr(twin, function)(rows.astype("f8").ravel(), query.astype("f8"), exact)
    assert np.allclose(found, exact, rtol=1e-4, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("size", SIZES)
def test_bits_that_differ_are_counted(modules, size):
    draw = np.random.default_rng(size)
    rows = draw.integers(0, 256, (23, size), np.uint8)
    rows[0], query = 255, draw.integers(0, 256, size, np.uint8)
    found, expected = np.zeros((2, len(rows)), np.float32)
    modules["distances"].hamming(rows.ravel(), query, found)
    twin.hamming(rows.ravel(), query, expected)
    assert np.array_equal(found, expected)
    assert found[0] == np.unpackbits(~query).sum()


def test_every_half_is_widened(modules):
    halves = np.arange(2**16, dtype=np.uint16)
    out = np.zeros(2**16, np.float32)
    modules["distances"].widen_halves(halves, out)
    assert np.array_equal(out, halves.view(np.float16).astype(np.float32), equal_nan=True)
    assert np.array_equal(np.signbit(out), halves >= 2**15)


@pytest.mark.parametrize("function", [*FUNCTIONS, "hamming"])
def test_values_that_are_no_vectors_of_the_querys_size_are_refused(modules, function):
    dtype = np.uint8 if function == "hamming" else np.float32
    for kernel in (modules["distances"], twin):
        with pytest.raises(InvalidInput, match="values"):
            getattr(kernel, function)(np.zeros(7, dtype), np.ones(2, dtype), np.zeros(3, np.float32))
        getattr(kernel, function)(np.zeros(0, dtype), np.ones(2, dtype), np.zeros(0, np.float32))
