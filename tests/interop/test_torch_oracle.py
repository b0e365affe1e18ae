"""PyTorch: tensors, batches and shares are those of pylance; workers of loaders are forked and spawned without harm."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lance
import lance.torch.data
import lance.torch.distance
import lance.torch.kmeans
import numpy as np
import pyarrow as pa
import pytest
import torch

import lancelet
import lancelet.torch.bench_utils as bench
from lancelet import sampler
from lancelet.arrow import bfloat16_array
from lancelet.errors import InvalidInput, LanceletError
from lancelet.torch import data, distance, kmeans, preferred_device
from lancelet.torch.async_dataset import AsyncDataset, async_dataset
from lancelet.torch.dist import get_global_rank, get_global_world_size

ROWS = 1000
BOTH = [(lance, lance.torch.data), (lancelet, data)]


@pytest.fixture(autouse=True, scope="module")
def not_compiled() -> None:
    """Pylance compiles its distances when they are first used, which takes a quarter of a minute."""
    torch._dynamo.config.disable = True


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of several fragments with a deleted row in each."""
    numbers = np.arange(ROWS)
    table = pa.table(
        {
            "x": numbers,
            "maybe": pa.array(numbers, mask=numbers % 3 == 0),
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(numbers.repeat(4).astype("f4")), 4),
        }
    )
    found = tmp_path_factory.mktemp("trained") / "table"
    lance.write_dataset(table, found, max_rows_per_file=130).delete("x % 130 = 1")
    return found


def plain(batches: Iterable[Any]) -> list[Any]:
    """Batches of tensors as lists, with their types."""

    def one(item: Any) -> Any:
        if isinstance(item, dict):
            return {name: one(value) for name, value in item.items()}
        return (str(item.dtype), repr(item.tolist()), tuple(item.shape))

    return [one(batch) for batch in batches]


def columns() -> dict[str, pa.Array]:
    """Columns of every type of which tensors are made."""
    found: dict[str, pa.Array] = {
        str(kind): pa.array([1, 0, 3, 4], kind)
        for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
    }
    found |= {str(kind): pa.array([1.5, 2, -3, 4], kind) for kind in (pa.float32(), pa.float64())}
    found["half"] = pa.array(np.float16([1.5, 2, 3, 4]))
    found["bool"] = pa.array([True, False, True, True])
    found["nulls"] = pa.array([1, None, 3, None])
    found["brain"] = bfloat16_array([1.5, 2.5, None, 4.0])
    found["vectors"] = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(8, dtype="f4")), 2)
    found["codes"] = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(8, dtype="u1")), 2)
    tensors = pa.fixed_shape_tensor(pa.float32(), [2])
    found["tensors"] = pa.ExtensionArray.from_storage(tensors, found["vectors"])
    return found


@pytest.mark.parametrize("part", [slice(0, 4), slice(1, 3), slice(0, 0)])
def test_tensors_of_every_type_are_the_same(part: slice) -> None:
    for name, column in columns().items():
        batch = pa.record_batch({name: column[part], "other": pa.array([1, 2, 3, 4])[part]})
        if name == "brain" and not batch.num_rows:
            assert data._to_tensor(batch)["brain"].shape == (0,)
            continue
        assert plain([data._to_tensor(batch)]) == plain([lance.torch.data._to_tensor(batch)])


@pytest.mark.parametrize(
    "column", [pa.array(["a"]), pa.array([[1]]), pa.array([{"a": 1}]), pa.array([b"x"]), pa.array([True, None])]
)
def test_what_no_tensor_is_made_of_is_refused_as_pylance_does(column: pa.Array) -> None:
    for module in (lance.torch.data, data):
        with pytest.raises((ValueError, TypeError)):
            module._to_tensor(pa.record_batch({"c": column}))
    with pytest.raises(ValueError, match=r"'c'|nulls"):
        data._to_tensor(pa.record_batch({"c": column}))


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 50},
        {"batch_size": 50, "columns": ["x"]},
        {"batch_size": 64, "columns": {"x": "x * 2", "vec": "vec"}},
        {"batch_size": 32, "filter": "x % 7 > 2", "columns": ["x", "maybe"]},
        {"batch_size": 40, "with_row_id": True},
        {"batch_size": 40, "cache": True},
        {"batch_size": 33, "rank": 1, "world_size": 3},
        {"batch_size": 33, "rank": 1, "world_size": 3, "shard_granularity": "batch"},
        {"batch_size": 33, "rank": 2, "world_size": 3, "shard_granularity": "fragment", "filter": "x > 500"},
        {"batch_size": 400, "columns": ["vec"]},
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:rank and world_size")
def test_batches_are_the_same(place: Path, options: dict[str, Any]) -> None:
    found = []
    for module, torches in BOTH:
        made = torches.LanceDataset(module.dataset(place), **options)
        passes = [plain(made) for _ in range(2)]
        assert passes[0] == passes[1]
        found.append(passes[0])
    if "filter" not in options:
        assert found[0] == found[1]
    else:
        # How the rows that meet a condition are spread over batches is up to each.
        rows = [[row for batch in made for row in ast.literal_eval(batch["x"][1])] for made in found]
        assert rows[0] == rows[1]


def test_rows_drawn_are_the_same_for_one_seed(place: Path) -> None:
    found = []
    for module, torches in BOTH:
        np.random.seed(3)
        made = torches.LanceDataset(module.dataset(place), 16, columns=["x"], samples=100)
        found.append(plain(made))
    assert found[0] == found[1]


def test_rows_drawn_come_with_their_ids_if_asked_for(place: Path) -> None:
    made = data.LanceDataset(str(place), 16, columns=["x"], samples=100, with_row_id=True)
    rows = lancelet.dataset(place).to_table(columns=["x"], with_row_id=True)
    expected = dict(zip(rows["x"].to_pylist(), rows["_rowid"].to_pylist(), strict=True))
    for batch in made:
        assert [expected[x] for x in batch["x"].tolist()] == batch["_rowid"].tolist()


@pytest.mark.parametrize(
    ("sharing", "sampling"), [("fork", "fragment"), ("fork", "batch"), ("fork", "shuffled"), ("spawn", "shuffled")]
)
def test_workers_of_a_loader_share_the_rows_out(place: Path, sharing: str, sampling: str) -> None:
    table = lancelet.dataset(place)
    # Used before the fork, so that whatever threads and maps a read needs are there.
    expected = sorted(table.to_table(columns=["x"])["x"].to_pylist())
    options: dict[str, Any] = (
        {"sampler": sampler.ShuffledSampler(seed=3)} if sampling == "shuffled" else {"shard_granularity": sampling}
    )
    made = data.LanceDataset(table, 30, columns=["x"], **options)
    loader = torch.utils.data.DataLoader(made, batch_size=None, num_workers=2, multiprocessing_context=sharing)
    found = [x for batch in loader for x in batch.tolist()]
    assert sorted(found) == expected
    assert (found == expected) is (sampling == "batch")
    # The parent reads on, as if there had been no fork.
    assert table.count_rows("x >= 0") == len(expected)


@pytest.mark.parametrize("sharing", ["fork", None])
def test_single_rows_are_picked_by_a_loader(place: Path, sharing: str | None) -> None:
    rows = data.SafeLanceDataset(str(place), dataset_options={"version": 1})
    theirs = lance.torch.data.SafeLanceDataset(str(place), dataset_options={"version": 1})
    assert len(rows) == len(theirs) == ROWS
    assert rows[5] == theirs[5]
    assert rows.__getitems__([7, 3, 7]) == theirs.__getitems__([7, 3, 7])
    options: dict[str, Any] = {} if sharing is None else {"multiprocessing_context": sharing}
    loader = data.get_safe_loader(rows, batch_size=100, num_workers=2, collate_fn=list, **options)
    assert [row["x"] for batch in loader for row in batch] == list(range(ROWS))


@pytest.mark.parametrize(
    "made",
    [None, sampler.ShuffledSampler(seed=5), sampler.ShardedBatchSampler(0, 2, randomize=True, seed=1)],
    ids=lambda made: type(made).__name__,
)
@pytest.mark.parametrize("condition", [None, "x % 3 = 1"])
def test_a_pass_goes_on_where_it_was_broken_off(
    place: Path, made: sampler.Sampler | None, condition: str | None
) -> None:
    whole = data.LanceDataset(str(place), 24, columns=["x"], sampler=made, filter=condition)
    whole.set_epoch(2)
    expected = plain(whole)
    for done in (0, 1, 7, len(expected)):
        list(itertools.islice(iter(whole), done))
        state = whole.state_dict() if done else {"epoch": 2, "batches": 0}
        resumed = data.LanceDataset(str(place), 24, columns=["x"], sampler=made, filter=condition)
        resumed.load_state_dict(state)
        assert plain(resumed) == expected[done:]
        assert plain(resumed) == expected


def test_a_broken_off_pass_is_not_taken_for_the_whole_by_the_cache(place: Path, tmp_path: Path) -> None:
    made = data.LanceDataset(str(place), 24, columns=["x"], cache=str(tmp_path))
    list(itertools.islice(iter(made), 3))
    expected = plain(data.LanceDataset(str(place), 24, columns=["x"]))
    assert [plain(made), plain(made)] == [expected, expected]
    assert len(list(tmp_path.iterdir())) == 1
    assert made.cached_ds is not None
    made.cached_ds.close()
    assert list(tmp_path.iterdir()) == []


def test_blobs_come_as_files_for_a_function_of_ones_own(tmp_path: Path) -> None:
    values = [b"one", b"", None, b"four"]
    new = pa.schema([pa.field("i", pa.int64()), lancelet.blob_field("b")])
    table = pa.table({"i": pa.array(range(4)), "b": lancelet.blob_array(values)}, schema=new)
    lancelet.write_dataset(table, tmp_path / "t", data_storage_version="2.2")

    def read(batch: Any, *, use_blob_api: bool, **kwargs: Any) -> list[Any]:
        assert use_blob_api
        return [file and file.read() for file in batch["b"]]

    assert [item for batch in data.LanceDataset(tmp_path / "t", 3, to_tensor_fn=read) for item in batch] == values
    with pytest.raises(NotImplementedError):
        list(data.LanceDataset(tmp_path / "t", 3))


def test_batches_stay_arrow_where_no_tensors_are_wanted(place: Path) -> None:
    made = data.LanceDataset(str(place), 500, columns={"x": "x", "twice": "x * 2"}, to_tensor_fn=None)
    assert made.schema.names == ["x", "twice"]
    assert [type(batch) for batch in made] == [pa.RecordBatch] * len(list(made))
    with pytest.raises(InvalidInput, match="shard_granularity"):
        data.LanceDataset(str(place), 5, shard_granularity="row")  # type: ignore[arg-type]


def _items() -> Any:
    return data.TensorDataset(torch.arange(12).reshape(6, 2), 4)


def _broken() -> Any:
    raise RuntimeError("nothing to read")


def test_items_are_made_ahead_by_another_process() -> None:
    with async_dataset(_items, queue_size=1) as made:
        for _ in range(3):
            assert [item.tolist() for item in made] == [item.tolist() for item in _items()]
    with async_dataset(_broken) as made, pytest.raises(LanceletError, match="RuntimeError: nothing to read"):
        list(made)
    AsyncDataset(_items).close()


def test_a_process_that_trains_alone_is_the_first_of_one() -> None:
    assert (get_global_rank(), get_global_world_size()) == (0, 1)
    assert preferred_device("cpu") == lance.torch.preferred_device("cpu")
    assert preferred_device() == lance.torch.preferred_device()


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_distances_are_the_same(kind: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.rand(rows, 16, generator=generator).to(kind) for rows in (300, 20))
    x[7, 3] = float("nan")
    near = {"rtol": 0.02, "atol": 0.02} if kind in (torch.float16, torch.bfloat16) else {"rtol": 1e-4, "atol": 1e-5}
    theirs = lance.torch.distance
    torch.testing.assert_close(distance.pairwise_l2(x, y), theirs.pairwise_l2(x, y), equal_nan=True, **near)
    if kind in (torch.float16, torch.bfloat16):
        return
    for name in ("pairwise_cosine", "argmin_l2", "l2_distance", "dot_distance", "cosine_distance"):
        one, other = getattr(distance, name)(x, y), getattr(theirs, name)(x, y)
        torch.testing.assert_close(one, other, equal_nan=True, **near)


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_clusters_are_the_same_for_the_same_first_centroids(metric: str) -> None:
    generator = torch.Generator().manual_seed(4)
    vectors = torch.nn.functional.normalize(torch.rand(500, 8, generator=generator) - 0.5)
    found = []
    for module in (lance.torch.kmeans, kmeans):
        made = module.KMeans(5, metric=metric, centroids=vectors[:5].clone(), device="cpu", max_iters=6)
        made.fit(vectors)
        found.append((made.centroids, made.transform(vectors), repr(made)))
    torch.testing.assert_close(found[1][0], found[0][0], rtol=1e-4, atol=1e-5)
    assert torch.equal(found[1][1], found[0][1])
    assert found[1][2] == found[0][2]


def test_clusters_are_drawn_of_arrays_and_found_in_datasets(place: Path) -> None:
    vectors = np.random.default_rng(0).random((200, 4), dtype=np.float32)
    arrow = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 4)
    first, again = (kmeans.KMeans(3, seed=7, device="cpu") for _ in range(2))
    first.fit(vectors)
    again.fit(arrow)
    assert torch.equal(first.centroids, again.centroids)
    of_table = kmeans.KMeans(2, centroids=torch.tensor([[0.0] * 4, [999.0] * 4]), device="cpu")
    of_table.fit(data.LanceDataset(str(place), 100, columns=["x", "vec"]), column="vec")
    assert of_table.centroids[0].max() < 300 < 700 < of_table.centroids[1].min()
    with pytest.raises(ValueError, match="metric"):
        kmeans.KMeans(3, metric="hamming")
    with pytest.raises(InvalidInput, match="first centroids"):
        kmeans.KMeans(3).fit([])


@pytest.mark.parametrize("metric", ["L2", "cosine"])
def test_true_neighbours_are_those_of_an_exact_search(tmp_path: Path, metric: str) -> None:
    vectors = np.random.default_rng(2).random((500, 8), dtype=np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 8)
    table = lancelet.write_dataset(pa.table({"v": column}), tmp_path / "t", max_rows_per_file=90)
    queries = vectors[:7] + np.float32(0.01)
    found = bench.ground_truth(table, "v", queries, metric, k=9, batch_size=64, device="cpu").numpy()
    ids = table.to_table(columns=[], with_row_id=True)["_rowid"].to_numpy()
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(queries, axis=1)[:, None]
    apart = ((queries[:, None] - vectors) ** 2).sum(-1) if metric == "L2" else 1 - queries @ vectors.T / lengths
    assert bench.recall(ids[np.argsort(apart, axis=1)[:, :9]], found).tolist() == [1.0] * 7
    assert bench.infer_vector_column(table) == "v"
