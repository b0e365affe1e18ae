"""JSON columns against pylance: the same JSONB of a text, the same text of JSONB, in files of both."""

from __future__ import annotations

import json
import struct
from itertools import count

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lancelet.encodings.json import json_from_text, json_to_text
from lancelet.errors import InvalidInput
from lancelet.file import LanceFileReader, LanceFileWriter

few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
STORED = {"ARROW:extension:name": "lance.json"}
numbers = count()

strings = st.text(st.characters(codec="utf-8"), max_size=15)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | strings,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(strings, inner, max_size=20),
    max_leaves=30,
)
documents = st.lists(st.none() | st.builds(json.dumps, values, ensure_ascii=st.booleans()), min_size=1, max_size=30)
# Texts that are not JSON, or just so; the reference implementation decides.
PIECES = [
    *"\"'\\{}[]:, aéin+-.019fex\x0b\x0c",
    "\\u",
    "{0041}",
    "d834",
    "dd1e",
    "\\n",
    "nan",
    "True",
    "null",
    "0x",
    '"a":',
]


def _json(texts, kind=None) -> pa.Array:
    kind = kind or pa.string()
    return pa.ExtensionArray.from_storage(pa.json_(kind), pa.array(texts, kind))


def _written_by_pylance(folder, column) -> pa.Array:
    path = str(folder / f"{next(numbers)}.lance")
    with lance.file.LanceFileWriter(path) as writer:
        writer.write_batch(pa.table({"j": column}))
    return lance.file.LanceFileReader(path).read_all().to_table()["j"].combine_chunks()


def _rendered_by_pylance(folder, stored: pa.Array) -> pa.Array:
    table = pa.table([stored], schema=pa.schema([pa.field("j", pa.large_binary(), metadata=STORED)]))
    dataset = lance.write_dataset(table, str(folder / f"{next(numbers)}"))
    return dataset.to_table()["j"].combine_chunks().storage


@few
@given(texts=documents)
def test_generated_documents_become_the_same_jsonb_and_the_same_text(tmp_path, texts):
    stored = json_from_text(pa.array(texts, pa.string()))
    assert stored.equals(_written_by_pylance(tmp_path, _json(texts)))
    assert json_to_text(stored).equals(_rendered_by_pylance(tmp_path, stored))


@settings(few, max_examples=100)
@given(text=st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
def test_texts_are_refused_where_pylance_refuses_them(tmp_path, text):
    try:
        theirs = _written_by_pylance(tmp_path, _json([text]))
    except (OSError, ValueError):
        theirs = None
    try:
        ours = json_from_text(pa.array([text]))
    except InvalidInput:
        ours = None
    assert ours == theirs


def test_doubles_are_rendered_as_pylance_renders_them(tmp_path):
    random = np.random.default_rng(0)
    some = random.integers(0, 2**64, 20_000, np.uint64).view(np.float64)
    powers = 10.0 ** np.arange(-320, 308)
    prices = np.round(random.uniform(-1e6, 1e6, 5000), 2)
    doubles = np.concatenate([some, powers, 1.5 * powers, 2.0 ** np.arange(-1074, 1023), prices])
    head = bytes.fromhex("200000002000000960")
    stored = pa.array([head + struct.pack(">d", value) for value in doubles.tolist()], pa.large_binary())
    assert json_to_text(stored).equals(_rendered_by_pylance(tmp_path, stored))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_files_with_json_columns_are_the_same_to_both(tmp_path, version, kind):
    texts = [None if row % 7 == 3 else json.dumps({"id": row, "tags": ["x"] * (row % 4)}) for row in range(5000)]
    table = pa.table({"j": _json(texts, kind), "row": range(5000)})
    found = {}
    for name, writer in (("ours", LanceFileWriter), ("theirs", lance.file.LanceFileWriter)):
        path = str(tmp_path / f"{name}.lance")
        with writer(path, table.schema, version=version) as out:
            out.write_batch(table)
        for reader in (LanceFileReader, lance.file.LanceFileReader):
            found[name, reader.__module__] = reader(path).read_all().to_table()
    first = found.pop(("theirs", "lance.file"))
    assert first.schema.field("j").metadata[b"ARROW:extension:name"] == b"lance.json"
    for table in found.values():
        assert table.schema.equals(first.schema, check_metadata=True)
        assert table.equals(first)


def _nested_columns() -> dict[str, pa.Array]:
    texts = ['{"a": 1}', "[1, 2]", None, "3.5"]
    structs = pa.StructArray.from_arrays([_json(texts), pa.array(range(4))], ["j", "k"])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 3, 4]), _json(texts))
    return {
        "struct": structs,
        "sliced struct": pa.StructArray.from_arrays([_json([*texts, "true"])], ["j"]).slice(1),
        "null struct": pa.StructArray.from_arrays([_json(texts)], ["j"], mask=pa.array([False, True, False, False])),
        "list": lists,
        "null list": pa.ListArray.from_arrays(pa.array([0, 1, None, 3, 4]), _json(texts)),
        "large list": pa.LargeListArray.from_arrays(pa.array([0, 1, 1, 3, 4], pa.int64()), _json(texts)),
        "list of structs": pa.ListArray.from_arrays(pa.array([0, 2, 2, 3, 4]), structs),
        "map": pa.MapArray.from_arrays(pa.array([0, 1, 1, 3, 4]), pa.array(["a", "b", "c", "d"]), _json(texts)),
        "fixed-size list of structs": pa.FixedSizeListArray.from_arrays(
            pa.StructArray.from_arrays([_json(texts * 2)], ["j"]), 2
        ),
    }


@pytest.mark.parametrize("name", _nested_columns())
def test_json_inside_of_nested_columns_is_stored_as_pylance_does(tmp_path, name):
    column = _nested_columns()[name]
    path = str(tmp_path / "ours.lance")
    with LanceFileWriter(path) as writer:
        writer.write_batch(pa.table({"j": column}))
    for reader in (LanceFileReader, lance.file.LanceFileReader):
        ours = reader(path).read_all().to_table()["j"].combine_chunks()
        assert ours.to_pylist() == _written_by_pylance(tmp_path, column).to_pylist()


def test_a_slice_of_lists_leaves_out_what_is_not_in_it(tmp_path):
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 3, 4]), _json(["not JSON", "1", None, "also not"]))
    path = str(tmp_path / "a.lance")
    with LanceFileWriter(path) as writer:
        writer.write_batch(pa.table({"j": lists.slice(1, 1)}))
    rows = LanceFileReader(path).read_all().to_table()["j"].to_pylist()
    assert rows == [[json_from_text(pa.array(["1"]))[0].as_py(), None]]


def test_jsonb_that_is_given_as_such_passes_through_unseen(tmp_path):
    field = pa.field("j", pa.large_binary(), metadata=STORED)
    table = pa.table([pa.array([b"\x80\0\0\0", b"hello", None], pa.large_binary())], schema=pa.schema([field]))
    for writer in (LanceFileWriter, lance.file.LanceFileWriter):
        path = str(tmp_path / f"{writer.__module__}.lance")
        with writer(path) as out:
            out.write_batch(table)
        assert LanceFileReader(path).read_all().to_table().equals(table)


@pytest.mark.parametrize("given", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_plain_text_for_a_field_that_stores_json_becomes_jsonb(tmp_path, given):
    path = str(tmp_path / "a.lance")
    with LanceFileWriter(path, pa.schema([pa.field("j", pa.json_())])) as writer:
        writer.write_batch(pa.table({"j": pa.array(["[]", None], given)}))
    assert LanceFileReader(path).read_all().to_table()["j"].to_pylist() == [b"\x80\0\0\0", None]


def test_text_that_is_not_json_names_column_row_and_byte_and_leaves_no_file(tmp_path):
    path = tmp_path / "a.lance"
    with (
        pytest.raises(InvalidInput, match=r"row 1 is not JSON: .* at byte 5 \[column=j\]"),
        LanceFileWriter(str(path)) as writer,
    ):
        writer.write_batch(pa.table({"j": _json(["1", '{"a":'])}))
    assert not path.exists()
