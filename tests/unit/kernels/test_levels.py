"""Levels against a model that walks nested Python values row by row, in every variant of the kernels."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancelet.errors import Corrupt, InvalidInput
from lancelet.kernels import load, variants
from lancelet.kernels.layers import Items, Lists, structure

VARIANTS = variants()
Kernels = Mapping[str, ModuleType]


@pytest.fixture(params=VARIANTS, scope="module")
def kernels(request: pytest.FixtureRequest) -> Kernels:
    return load(request.param)


# A column is a tuple of layers from the outside in; "v" (the values) comes last.
shapes = st.lists(st.sampled_from("ls"), max_size=4).map(lambda layers: (*layers, "v"))


def values_of(shape: tuple[str, ...]) -> st.SearchStrategy[Any]:
    kind, inner = shape[0], shape[1:]
    if kind == "v":
        return st.one_of(st.none(), st.integers(0, 9))
    if kind == "s":
        return st.one_of(st.none(), st.fixed_dictionaries({"f": values_of(inner)}))
    return st.one_of(st.none(), st.lists(values_of(inner), max_size=4))


@st.composite
def columns(draw: st.DrawFn) -> tuple[tuple[str, ...], list[Any]]:
    shape = draw(shapes)
    return shape, draw(st.lists(values_of(shape), max_size=12))


def arrow_type(shape: tuple[str, ...], large: bool) -> pa.DataType:
    if shape[0] == "v":
        return pa.int32()
    inner = arrow_type(shape[1:], large)
    if shape[0] == "s":
        return pa.struct([("f", inner)])
    return pa.large_list(inner) if large else pa.list_(inner)


def layers_of(array: pa.Array) -> list[Items | Lists]:
    """Innermost first. Arrow's builders leave null lists and lists in null structs without entries."""
    bitmap = array.buffers()[0]
    validity = None if bitmap is None else np.frombuffer(bitmap, np.uint8)
    if isinstance(array, pa.ListArray | pa.LargeListArray):
        layer: Items | Lists = Lists(array.offsets.to_numpy(), validity, array.null_count, array.offset)
        return [*layers_of(array.values), layer]
    items = Items(len(array), validity, -1, array.offset)
    return [*layers_of(array.field(0)), items] if isinstance(array, pa.StructArray) else [items]


def shredded(shape: tuple[str, ...], rows: list[Any], codes: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """The model: levels of each row by recursion over the layers."""
    facts = structure(codes)
    rep: list[int] = []
    definition: list[int] = []

    def emit(level: int, d: int) -> None:
        rep.append(level)
        definition.append(d)

    def walk(value: Any, at: int, level: int) -> None:
        layer = len(codes) - 1 - at
        if value is None:
            emit(level, facts.below[layer] + 1)
        elif shape[at] == "v":
            emit(level, 0)
        elif shape[at] == "s":
            walk(value["f"], at + 1, level)
        elif not value:
            emit(level, facts.below[layer] + (2 if codes[layer] == 6 else 1))
        else:
            for i, item in enumerate(value):
                walk(item, at + 1, facts.depth[layer] if i else level)

    for row in rows:
        walk(row, 0, facts.max_rep)
    return rep, definition


def as_bools(layer: Items | Lists) -> list[bool]:
    if layer.validity is None:
        return [True] * layer.length
    bits = np.unpackbits(layer.validity, count=layer.bit_offset + layer.length, bitorder="little")
    return bits[layer.bit_offset :].astype(bool).tolist()


@pytest.mark.parametrize("large", [False, True])
@settings(max_examples=150)
@given(column=columns())
def test_levels_of_nested_values_are_those_of_the_model_and_give_the_structure_back(
    kernels: Kernels, large: bool, column: tuple[tuple[str, ...], list[Any]]
) -> None:
    shape, rows = column
    layers = layers_of(pa.array(rows, arrow_type(shape, large)))
    rep, definition, codes = kernels["ravel"].ravel(layers)
    expected_rep, expected_def = shredded(shape, rows, codes)
    facts = structure(codes)
    assert (rep is None) == (facts.max_rep == 0)
    assert (definition is None) == (facts.max_def == 0)
    if rep is not None:
        assert rep.tolist() == expected_rep
    if definition is not None:
        assert definition.tolist() == expected_def
    visible = sum(d <= facts.visible[0] for d in expected_def)
    again = kernels["levels"].unravel(rep, definition, codes, num_items=visible)
    around = None
    for found, given_ in zip(reversed(again), reversed(layers), strict=True):
        valid = np.array(as_bools(given_), dtype=bool)
        if around is not None:
            valid &= around
        assert as_bools(found) == valid.tolist()
        assert found.null_count == len(valid) - valid.sum()
        assert (found.validity is None) == (found.null_count == 0)
        assert found.length == given_.length
        if isinstance(found, Lists):
            assert isinstance(given_, Lists)
            assert found.offsets.tolist() == given_.offsets.tolist()
        around = valid if isinstance(found, Items) else None


@pytest.mark.parametrize("length", [0, 1, 7, 8, 15, 16, 17, 31, 33, 1000, 16384, 16385, 70000])
@pytest.mark.parametrize("bit_offset", [0, 3, 8, 13])
def test_nullable_values_of_any_length_and_bit_offset_come_back(kernels: Kernels, length: int, bit_offset: int) -> None:
    valid = np.random.default_rng(length).random(length) < 0.6
    bits = np.packbits(np.append(np.zeros(bit_offset, bool), valid), bitorder="little")
    rep, definition, codes = kernels["ravel"].ravel([Items(length, bits, -1, bit_offset)])
    assert rep is None
    if valid.all():
        assert (definition, codes) == (None, (1,))
        return
    assert definition.tolist() == (~valid).tolist()
    (items,) = kernels["levels"].unravel(None, definition, codes, num_items=length)
    assert items.null_count == length - valid.sum()
    assert items.validity.tolist() == np.packbits(valid, bitorder="little").tolist()


def test_all_values_null_over_many_blocks_are_counted(kernels: Kernels) -> None:
    (items,) = kernels["levels"].unravel(None, np.ones(3 * 65536 + 5, np.uint16), (3,))
    assert items.null_count == 3 * 65536 + 5


def test_sliced_levels_may_start_at_any_address(kernels: Kernels) -> None:
    levels = np.zeros(101, np.uint16)
    levels[50] = 1
    (items,) = kernels["levels"].unravel(None, levels[1:], (3,))
    assert items.null_count == 1
    assert not items.validity[49 // 8] >> 49 % 8 & 1


u16 = np.uint16
WRONG = [
    pytest.param(None, [0, 2], (3,), None, id="definition level too high"),
    pytest.param(None, [0, 0x8000], (3,), None, id="definition level with the top bit"),
    pytest.param(None, [0, 0xFFFF] * 40, (3,), None, id="many definition levels too high"),
    pytest.param(None, [0, 1], (1,), None, id="definition level where none is called for"),
    pytest.param([1, 2], [0, 0], (3, 4), None, id="repetition level too high"),
    pytest.param([1, 0], [0, 2], (3, 4), None, id="null list where none starts"),
    pytest.param([2, 1], [0, 3], (3, 4, 4), None, id="null outer list where an inner one starts"),
    pytest.param([2, 0], [0, 3], (3, 4, 4), None, id="null outer list where none starts"),
    pytest.param([0, 1], [0, 0], (3, 4), None, id="first level inside a row"),
    pytest.param([1], [0, 0], (3, 4), None, id="arrays of different lengths"),
    pytest.param([1, 0], None, (3, 4), None, id="no definition levels"),
    pytest.param(None, [0, 1], (3, 4), None, id="no repetition levels"),
    pytest.param([0, 0], [0, 1], (3,), None, id="repetition levels without lists"),
    pytest.param([1, 0], [0, 2], (3, 7), None, id="unknown layer code"),
    pytest.param([1, 0], [0, 2], (0,), None, id="layer code 0"),
    pytest.param(None, None, (), 3, id="no layers"),
    pytest.param(None, None, (3,), 3, id="no levels at all"),
    pytest.param([1, 0, 1], [0, 1, 2], (3, 4), 3, id="other number of stored values"),
    pytest.param(None, [0, 1], (3,), 3, id="other number of values"),
]


@pytest.mark.parametrize(("rep", "definition", "codes", "num_items"), WRONG)
def test_levels_that_no_column_has_are_corrupt(
    kernels: Kernels, rep: list[int] | None, definition: list[int] | None, codes: tuple[int, ...], num_items: int | None
) -> None:
    with pytest.raises(Corrupt):
        kernels["levels"].unravel(
            None if rep is None else np.array(rep, u16),
            None if definition is None else np.array(definition, u16),
            codes,
            num_items=num_items,
        )


def test_an_empty_page_of_any_layers_is_empty(kernels: Kernels) -> None:
    values, lists, structs = kernels["levels"].unravel(None, None, (3, 6, 3), num_items=0)
    assert (values.length, lists.length, lists.offsets.tolist(), structs.length) == (0, 0, [0], 0)


random_levels = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7)), max_size=30)


@settings(max_examples=400)
@given(pairs=random_levels, codes=st.lists(st.integers(1, 6), min_size=1, max_size=4), ready=st.booleans())
def test_random_levels_give_the_same_answer_or_refusal_in_all_variants(
    pairs: list[tuple[int, int]], codes: list[int], ready: bool
) -> None:
    facts = structure(codes)
    rep = np.array([min(r, facts.max_rep) if ready else r for r, _ in pairs], u16)
    definition = np.array([d for _, d in pairs], u16)
    if ready:
        rep[:1] = facts.max_rep
        definition = np.minimum(definition, np.array(facts.visible, u16)[rep]).astype(u16)
    outcomes = []
    for variant in VARIANTS:
        try:
            given_rep = rep if facts.max_rep else None
            layers = load(variant)["levels"].unravel(given_rep, definition, codes)
        except Corrupt as error:
            outcomes.append(str(error))
        else:
            outcomes.append(
                str(
                    [(x.length, x.null_count, as_bools(x), getattr(x, "offsets", np.empty(0)).tolist()) for x in layers]
                )
            )
    assert len(set(outcomes)) == 1
    assert not ready or not outcomes[0].startswith("levels do not fit")


@pytest.mark.parametrize(
    "layers",
    [
        pytest.param([Items(3), Lists(np.array([1, 3]))], id="offsets not from 0"),
        pytest.param([Items(3), Lists(np.array([0, 4, 3]))], id="offsets fall"),
        pytest.param([Items(2), Lists(np.array([0, 3]))], id="fewer values than the lists hold"),
        pytest.param([Items(3), Lists(np.array([0, 2, 3]), np.array([1], np.uint8))], id="null list with entries"),
        pytest.param(
            [Items(1), Lists(np.array([0, 1])), Items(1, np.array([0], np.uint8))], id="entries in a null struct"
        ),
        pytest.param([Items(9, np.array([1], np.uint8))], id="validity too short"),
    ],
)
def test_structure_that_is_not_normalised_is_refused(kernels: Kernels, layers: list[Items | Lists]) -> None:
    with pytest.raises(InvalidInput):
        kernels["ravel"].ravel(layers)


def test_rows_start_at_the_highest_repetition_level(kernels: Kernels) -> None:
    rep = np.array([2, 0, 1, 2, 2, 0], u16)
    assert kernels["level_index"].row_starts(rep, 2).tolist() == [0, 3, 4]
    assert kernels["level_index"].row_starts(rep[:0], 2).tolist() == []


def cuts_of(length: int) -> st.SearchStrategy[set[int]]:
    """Places inside a sequence at which to cut it."""
    return st.sets(st.integers(1, length - 1), max_size=4) if length > 1 else st.just(set())


@given(levels=st.lists(st.integers(0, 3), max_size=40), data=st.data())
def test_chunks_of_levels_end_with_their_last_value(levels: list[int], data: st.DataObject) -> None:
    definition = np.array(levels, u16)
    visible = int((definition <= 1).sum())
    cuts = sorted(data.draw(cuts_of(visible)))
    counts = np.diff([0, *cuts, visible]).astype(np.int64) if visible else np.empty(0, np.int64)
    if not visible:
        definition = definition[:0]
    expected, values, chunk = [0], 0, 0
    for i, level in enumerate(definition):
        values += level <= 1
        if level <= 1 and chunk + 1 < len(counts) and values == counts[: chunk + 1].sum():
            expected.append(i + 1)
            chunk += 1
    if len(counts):
        expected.append(len(definition))
    for variant in VARIANTS:
        assert load(variant)["level_index"].level_bounds(definition, 1, counts).tolist() == expected


def test_chunks_that_hold_other_numbers_of_values_are_refused(kernels: Kernels) -> None:
    with pytest.raises(InvalidInput):
        kernels["level_index"].level_bounds(np.array([0, 2, 0], u16), 1, np.array([1, 2]))


@given(rest=st.lists(st.integers(0, 2), max_size=40), data=st.data())
def test_repetition_index_counts_rows_that_end_and_levels_left_over(rest: list[int], data: st.DataObject) -> None:
    rep = np.array([2, *rest], u16)
    cuts = sorted(data.draw(cuts_of(len(rep))))
    bounds = np.array([0, *cuts, len(rep)], np.int64)
    expected = []
    for first, end in pairwise(bounds):
        open_ = end < len(rep) and rep[end] != 2
        rows = sum(rep[i] == 2 for i in range(first + 1, min(end + 1, len(rep)))) + (end == len(rep))
        begun = [i for i in range(first, end) if rep[i] == 2]
        expected.append([rows, end - (begun[-1] if begun else first) if open_ else 0])
    for variant in VARIANTS:
        index = load(variant)["level_index"].repetition_index(rep, bounds, 2)
        assert index.dtype == np.uint64
        assert index.tolist() == expected


@given(
    levels=st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1, 2, 254, 255, 256, 600])), max_size=8),
    data=st.data(),
)
def test_run_lengths_of_chunks_come_back_and_are_the_same_in_all_variants(
    levels: list[tuple[int, int]], data: st.DataObject
) -> None:
    flat = np.repeat(np.array([v for v, _ in levels], u16), [n for _, n in levels])
    bounds = np.array([0, *sorted(data.draw(cuts_of(len(flat)))), len(flat)], np.int64)
    seen = set()
    for variant in VARIANTS:
        runs = load(variant)["level_runs"]
        encoded, starts, sizes = runs.encode_rle_levels(flat, bounds)
        out = np.full(len(flat), 9, u16)
        runs.decode_rle_levels(encoded, starts, sizes, np.diff(bounds), out)
        assert out.tolist() == flat.tolist()
        seen.add((encoded.tobytes(), sizes.tobytes()))
    assert len(seen) == 1


def test_run_lengths_are_laid_out_as_the_reference_implementation_does(kernels: Kernels) -> None:
    data, _, _ = kernels["level_runs"].encode_rle_levels(np.ones(1366, u16), np.array([0, 1366]))
    assert data.tobytes().hex() == "0c00000000000000" + "0100" * 6 + "ff" * 5 + "5b"


@settings(max_examples=200)
@given(
    at=st.integers(0, 13),
    byte=st.integers(0, 255),
    start=st.integers(-3, 16),
    size=st.integers(-3, 16),
    count=st.integers(-2, 6),
)
def test_damaged_run_lengths_are_read_or_refused_alike(at: int, byte: int, start: int, size: int, count: int) -> None:
    data = np.array([4, 0, 0, 0, 0, 0, 0, 0, 7, 0, 1, 0, 3, 1], np.uint8)
    data[at] = byte
    outcomes = []
    for variant in VARIANTS:
        out = np.zeros(max(count, 0), u16)
        try:
            load(variant)["level_runs"].decode_rle_levels(
                data, np.array([start]), np.array([size]), np.array([count]), out
            )
        except Corrupt as error:
            outcomes.append(str(error))
        else:
            outcomes.append(str(out.tolist()))
    assert len(set(outcomes)) == 1
