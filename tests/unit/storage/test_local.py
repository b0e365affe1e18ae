"""What only the local store does: memory maps, temporary files, and the file system's own trouble."""

from __future__ import annotations

import errno
import gc
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lancelet.errors import AlreadyExists, Corrupt, InvalidInput, NotFound, Storage, Unsupported
from lancelet.events import Event, subscribe
from lancelet.storage.local import LocalStore
from lancelet.storage.mapping import MappingCache, map_file, read_file
from lancelet.storage.store import Mappable


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "table")


def mapped_bytes() -> int:
    """Bytes of this process's maps of files named ``big``."""
    total = 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith("/big"):
            start, end = line.split()[0].split("-")
            total += int(end, 16) - int(start, 16)
    return total


def test_ranges_are_views_of_one_map(store: LocalStore) -> None:
    store.put("a", bytes(range(256)) * 1000)
    first, second = store.read("a", [(0, 100), (50, 100)])
    arrays = [np.frombuffer(view, np.uint8) for view in (first, second)]
    assert np.shares_memory(*arrays)
    assert isinstance(store, Mappable)
    assert np.shares_memory(arrays[0], np.frombuffer(store.view("a"), np.uint8))


def test_views_hold_no_file_descriptor(store: LocalStore) -> None:
    for number in range(40):
        store.put(f"f/{number}", bytes(100_000))
    before = len(os.listdir("/proc/self/fd"))
    views = [store.read(f"f/{number}", [(0, 100_000)])[0] for number in range(40)]
    assert len(os.listdir("/proc/self/fd")) == before
    assert sum(map(len, views)) == 4_000_000


def test_a_thousand_files_can_be_viewed_under_a_small_limit_of_open_files(store: LocalStore) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    for number in range(300):
        store.put(f"f/{number}", bytes(8))
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 20, limits[1]))
    try:
        assert len([store.view(f"f/{number}") for number in range(300)]) == 300
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_map_goes_with_its_last_view_once_the_object_is_deleted(store: LocalStore) -> None:
    store.put("big", bytes(10_000_000))
    view = store.read("big", [(5_000_000, 10)])[0]
    store.delete(["big"])
    assert mapped_bytes() == 0
    assert bytes(view) == bytes(10)
    del view


def test_a_map_stays_as_long_as_a_view_of_it(store: LocalStore) -> None:
    store.put("big", b"x" * 10_000_000)
    views = store.read("big", [(9_999_990, 10)])
    store.put("big", b"y" * 10_000_000)
    assert bytes(store.read("big", [(0, 1)])[0]) == b"y"
    assert bytes(views[0]) == b"x" * 10
    views.clear()
    store.delete(["big"])
    gc.collect()
    assert mapped_bytes() == 0


def test_a_file_that_changed_size_is_noticed(store: LocalStore) -> None:
    store.put("a", b"0123456789")
    assert bytes(store.read("a", [(0, 10)])[0]) == b"0123456789"
    with open(Path(store.uri, "a"), "ab") as file:
        file.write(b"abc")
    assert bytes(store.read("a", [(0, 13)])[0]) == b"0123456789abc"
    os.truncate(Path(store.uri, "a"), 4)
    with pytest.raises(Corrupt, match="has 4 bytes, expected at least 13") as caught:
        store.read("a", [(2, 11)])
    assert caught.value.byte_range == (2, 11)


def test_the_cache_of_maps_is_bounded(tmp_path: Path) -> None:
    cache = MappingCache(3)
    for number in range(10):
        file = tmp_path / str(number)
        file.write_bytes(b"content")
        assert bytes(cache.view(str(file))) == b"content"
    assert len(cache) == 3


def test_the_cache_of_maps_drops_what_is_gone(tmp_path: Path) -> None:
    cache = MappingCache(3)
    file = tmp_path / "a"
    file.write_bytes(b"content")
    cache.view(str(file))
    file.unlink()
    with pytest.raises(FileNotFoundError):
        cache.view(str(file))
    assert len(cache) == 0


def test_what_cannot_be_mapped_is_read(tmp_path: Path) -> None:
    with open("/proc/self/status", "rb") as file:
        assert b"Name:" in bytes(map_file(file.fileno(), 100))
    (tmp_path / "a").write_bytes(b"short")
    with open(tmp_path / "a", "rb") as file:
        assert bytes(read_file(file.fileno(), 100)) == b"short"


def test_views_cannot_be_written_to(store: LocalStore) -> None:
    store.put("a", bytes(100_000))
    for view in (store.view("a"), store.read_all("a"), store.read_tail("a", 4)[0]):
        with pytest.raises(TypeError):
            view[0] = 1
        assert not np.frombuffer(view, np.uint8).flags.writeable


def test_temporary_files_are_not_listed_and_are_swept_when_they_are_old(store: LocalStore) -> None:
    store.put("data/a", b"kept")
    stale = Path(store.uri, "data", ".tmp-stale")
    stale.write_bytes(b"half")
    os.utime(stale, (time.time() - 100, time.time() - 100))
    writer = store.writer("data/b")
    writer.write(b"under way")
    assert [entry.path for entry in store.list_from("")] == ["data/a"]
    assert [entry.path for entry in store.list_from("data/.tmp")] == []
    assert len(list(store.temporaries())) == 2
    assert [entry.path for entry in store.sweep(older_than=60)] == ["data/.tmp-stale"]
    assert writer.close() == 9
    assert list(store.temporaries()) == []
    assert sorted(os.listdir(Path(store.uri, "data"))) == ["a", "b"]


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.put("taken", b"1"),
        lambda store: store.put_if_absent("taken", b"1"),
        lambda store: store.writer("taken").close(),
        lambda store: store.copy("source", "taken"),
    ],
    ids=["put", "put_if_absent", "writer", "copy"],
)
def test_a_failed_write_leaves_no_temporary_file(write: Callable[[LocalStore], None], store: LocalStore) -> None:
    store.put("source", b"x")
    Path(store.uri, "taken", "inner").mkdir(parents=True)
    with pytest.raises((Storage, AlreadyExists)) as caught:
        write(store)
    assert caught.value.uri == f"{store.uri}/taken"
    assert list(store.temporaries()) == []


def test_a_file_in_the_place_of_a_folder_is_a_storage_error(store: LocalStore) -> None:
    store.put("a", b"1")
    with pytest.raises(Storage, match="cannot make the file"):
        store.put("a/b", b"1")
    with pytest.raises(Storage, match="cannot make the file"):
        store.put_if_absent("a/b/c", b"1")


def test_without_hard_links_put_if_absent_is_refused_not_weakened(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(source: str, target: str) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", source)

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(Unsupported, match=r"no hard links.*keep the table on a file system that has them"):
        store.put_if_absent("a", b"1")
    assert [*store.list_from(""), *store.temporaries()] == []


def test_a_link_whose_answer_got_lost_on_the_way_is_recognised(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.link

    def link(source: str, target: str) -> None:
        real(source, target)
        raise FileExistsError(errno.EEXIST, "File exists", target)

    monkeypatch.setattr(os, "link", link)
    store.put_if_absent("a", b"1")
    assert bytes(store.read_all("a")) == b"1"
    with pytest.raises(AlreadyExists):
        store.put_if_absent("a", b"1")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_full_disk_is_a_storage_error_with_advice(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def full(file: str, flags: int, mode: int = 0o777) -> int:
        return real("/dev/full" if "/.tmp-" in str(file) else file, flags & ~os.O_EXCL, mode)

    monkeypatch.setattr(os, "open", full)
    Path(store.uri).mkdir()
    with pytest.raises(Storage, match=r"No space left.*free some space") as caught:
        store.put("a", bytes(1_000_000))
    assert not caught.value.retryable
    writer = store.writer("a")
    with pytest.raises(Storage, match="No space left"):
        writer.write(bytes(1_000_000))
    writer.abort()


def test_copies_stand_alone(store: LocalStore) -> None:
    store.put("a", b"original")
    store.copy("a", "b")
    store.copy("a", "a")
    assert os.stat(Path(store.uri, "a")).st_ino != os.stat(Path(store.uri, "b")).st_ino
    assert bytes(store.read_all("a")) == b"original"


def test_copying_works_where_the_kernel_cannot(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> int:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    content = os.urandom(3_000_000)
    store.put("a", content)
    store.copy("a", "b")
    assert bytes(store.read_all("b")) == content


def test_links_are_followed_and_what_is_no_file_is_no_object(store: LocalStore, tmp_path: Path) -> None:
    store.put("real/a", b"1")
    Path(store.uri, "linked").symlink_to(Path(store.uri, "real"))
    Path(store.uri, "file").symlink_to(Path(store.uri, "real", "a"))
    Path(store.uri, "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(Path(store.uri, "pipe"))
    assert [entry.path for entry in store.list_from("")] == ["file", "linked/a", "real/a"]
    for path in ("pipe", "real", "dangling"):
        with pytest.raises(NotFound):
            store.size(path)


def test_an_unreadable_place_is_an_error_and_not_empty(store: LocalStore) -> None:
    Path(store.uri).mkdir()
    deep = "x" * 300
    with pytest.raises(Storage, match="File name too long"):
        list(store.list_from(f"{deep}/"))


@pytest.mark.parametrize("durable", [False, True])
def test_durable_writes_reach_the_disk_before_they_take_the_name(
    durable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        steps.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")).partition("-")[0])
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    store = LocalStore(tmp_path / "table", durable=durable)

    def listener(event: Event) -> None:
        steps.append(event.name)

    with subscribe(listener):
        store.put_if_absent("folder/a", b"1")
    synced = [tmp_path.name, "table", ".tmp", "storage.staged", "folder", "storage.published"]
    assert steps == (synced if durable else ["storage.staged", "storage.published"])


def test_a_forked_child_that_drops_a_writer_does_not_touch_its_file(store: LocalStore) -> None:
    writer = store.writer("a")
    writer.write(b"pending")
    child = os.fork()
    if child == 0:
        try:
            writer.write(bytes(1_000_000))
        except InvalidInput:
            writer.abort()
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert writer.close() == 7
    assert bytes(store.read_all("a")) == b"pending"


def test_data_with_gaps_is_refused(store: LocalStore) -> None:
    with pytest.raises(InvalidInput, match="gaps"):
        store.put("a", memoryview(b"abcdef")[::2])


def test_names_of_a_folder_come_in_byte_order_without_unfinished_writes(store: LocalStore) -> None:
    for name in ("b", "a/c", "A", "é", "z\udcff"):
        store.put(f"f/{name}", b"")
    writer = store.writer("f/unfinished")
    assert store.names("f") == ["A", "a", "b", "z\udcff", "é"]
    assert store.names("nowhere") == store.names("f/b") == []
    writer.abort()
