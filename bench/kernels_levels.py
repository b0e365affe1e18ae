"""Levels to structure and back, chunks and gathering: each kernel against its NumPy twin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np

from bench.harness import Case
from lancelet import kernels
from lancelet.kernels.layers import Items, Lists

VALUES = 2**20
LISTS = 2**17


def cases() -> Iterator[Case[None]]:
    """The kernels at the size of a large page."""
    random = np.random.default_rng(0)
    nulls = np.packbits(random.random(VALUES) > 0.1, bitorder="little")
    yield from structure("nullable values", [Items(VALUES, nulls)])
    lengths = random.integers(0, 16, LISTS)
    for what, sizes in (("lists", lengths + 1), ("lists, some empty", lengths)):
        offsets = np.append(0, np.cumsum(sizes))
        bits = np.packbits(random.random(offsets[-1]) > 0.1, bitorder="little")
        yield from structure(what, [Items(int(offsets[-1])), Lists(offsets)])
        yield from structure(f"{what}, of nullable values", [Items(int(offsets[-1]), bits), Lists(offsets)])
    yield from variable(random)
    yield from chunks()


def across(name: str, module: str, call: Callable[[ModuleType], object], size: int) -> Case[None]:
    """A case over all variants; results are compared as the text of their parts."""

    def contender(variant: str) -> Callable[[None], object]:
        kernel = kernels.load(variant)[module]
        return lambda _: call(kernel)

    contenders = {variant: contender(variant) for variant in kernels.variants()}
    return Case(name, lambda _: None, contenders, "reference", size, compared=plain)


def plain(result: object) -> object:
    """Arrays, alone or inside of tuples, lists and layers, as bytes that can be compared."""
    if isinstance(result, np.ndarray):
        return result.tobytes()
    if isinstance(result, Items):
        return result.length, plain(result.validity)
    if isinstance(result, Lists):
        return plain(result.offsets), plain(result.validity)
    return [plain(part) for part in result] if isinstance(result, tuple | list) else result


def structure(what: str, layers: list[Items | Lists]) -> Iterator[Case[None]]:
    """Both directions; sizes are those of the levels."""
    rep, definition, codes = kernels.ravel.ravel(layers)
    size = sum(levels.nbytes for levels in (rep, definition) if levels is not None)
    yield across(f"unravel {what}", "levels", lambda kernel: kernel.unravel(rep, definition, codes), size)
    yield across(f"ravel {what}", "ravel", lambda kernel: kernel.ravel(layers), size)


def variable(random: np.random.Generator) -> Iterator[Case[None]]:
    """Strings of 0 to 31 bytes."""
    offsets = np.append(0, np.cumsum(random.integers(0, 32, VALUES))).astype(np.int32)
    data = random.integers(0, 256, int(offsets[-1])).astype(np.uint8)
    bounds = np.arange(0, VALUES + 1, 128)
    split, starts, sizes = kernels.variable.split_variable(offsets, data, bounds, 32)
    counts = np.diff(bounds)
    out_offsets, out = np.empty_like(offsets), np.empty_like(data)
    indices = random.integers(0, VALUES, 100_000)

    def join(kernel: ModuleType) -> object:
        kernel.variable_chunks(split, starts, sizes, counts, 32, out_offsets, out)
        return out_offsets, out

    yield across("join chunks of strings", "variable", join, data.nbytes)
    yield across(
        "split strings into chunks", "variable", lambda k: k.split_variable(offsets, data, bounds, 32), data.nbytes
    )
    yield across("take 100,000 strings", "gather", lambda k: k.take_variable(offsets, data, indices), 0)


def chunks() -> Iterator[Case[None]]:
    """Pages of one value buffer in chunks of 4 KiB, with definition levels of 128 bytes."""
    count = 2048
    values, levels = np.ones(4096 * count, np.uint8), np.ones(128 * count, np.uint8)
    pieces = [
        (buffer, np.arange(count) * size, np.full(count, size)) for buffer, size in ((levels, 128), (values, 4096))
    ]
    logs = np.append(np.full(count - 1, 10), 0).astype(np.uint8)
    num_levels = np.full(count, 1024)
    words, page = kernels.miniblock.assemble(pieces[:1], pieces[1:], num_levels, logs, True)
    starts, sizes, _ = kernels.miniblock.chunk_table(words, True, count * 1024, len(page))
    yield across(
        "assemble chunks", "miniblock", lambda k: k.assemble(pieces[:1], pieces[1:], num_levels, logs, True), len(page)
    )
    yield across(
        "read chunk headers", "miniblock", lambda k: k.chunk_headers(page, starts, sizes, False, True, 1, True), 0
    )
