"""Remote stores against real servers: the contract on S3 and Azure, and what pylance and lancelet share there."""

from __future__ import annotations

import base64
import gc
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lancelet.config import Options, Retries
from lancelet.errors import AlreadyExists, Corrupt, NotFound, Storage, Unsupported
from lancelet.storage.remote import RemoteStore
from lancelet.storage.remote_writer import PART_BYTES, PARTS_IN_FLIGHT
from lancelet.testing.faulty_proxy import Fault, FaultyProxy, faulty_proxy
from lancelet.testing.servers import ServedStore, http_server
from lancelet.testing.storage import Check, checks


@pytest.fixture(params=["s3_server", "azure_server"], ids=["s3", "azure"])
def server(request: pytest.FixtureRequest) -> ServedStore:
    """Each kind of server in turn."""
    found: ServedStore = request.getfixturevalue(request.param)
    return found


def store_on(server: ServedStore) -> RemoteStore:
    """A store at a new place of a server."""
    return RemoteStore(server.place(), storage_options=server.storage_options)


@pytest.mark.parametrize("check", checks(), ids=str)
def test_remote_stores_keep_the_contract(check: Check, server: ServedStore) -> None:
    check(lambda: store_on(server))


@pytest.fixture
def proxy(s3_server: ServedStore) -> Iterator[FaultyProxy]:
    """A proxy in front of the S3 server that fails what it is told to fail."""
    with faulty_proxy(s3_server.endpoint) as running:
        yield running


def behind(proxy: FaultyProxy, server: ServedStore, **retries: float) -> RemoteStore:
    """A store that talks through the proxy and does not wait long between attempts."""
    quick = Retries(**{"attempts": 4, "first_delay": 0.01, "longest_delay": 0.02, **retries})  # type: ignore[arg-type]
    options = {**server.storage_options, "endpoint": proxy.endpoint, "timeout": "5s"}
    return RemoteStore(server.place(), storage_options=options, options=Options(retries=quick, io_concurrency=8))


def unfinished_uploads(server: ServedStore) -> int:
    """Multipart uploads that the S3 server keeps parts of."""
    with urllib.request.urlopen(f"{server.endpoint}/{server.uri.removeprefix('s3://')}?uploads") as answer:
        return int(answer.read().count(b"<UploadId>"))


@pytest.mark.parametrize("uri", ["a b/ü%25.lance", "table.lance", "deep/er/t=1&u+v.lance"])
def test_pylance_and_lancelet_mean_the_same_place_by_a_uri(uri: str, server: ServedStore) -> None:
    place = f"{server.place()}/{uri}"
    dataset = lance.write_dataset(pa.table({"a": range(100)}), place, storage_options=server.storage_options)
    store = RemoteStore(place, storage_options=server.storage_options)
    [manifest] = [entry for entry in store.list_from("_versions/") if entry.path.endswith(".manifest")]
    tail, size = store.read_tail(manifest.path, 16)
    assert (size, bytes(tail[-4:])) == (manifest.size, b"LANC")
    [data] = store.list_from("data/")
    twin = RemoteStore(server.place(), storage_options=server.storage_options)
    for entry in store.list_from(""):
        twin.put(entry.path, store.read_all(entry.path))
    moved = lance.dataset(twin.uri, storage_options=server.storage_options)
    assert moved.to_table() == dataset.to_table()
    assert store.size(data.path) == data.size


def test_credentials_of_the_environment_are_found(server: ServedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = "AWS_" if server.uri.startswith("s3") else "AZURE_STORAGE_"
    for key, value in server.storage_options.items():
        monkeypatch.setenv(prefix + key.upper().removeprefix("AZURE_STORAGE_"), value)
    store = RemoteStore(server.place())
    store.put("a", b"1")
    assert bytes(store.read_all("a")) == b"1"


def test_wrong_credentials_are_refused_at_once_and_not_shown(azure_server: ServedStore) -> None:
    wrong = base64.b64encode(b"wrong-key" * 7).decode()
    store = RemoteStore(azure_server.place(), storage_options={**azure_server.storage_options, "account_key": wrong})
    for ask in (lambda: store.put("a", b"1"), lambda: store.size("a"), lambda: list(store.list_from(""))):
        with pytest.raises(Storage, match="403") as caught:
            ask()
        assert not caught.value.retryable
        assert wrong not in str(caught.value)


def test_a_missing_bucket_is_not_found(server: ServedStore) -> None:
    store = RemoteStore(server.uri + "-missing/t", storage_options=server.storage_options)
    for ask in (lambda: store.put("a", b"1"), lambda: list(store.list_from(""))):
        with pytest.raises(NotFound, match="bucket or container"):
            ask()


def test_neighbouring_ranges_are_one_request_and_far_ones_run_side_by_side(
    proxy: FaultyProxy, s3_server: ServedStore
) -> None:
    store = behind(proxy, s3_server)
    content = bytes(range(256)) * 8192
    store.put("a", content)
    proxy.requests.clear()
    wanted = [(at, 100) for at in range(0, 100_000, 1000)] + [(2**20, 50), (2**21 - 7, 7)]
    assert [bytes(view) for view in store.read("a", wanted)] == [content[at : at + size] for at, size in wanted]
    assert [verb for verb, _ in proxy.requests] == ["GET"] * 3
    proxy.requests.clear()
    store.read_tail("a", 100)
    store.read_all("a")
    store.put("small", b"1")
    with store.writer("written") as writer:
        writer.write(bytes(1000))
    next(store.list_from("wr"))
    assert [verb for verb, _ in proxy.requests] == ["GET", "GET", "PUT", "PUT", "GET"]


@pytest.mark.parametrize("fault", ["unavailable", "refused", "answer lost", "half an answer"])
def test_reads_and_puts_outlast_faults(fault: Fault, proxy: FaultyProxy, s3_server: ServedStore) -> None:
    store = behind(proxy, s3_server)
    proxy.fail_next(2, fault, "PUT")
    store.put("a", b"0123456789" * 10_000)
    for ask in (
        lambda: bytes(store.read("a", [(5, 3)])[0]) == b"567",
        lambda: len(store.read_all("a")) == 100_000,
        lambda: bytes(store.read_tail("a", 2)[0]) == b"89",
        lambda: [entry.path for entry in store.list_from("")] == ["a"],
    ):
        proxy.fail_next(2, fault, "GET")
        assert ask()
    proxy.fail_next(2, fault, "POST")
    store.delete(["a", "missing"])
    assert list(store.list_from("")) == []


@pytest.mark.parametrize("fault", ["unavailable", "refused", "answer lost"])
def test_a_conditional_put_whose_answer_is_lost_is_not_taken_for_somebody_elses(
    fault: Fault, proxy: FaultyProxy, s3_server: ServedStore
) -> None:
    store = behind(proxy, s3_server)
    proxy.fail_next(2, fault, "PUT")
    store.put_if_absent("a", b"mine")
    assert bytes(store.read_all("a")) == b"mine"
    for content in (b"mine", b"other"):
        with pytest.raises(AlreadyExists):
            store.put_if_absent("a", content)
    proxy.fail_next(1, fault, "PUT")
    with pytest.raises(AlreadyExists):
        store.put_if_absent("a", b"other")
    assert bytes(store.read_all("a")) == b"mine"


def test_faults_that_last_are_retryable_errors(proxy: FaultyProxy, s3_server: ServedStore) -> None:
    store = behind(proxy, s3_server)
    store.put("a", b"1")
    for verb, ask in (
        ("PUT", lambda: store.put("b", b"1")),
        ("PUT", lambda: store.put_if_absent("c", b"1")),
        ("GET", lambda: store.read("a", [(0, 1)])),
        ("GET", lambda: list(store.list_from(""))),
        ("HEAD", lambda: store.size("a")),
    ):
        proxy.requests.clear()
        proxy.fail_next(1000, "unavailable", verb)
        with pytest.raises(Storage, match="503") as caught:
            ask()
        assert caught.value.retryable
        assert [asked for asked, _ in proxy.requests] == [verb] * 4


def test_a_server_that_is_not_there_is_a_retryable_error(s3_server: ServedStore) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        options = {**s3_server.storage_options, "endpoint": endpoint, "client_max_retries": "0"}
        with pytest.raises(Storage) as caught:
            RemoteStore(s3_server.place(), storage_options=options).size("a")
    assert caught.value.retryable


def test_an_upload_that_is_aborted_or_dropped_leaves_no_parts(proxy: FaultyProxy, s3_server: ServedStore) -> None:
    store = behind(proxy, s3_server)
    before = unfinished_uploads(s3_server)
    for ending in ("abort", "drop", "failure"):
        proxy.requests.clear()
        writer = store.writer("big")
        for _ in range(3):
            writer.write(bytes(PART_BYTES + 1))
        if ending == "abort":
            writer.abort()
        elif ending == "failure":
            proxy.decide = lambda verb, path: "unavailable" if verb == "PUT" else "none"
            with pytest.raises(Storage, match="503") as caught:
                writer.close()
            assert caught.value.retryable
            writer.abort()
            proxy.decide = None
        del writer
        gc.collect()
        assert proxy.requests[0][0] == "POST"
        assert unfinished_uploads(s3_server) == before
        assert list(store.list_from("")) == []


def test_a_writer_waits_rather_than_hold_the_object_in_memory(proxy: FaultyProxy, s3_server: ServedStore) -> None:
    gate = threading.Event()

    def wait_for_parts(verb: str, path: str) -> Fault:
        if verb == "PUT":
            gate.wait(20)
        return "none"

    store = behind(proxy, s3_server)
    proxy.decide = wait_for_parts
    positions: list[int] = []

    def write() -> None:
        with store.writer("big") as writer:
            for _ in range(9):
                writer.write(bytes(PART_BYTES))
                positions.append(writer.position)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join(1.0)
    held = len(positions)
    gate.set()
    thread.join(60)
    assert held <= PARTS_IN_FLIGHT + 3
    assert store.size("big") == 9 * PART_BYTES


def test_a_forked_child_leaves_its_parents_writer_alone(s3_server: ServedStore) -> None:
    store = store_on(s3_server)
    writer = store.writer("big")
    writer.write(bytes(PART_BYTES + 10))
    child = os.fork()
    if child == 0:
        try:
            writer.write(b"x")
            os._exit(1)
        except Storage:
            del writer
            gc.collect()
            os._exit(0 if list(store.list_from("")) == [] else 2)
    assert os.waitpid(child, 0)[1] == 0
    assert writer.close() == store.size("big") == PART_BYTES + 10


def test_children_of_children_each_have_an_engine_that_works(s3_server: ServedStore) -> None:
    store = store_on(s3_server)
    store.put("0", b"")

    def descend(depth: int) -> int:
        child = os.fork()
        if child == 0:
            try:
                store.put_if_absent(str(depth), b"")
                with store.writer(f"{depth}.big") as writer:
                    writer.write(bytes(PART_BYTES + 1))
                os._exit(descend(depth + 1) if depth < 3 else 0)
            finally:
                os._exit(9)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert descend(1) == 0
    assert [entry.path for entry in store.list_from("")] == ["0", "1", "1.big", "2", "2.big", "3", "3.big"]


def test_http_stores_read_files_and_refuse_the_rest(tmp_path: Path) -> None:
    content = os.urandom(100_000)
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b/x%25").write_bytes(content)
    (tmp_path / "a b/empty").touch()
    with http_server(tmp_path) as server:
        store = RemoteStore(f"{server.uri}/a%20b")
        assert store.size("x%25") == len(content)
        views = store.read("x%25", [(5, 10), (99_990, 10)])
        assert [bytes(view) for view in views] == [content[5:15], content[-10:]]
        assert bytes(store.read_all("x%25")) == content
        tail, size = store.read_tail("x%25", 7)
        assert (bytes(tail), size) == (content[-7:], len(content))
        assert store.read_tail("empty", 7) == (b"", 0)
        with pytest.raises(Corrupt, match="100000 bytes"):
            store.read("x%25", [(99_999, 2)])
        with pytest.raises(NotFound):
            store.read_all("y")
        for ask in (
            lambda: store.put("x", b""),
            lambda: store.put_if_absent("x", b""),
            lambda: store.writer("x"),
            lambda: store.delete(["x"]),
            lambda: store.copy("x%25", "y"),
            lambda: store.list_from(""),
        ):
            with pytest.raises(Unsupported):
                ask()


def test_servers_end_when_their_starter_is_killed() -> None:
    program = """
import sys, time
from lancelet.testing.servers import s3_server
with s3_server() as server:
    print(server.endpoint, flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        port = int(starter.stdout.readline().rpartition(":")[2])
        socket.create_connection(("127.0.0.1", port)).close()
        starter.kill()
        starter.wait()
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return
        time.sleep(0.05)
    pytest.fail("the server is still there")
