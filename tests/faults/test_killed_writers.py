"""Writers of both implementations race in many processes and are killed at random: nothing acknowledged is lost.

Each writer says in a diary what it begins and what it is told. Run as a script, this file forks a writer for each line
of input, the name of a kind, and prints its process id, so that everything is imported once for all of them.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lancelet.file import LanceFileReader
from lancelet.file.data_file import open_file
from lancelet.format import operations as op
from lancelet.format.transaction import Transaction
from lancelet.rows.deletions import DeletionVector, union
from lancelet.storage import open_store
from lancelet.storage.store import Store
from lancelet.table.commit import commit
from lancelet.table.deletions import deletions_of
from lancelet.table.outcome import Committed
from lancelet.table.paths import Places
from lancelet.table.snapshot import open_snapshot
from lancelet.table.versions import list_versions
from lancelet.testing.servers import ServedStore
from lancelet.testing.tables import write_fragment, write_table, written_deletion

with warnings.catch_warnings():
    # It warns of forks; here it is used in the children only.
    warnings.simplefilter("ignore")
    import lance

#: Rows of each append.
ROWS = 5


def rows(first: int) -> pa.Table:
    """Some rows, whose second column tells whether they are torn."""
    keys = np.arange(first, first + ROWS)
    return pa.table({"key": keys, "twice": keys * 2})


class Ours:
    """Changes by our commits."""

    def __init__(self, uri: str, options: dict[str, str] | None) -> None:
        self.store: Store = open_store(uri, storage_options=options)

    def append(self, first: int) -> bool:
        """Append rows; whether that was committed."""
        snapshot = open_snapshot(self.store)
        operation = op.Append((write_fragment(self.store, rows(first)),))
        return isinstance(commit(snapshot, Transaction(snapshot.version, operation)), Committed)

    def existing_key(self) -> int | None:
        """A key of some row that lives in the newest version."""
        snapshot = open_snapshot(self.store)
        self.snapshot, places = snapshot, Places.of(snapshot)
        fragment = random.choice(list(snapshot.manifest.fragments))
        place, path = places.data_file(fragment.files[0])
        keys = LanceFileReader(path, _file=open_file(place, path)).read_all().to_table()["key"].to_numpy()
        deleted = deletions_of(places, fragment)
        live = np.setdiff1d(np.arange(len(keys)), deleted.rows)
        offset = int(random.choice(live.tolist()))
        self.place = fragment, deleted, offset
        return int(keys[offset])

    def delete(self, key: int) -> bool:
        """Delete the row that was found last; whether that was committed."""
        fragment, deleted, offset = self.place
        own = np.array([offset], np.uint32)
        after = union([deleted, DeletionVector(own)])
        if len(after) == fragment.physical_rows:
            operation = op.Delete((), (fragment.id,), f"key = {key}")
        else:
            changed = written_deletion(self.snapshot, fragment.id, after.rows.tolist())
            operation = op.Delete((changed,), (), f"key = {key}")
        transaction = Transaction(self.snapshot.version, operation)
        return isinstance(commit(self.snapshot, transaction, affected_rows={fragment.id: own}), Committed)


class Theirs:
    """Changes by pylance."""

    def __init__(self, uri: str, options: dict[str, str] | None) -> None:
        self.uri, self.options = uri, options

    def append(self, first: int) -> bool:
        """Append rows; whether that was committed."""
        try:
            lance.write_dataset(rows(first), self.uri, mode="append", storage_options=self.options)
        except OSError as error:
            return not refused(error)
        return True

    def existing_key(self) -> int | None:
        """A key of some row that lives in the newest version."""
        keys = lance.dataset(self.uri, storage_options=self.options).to_table(columns=["key"])["key"].to_pylist()
        return random.choice(keys) if keys else None

    def delete(self, key: int) -> bool:
        """Delete the row of a key; whether that was committed."""
        try:
            lance.dataset(self.uri, storage_options=self.options).delete(f"key = {key}")
        except OSError as error:
            return not refused(error)
        return True


def refused(error: OSError) -> bool:
    """Whether an error says that a commit gave way to others; every other error is one."""
    if "onflict" not in str(error) and "contention" not in str(error):
        raise error
    return True


WRITERS = {"lancelet": Ours, "pylance": Theirs}


def work(kind: str, uri: str, options: dict[str, str] | None, diary: Path, starter: int) -> None:
    """Append and delete until killed."""
    writer = WRITERS[kind](uri, options)
    random.seed()
    with diary.open("a", buffering=1) as said:
        while os.getppid() == starter:
            if random.random() < 0.6:
                what, key = "append", random.getrandbits(50) * ROWS
            else:
                what, key = "delete", writer.existing_key()
            if key is None:
                continue
            said.write(f"begin {what} {key}\n")
            done = writer.append(key) if what == "append" else writer.delete(key)
            said.write(f"{'done' if done else 'refused'} {what} {key}\n")
            # Without a pause one of them runs away with all versions, and the others wait ever longer.
            time.sleep(random.uniform(0, 0.05))


def main() -> None:
    """Fork a writer for each line of input."""
    folder, options = Path(sys.argv[1]), json.loads(sys.argv[2])
    uri = sys.argv[3] if len(sys.argv) > 3 else str(folder / "t.lance")
    starter = os.getpid()
    for number, line in enumerate(sys.stdin):
        child = os.fork()
        if child == 0:
            try:
                work(line.strip(), uri, options, folder / f"diary-{number}", starter)
            except BaseException as error:  # noqa: BLE001  the test tells of it
                (folder / f"error-{number}").write_text(f"{line.strip()}: {error!r}")
            os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


def race(folder: Path, uri: str, options: dict[str, str] | None, *, writers: int, kills: int, life: float) -> None:
    """Let as many writers at a time change a table, and kill one after another, each after about ``life`` seconds."""
    command = [sys.executable, __file__, str(folder), json.dumps(options), uri]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as script:
        assert script.stdin is not None
        assert script.stdout is not None

        def start(kind: str) -> tuple[str, int]:
            assert script.stdin is not None
            assert script.stdout is not None
            print(kind, file=script.stdin, flush=True)
            return kind, int(script.stdout.readline())

        running = [start(list(WRITERS)[number % 2]) for number in range(writers)]
        for _ in range(kills):
            time.sleep(random.uniform(0, 2 * life / writers))
            kind, process = running.pop(random.randrange(len(running)))
            os.kill(process, signal.SIGKILL)
            running.append(start(kind))
        time.sleep(life)
        for _, process in running:
            os.kill(process, signal.SIGKILL)
    assert [path.read_text() for path in folder.glob("error-*")] == []


def answers(folder: Path) -> dict[tuple[str, int], list[str]]:
    """How each attempt at each change ended, by the diaries: done, refused, unanswered."""
    found: dict[tuple[str, int], list[str]] = {}
    for path in folder.glob("diary-*"):
        lines = [line.split() for line in path.read_text().splitlines()]
        for at, (word, what, key) in enumerate(lines):
            if word == "begin":
                ended = lines[at + 1][0] if at + 1 < len(lines) else "unanswered"
                found.setdefault((what, int(key)), []).append(ended)
    return found


def check_rows(keys: set[int], ended: Mapping[tuple[str, int], Sequence[str]]) -> None:
    """Whether the rows there are, are those that were acknowledged, and whole appends of the unanswered ones."""
    firsts = {key: ends[0] for (what, key), ends in ended.items() if what == "append"} | {0: "done"}
    assert keys <= {first + at for first in firsts for at in range(ROWS)}
    for first, end in firsts.items():
        deletes = {key: ended.get(("delete", key), ()) for key in range(first, first + ROWS)}
        # Deleted for sure, or perhaps.
        gone = {key for key, ends in deletes.items() if "done" in ends}
        unsure = {key for key, ends in deletes.items() if "unanswered" in ends}
        there = keys & set(deletes)
        assert not there & gone, f"rows {there & gone} are back"
        if end == "refused" or (end == "unanswered" and not there):
            assert not there, f"rows {there} were refused"
        else:
            lost = set(deletes) - there - gone - unsure
            assert not lost, f"rows {lost} of an append that is {end} are lost"


def check(folder: Path, uri: str, options: dict[str, str] | None) -> Counter[str]:
    """What was acknowledged is there, once; both read the same, every version; how many attempts ended how."""
    store, ended = open_store(uri, storage_options=options), answers(folder)
    found = lance.dataset(uri, storage_options=options).to_table()
    keys = found["key"].to_pylist()
    assert found["twice"].to_pylist() == [2 * key for key in keys], "torn rows"
    assert len(keys) == len(set(keys)), "a row was committed twice"
    check_rows(set(keys), ended)
    latest = open_snapshot(store)
    assert latest.count_rows() == len(keys)
    versions = [item.version for item in list_versions(store)]
    assert versions == list(range(latest.version, 0, -1))
    for version in random.Random(0).sample(versions, min(10, len(versions))):
        ours, theirs = open_snapshot(store, version=version), lance.dataset(uri, version, storage_options=options)
        assert ours.count_rows() == theirs.count_rows() == theirs.to_table().num_rows
    return Counter(f"{what} {end}" for (what, _), ends in ended.items() for end in ends)


def race_and_check(
    folder: Path, uri: str, options: dict[str, str] | None, *, writers: int, kills: int, life: float
) -> None:
    write_table(open_store(uri, storage_options=options), rows(0))
    race(folder, uri, options, writers=writers, kills=kills, life=life)
    counts = check(folder, uri, options)
    assert counts["append done"] > kills / 2
    assert counts["delete done"] > kills / 10
    assert counts["append unanswered"] + counts["delete unanswered"] > kills / 10, counts


def test_writers_of_both_killed_at_random_lose_and_tear_nothing(tmp_path: Path) -> None:
    race_and_check(tmp_path, str(tmp_path / "t.lance"), None, writers=4, kills=12, life=0.5)


@pytest.mark.long
def test_many_writers_of_both_killed_at_random_lose_and_tear_nothing(tmp_path: Path) -> None:
    race_and_check(tmp_path, str(tmp_path / "t.lance"), None, writers=8, kills=250, life=1.5)


@pytest.mark.long
def test_many_writers_of_both_killed_at_random_on_s3_lose_and_tear_nothing(
    tmp_path: Path, s3_server: ServedStore
) -> None:
    race_and_check(tmp_path, s3_server.place(), s3_server.storage_options, writers=4, kills=60, life=4)


if __name__ == "__main__":
    main()
