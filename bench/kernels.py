"""Each kernel against its NumPy twin, and against a memcpy of as many bytes as it puts out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from bench.harness import Case
from lancelet import kernels

Array = NDArray[np.generic]
VALUES = 2**20


def cases() -> Iterator[Case[Array]]:
    """The kernels at sizes of a typical page."""
    for dtype, width in ((np.uint8, 3), (np.uint16, 9), (np.uint32, 10), (np.uint64, 10), (np.uint64, 40)):
        yield from bit_packing(np.dtype(dtype), width)
    for item_size, length in ((2, 40), (8, 3), (8, 40)):
        yield from run_lengths(item_size, length)
    for item_size in (4, 8):
        yield from byte_streams(item_size)


def against_twin(
    name: str, module: str, output: Callable[[], Array], call: Callable[[ModuleType, Array], object], size: int
) -> Case[Array]:
    """A case over all variants, where ``call`` fills a fresh output array."""

    def contender(variant: str) -> Callable[[Array], object]:
        kernel = kernels.load(variant)[module]

        def run(out: Array) -> object:
            call(kernel, out)
            return out

        return run

    source = np.ones(size, np.uint8)

    def memcpy(out: Array) -> object:
        np.copyto(out.view(np.uint8)[:size], source)
        return out

    def fresh(_: int) -> Array:
        out = output()
        out[...] = 0  # touched before the time is taken: page faults are not what a kernel case asks about
        return out

    contenders: Mapping[str, Callable[[Array], object]] = {name: contender(name) for name in kernels.variants()}
    return Case(name, fresh, contenders, "reference", size, {"memcpy": memcpy})


def bit_packing(dtype: np.dtype[np.unsignedinteger], width: int) -> Iterator[Case[Array]]:
    """Pack, unpack and look up values of so many bits."""
    limit = np.uint64(2**width - 1)
    values = (np.random.default_rng(0).integers(0, 2**64, VALUES, np.uint64) & limit).astype(dtype)
    blocks = VALUES // 1024
    widths, starts = np.full(blocks, width, np.uint8), np.arange(blocks) * 128 * width
    packed = np.zeros(blocks * 128 * width, np.uint8)
    kernels.bitpack.pack_blocks(values, widths, packed)
    counts, where = np.full(blocks, 1024), np.random.default_rng(1).integers(0, VALUES, 10_000)
    block, index = where // 1024, where % 1024

    def whole() -> Array:
        return np.empty(VALUES, dtype)

    what = f"{dtype.name} at {width} bits"
    yield against_twin(
        f"unpack {what}",
        "bitpack",
        whole,
        lambda kernel, out: kernel.unpack_blocks(packed, starts, widths, counts, out),
        values.nbytes,
    )
    yield against_twin(
        f"look up 10,000 {what}",
        "bitpack",
        lambda: np.empty(10_000, dtype),
        lambda kernel, out: kernel.unpack_at(packed, starts, widths, block, index, out),
        10_000 * dtype.itemsize,
    )
    yield against_twin(
        f"pack {what}",
        "bitpack",
        lambda: np.empty(len(packed), np.uint8),
        lambda kernel, out: kernel.pack_blocks(values, widths, out),
        len(packed),
    )


def run_lengths(item_size: int, length: int) -> Iterator[Case[Array]]:
    """Repeat runs of about so many values in chunks of 4096."""
    random = np.random.default_rng(0)
    lines = np.zeros((VALUES, item_size), np.uint8)
    lines[:, 0] = np.repeat(np.arange(VALUES) % 256, random.geometric(1 / length, VALUES))[:VALUES]
    values, bounds = lines.reshape(-1), np.arange(0, VALUES + 1, 4096)
    run_values, lengths, found = kernels.runs.find_runs(values, item_size, bounds)
    begins, data = np.cumsum(found) - found, np.concatenate([run_values, lengths])
    chunks = begins * item_size, found * item_size, len(run_values) + begins, found
    yield against_twin(
        f"expand runs of {length} values of {item_size} bytes",
        "runs",
        lambda: np.empty_like(values),
        lambda kernel, out: kernel.expand_runs(data, *chunks, np.diff(bounds), item_size, out),
        len(values),
    )


def byte_streams(item_size: int) -> Iterator[Case[Array]]:
    """Split and merge chunks of 512 values."""
    values = np.random.default_rng(0).integers(0, 256, VALUES * item_size, np.uint8)
    counts = np.full(VALUES // 512, 512)
    starts = (np.cumsum(counts) - counts) * item_size
    yield against_twin(
        f"split values of {item_size} bytes",
        "split",
        lambda: np.empty_like(values),
        lambda kernel, out: kernel.split_bytes(values, item_size, counts, out),
        len(values),
    )
    yield against_twin(
        f"merge values of {item_size} bytes",
        "split",
        lambda: np.empty_like(values),
        lambda kernel, out: kernel.merge_bytes(values, starts, counts, item_size, out),
        len(values),
    )
