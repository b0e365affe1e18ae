"""The conformance suite for stores: named checks that every Store passes, whoever wrote it.

Give each check a factory that makes a store at a new, empty place with each call. With pytest::

    @pytest.mark.parametrize("check", checks(), ids=str)
    def test_my_store_keeps_the_contract(check, tmp_path_factory):
        check(lambda: MyStore(tmp_path_factory.mktemp("store")))

Further handles on the same place are made by pickling, so a store must pickle to pass. The checks of
:mod:`lancelet.testing.storage_races` need a place that other processes see too; leave them out with
``checks(across_processes=False)``.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from lancelet.errors import AlreadyExists, Corrupt, InvalidInput, LanceletError, NotFound
from lancelet.storage.store import Store

__all__ = ["Check", "StoreFactory", "checks", "expect", "expect_error"]

#: Makes a store at a new, empty place with each call.
StoreFactory = Callable[[], Store]

#: A letter of every kind that has broken a store somewhere: blanks, URI syntax, other scripts, composed letters.
ODD_NAMES = (
    "a b",
    "50%",
    "100%25",
    "a#b",
    "a?b",
    "a+b&c=d",
    "ümlaut",
    "日本語/ファイル",
    "e\u0301",
    "[x]",
    "'q\"",
    "~",
    "-",
)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a store must do; call it with a factory. Fails with AssertionError."""

    name: str
    run: Callable[[StoreFactory], None]
    #: Whether it needs a place that other processes see.
    across_processes: bool = False

    def __call__(self, factory: StoreFactory) -> None:
        self.run(factory)

    def __str__(self) -> str:
        return self.name


def checks(*, across_processes: bool = True) -> list[Check]:
    """Every check, or those that one process can make by itself.

    >>> [check.name for check in checks(across_processes=False)][:2]
    ['ranges come back in the order asked', 'a range past the end is Corrupt']
    """
    from lancelet.testing import storage_races

    found = [Check(name, run) for name, run in _CHECKS]
    found += [Check(name, run) for name, run in storage_races.IN_ONE_PROCESS]
    if across_processes:
        found += [Check(name, run, across_processes=True) for name, run in storage_races.ACROSS_PROCESSES]
    return found


def expect(found: object, expected: object, what: str) -> None:
    """AssertionError unless both are equal."""
    if found != expected:
        raise AssertionError(f"{what}: found {_short(found)}, expected {_short(expected)}")


@contextmanager
def expect_error(kind: type[LanceletError], store: Store, path: str | None = None) -> Iterator[None]:
    """AssertionError unless the block raises ``kind``, naming the object where ``path`` is given."""
    try:
        yield
    except kind as error:
        if path is not None and not (error.uri or "").endswith(path):
            raise AssertionError(f"{kind.__name__} names {error.uri!r}, expected the object {path!r}") from error
        if not (error.uri or "").startswith(store.uri):
            raise AssertionError(f"{kind.__name__} names {error.uri!r}, expected it below {store.uri!r}") from error
    else:
        raise AssertionError(f"nothing was raised, expected {kind.__name__} for {path!r}")


def names(store: Store, prefix: str = "", start_after: str = "") -> list[str]:
    """The paths of a listing."""
    return [entry.path for entry in store.list_from(prefix, start_after)]


def _short(value: object) -> str:
    text = repr(bytes(value) if isinstance(value, memoryview) else value)
    return text if len(text) < 400 else f"{text[:200]}…{text[-150:]}"


def _ranges_keep_their_order(factory: StoreFactory) -> None:
    store = factory()
    content = bytes(range(256)) * 40
    store.put("data/a.bin", content)
    wanted = [(9000, 5), (0, 10), (5, 10), (0, 10), (10239, 1), (0, 10240), (100, 0), (10240, 0), (3, 1)]
    found = store.read("data/a.bin", wanted)
    expect([bytes(view) for view in found], [content[at : at + size] for at, size in wanted], "ranges read")
    for view in found:
        expect((view.format, view.ndim, view.readonly), ("B", 1, True), "form of a view")
    expect(store.read("data/a.bin", []), [], "no ranges read")
    scattered = [(at * 37 % 10000, at % 50) for at in range(500)]
    found = store.read("data/a.bin", scattered)
    expect([bytes(view) for view in found], [content[at : at + size] for at, size in scattered], "500 ranges read")


def _past_the_end_is_corrupt(factory: StoreFactory) -> None:
    store = factory()
    store.put("a.bin", b"0123456789")
    for wanted in ([(5, 6)], [(10, 1)], [(0, 4), (2**40, 1)], [(0, 11)], [(2**64 - 8, 8)]):
        with expect_error(Corrupt, store, "a.bin"):
            store.read("a.bin", wanted)
    for negative in ([(-1, 2)], [(0, -1)]):
        with expect_error(InvalidInput, store, "a.bin"):
            store.read("a.bin", negative)


def _whole_and_tail(factory: StoreFactory) -> None:
    store = factory()
    store.put("a.bin", b"0123456789")
    store.put("empty", b"")
    expect(bytes(store.read_all("a.bin")), b"0123456789", "whole object")
    expect((store.size("a.bin"), store.size("empty")), (10, 0), "sizes")
    for length in (0, 1, 4, 10, 11, 10**6):
        view, size = store.read_tail("a.bin", length)
        expect((bytes(view), size), (b"0123456789"[max(0, 10 - length) :], 10), f"tail of {length} bytes")
    expect(bytes(store.read_all("empty")), b"", "empty object")
    view, size = store.read_tail("empty", 4)
    expect((bytes(view), size), (b"", 0), "tail of an empty object")


def _missing_is_not_found(factory: StoreFactory) -> None:
    store = factory()
    store.put("folder/a.bin", b"x")
    for path in ("missing", "folder/missing", "folder", "nowhere/at/all", "folder/a.bin/b"):
        for ask in (
            lambda path: store.size(path),
            lambda path: store.read(path, [(0, 1)]),
            lambda path: store.read_all(path),
            lambda path: store.read_tail(path, 4),
        ):
            with expect_error(NotFound, store, path):
                ask(path)
        with expect_error(NotFound, store, path):
            store.copy(path, "target")


def _put_replaces(factory: StoreFactory) -> None:
    store = factory()
    store.put("a", b"the first, which is longer")
    before = store.read_all("a")
    store.put("a", b"second")
    expect(bytes(store.read_all("a")), b"second", "object after it was replaced")
    expect(store.size("a"), 6, "size after it was replaced")
    expect(bytes(before), b"the first, which is longer", "view taken before the object was replaced")
    store.put("a", bytearray(b"third!"))
    expect(bytes(store.read("a", [(0, 6)])[0]), b"third!", "object replaced by one of equal size")
    store.put("deep/er/still", memoryview(bytes(8)).cast("Q"))
    expect(store.size("deep/er/still"), 8, "size of an object made of 64-bit items")


def _put_if_absent_refuses(factory: StoreFactory) -> None:
    store = factory()
    store.put_if_absent("new/a", b"mine")
    for content in (b"mine", b"other"):
        with expect_error(AlreadyExists, store, "new/a"):
            store.put_if_absent("new/a", content)
    expect(bytes(store.read_all("new/a")), b"mine", "object after refused writes")
    store.put_if_absent("new/empty", b"")
    with expect_error(AlreadyExists, store, "new/empty"):
        store.put_if_absent("new/empty", b"")
    store.delete(["new/a"])
    store.put_if_absent("new/a", b"again")
    expect(bytes(store.read_all("new/a")), b"again", "object made anew after delete")


def _writer_publishes_at_close(factory: StoreFactory) -> None:
    store = factory()
    store.put("out/a", b"old")
    reused = bytearray(1000)
    with store.writer("out/a") as writer:
        expect(writer.position, 0, "position at the start")
        for number in range(10):
            reused[:] = bytes([number]) * 1000
            writer.write(reused)
        writer.write(b"")
        expect(writer.position, 10_000, "position after ten pieces")
        expect(bytes(store.read_all("out/a")), b"old", "object before close")
        expect(names(store), ["out/a"], "listing before close")
    expect(bytes(store.read_all("out/a")), b"".join(bytes([n]) * 1000 for n in range(10)), "object after close")
    expect(writer.close(), 10_000, "second close")
    writer.abort()
    expect(store.size("out/a"), 10_000, "object after abort of a closed writer")
    with expect_error(InvalidInput, store, "out/a"):
        writer.write(b"more")
    with store.writer("out/empty"):
        pass
    expect(store.size("out/empty"), 0, "object of a writer that wrote nothing")


def _abort_leaves_nothing(factory: StoreFactory) -> None:
    store = factory()
    writer = store.writer("a")
    writer.write(b"x" * 100_000)
    writer.abort()
    writer.abort()
    with expect_error(InvalidInput, store, "a"):
        writer.close()
    try:
        with store.writer("b") as writer:
            writer.write(b"x" * 100_000)
            raise KeyError("stop")
    except KeyError:
        pass
    expect(names(store), [], "listing after aborted writes")
    store.put("c", b"old")
    writer = store.writer("c")
    writer.write(b"new")
    writer.abort()
    expect(bytes(store.read_all("c")), b"old", "object whose replacement was aborted")


def _big_objects_in_parts(factory: StoreFactory) -> None:
    store = factory()
    block = bytes(range(256)) * 4096
    with store.writer("big") as writer:
        for _ in range(33):
            writer.write(block)
        writer.write(b"end")
    total = 33 * len(block) + 3
    expect(store.size("big"), total, "size of the big object")
    parts = store.read("big", [(0, len(block)), (16 * len(block) - 5, 10), (total - 3, 3)])
    expect(bytes(parts[0]) == block, True, "first MiB is as written")
    expect([bytes(part) for part in parts[1:]], [block[-5:] + block[:5], b"end"], "pieces of the big object")
    whole = store.read("big", [(0, total)])[0]
    expect(bytes(whole) == block * 33 + b"end", True, "the whole big object is as written")
    store.copy("big", "copy")
    expect(bytes(store.read_all("copy")) == bytes(whole), True, "the copy of a big object is as written")
    store.put("big", bytes(whole[:-1]))
    expect(store.size("big"), total - 1, "size of the big object put whole")


def _listing_is_in_byte_order(factory: StoreFactory) -> None:
    store = factory()
    paths = ["a", "a.b", "a/b", "a/b/c", "a0", "b/z", "b-/a", "B", "z/y/x", "a/é", "a/\U0001f600", "a/\uffee"]
    taken: set[str] = set()
    for path in paths:
        # A place with real folders cannot hold an object and a folder of one name; it need not.
        if not any(other.startswith(path + "/") for other in paths):
            store.put(path, path.encode())
            taken.add(path)
    ordered = sorted(taken, key=str.encode)
    expect(names(store), ordered, "listing")
    for prefix in ("a", "a/", "a/b", "b", "b/", "z/y/", "missing", "missing/", "a/b/c", "a/b/cd"):
        expected = [path for path in ordered if path.startswith(prefix)]
        expect(names(store, prefix), expected, f"listing of prefix {prefix!r}")
        for after in ("a", "a/", "a/b/c", "a0", "b", "zz"):
            rest = [path for path in expected if path.encode() > after.encode()]
            expect(names(store, prefix, after), rest, f"listing of prefix {prefix!r} after {after!r}")
    sizes = {entry.path: entry.size for entry in store.list_from("")}
    expect(sizes, {path: len(path.encode()) for path in taken}, "sizes listed")
    expect(all(entry.modified > 1.5e9 for entry in store.list_from("")), True, "times listed are of this century")


def _long_listings_are_whole(factory: StoreFactory) -> None:
    store = factory()
    paths = [f"v/{number:05}.m" for number in range(1510)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda path: store.put(path, b""), paths))
    expect(names(store, "v/"), paths, "listing of 1,510 objects")
    expect(names(store, "v/", paths[1203]), paths[1204:], "listing of the last 306")
    first = store.list_from("v/")
    expect([next(first).path, next(first).path], paths[:2], "start of a listing that is not finished")
    store.delete(paths[:1500])
    expect(names(store), paths[1500:], "listing after 1,500 deletes")


def _copy_and_delete(factory: StoreFactory) -> None:
    store = factory()
    store.put("a", b"content")
    store.put("b", b"replaced by the copy")
    store.copy("a", "b")
    store.copy("a", "new/c")
    expect([bytes(store.read_all(path)) for path in ("a", "b", "new/c")], [b"content"] * 3, "copies")
    store.delete([])
    store.delete(path for path in ("a", "missing", "new/c", "nowhere/at/all"))
    expect(names(store), ["b"], "listing after delete")
    with expect_error(NotFound, store, "a"):
        store.read_all("a")


def _odd_names(factory: StoreFactory) -> None:
    store = factory()
    for name in ODD_NAMES:
        store.put(f"{name}/x", name.encode())
        store.put_if_absent(f"d/{name}", name.encode())
    expect(set(names(store, "d/")), {f"d/{name}" for name in ODD_NAMES}, "odd names listed")
    for name in ODD_NAMES:
        expect(bytes(store.read_all(f"{name}/x")), name.encode(), f"object in folder {name!r}")
        expect(bytes(store.read(f"d/{name}", [(0, 1)])[0]), name.encode()[:1], f"object {name!r}")
        expect(names(store, f"{name}/"), [f"{name}/x"], f"listing of {name!r}")
    store.copy("50%/x", "a b/y")
    store.delete(f"{name}/x" for name in ODD_NAMES)
    store.delete(f"d/{name}" for name in ODD_NAMES)
    expect(names(store), ["a b/y"], "listing after delete")


def _paths_stay_below_the_root(factory: StoreFactory) -> None:
    store = factory()
    for path in ("", "/a", "../a", "a/../../b", "a/..", "./a", "a//b", "a/", "a\0b", ".tmp-1", "a/.tmp-1"):
        for ask in (
            lambda path: store.read_all(path),
            lambda path: store.put(path, b""),
            lambda path: store.put_if_absent(path, b""),
            lambda path: store.writer(path),
            lambda path: store.delete([path]),
            lambda path: store.copy(path, "a"),
        ):
            with expect_error(InvalidInput, store):
                ask(path)
    expect(names(store), [], "listing after refused paths")


def _stores_pickle(factory: StoreFactory) -> None:
    store = factory()
    store.put("a", b"content")
    twin = pickle.loads(pickle.dumps(store))
    expect(twin.uri, store.uri, "URI of the copy")
    expect(bytes(twin.read_all("a")), b"content", "object read through the copy")
    twin.put("b", b"back")
    expect(bytes(store.read_all("b")), b"back", "object written through the copy")
    expect(isinstance(store, Store), True, "the store has every method of Store")


_CHECKS: tuple[tuple[str, Callable[[StoreFactory], None]], ...] = (
    ("ranges come back in the order asked", _ranges_keep_their_order),
    ("a range past the end is Corrupt", _past_the_end_is_corrupt),
    ("whole objects and tails", _whole_and_tail),
    ("what is missing is NotFound", _missing_is_not_found),
    ("put replaces whole objects", _put_replaces),
    ("put_if_absent refuses what exists", _put_if_absent_refuses),
    ("a writer publishes at close", _writer_publishes_at_close),
    ("an aborted writer leaves nothing", _abort_leaves_nothing),
    ("big objects are written in parts", _big_objects_in_parts),
    ("listings are in byte order", _listing_is_in_byte_order),
    ("long listings are whole", _long_listings_are_whole),
    ("copy and delete", _copy_and_delete),
    ("odd names are kept", _odd_names),
    ("paths stay below the root", _paths_stay_below_the_root),
    ("stores pickle", _stores_pickle),
)
