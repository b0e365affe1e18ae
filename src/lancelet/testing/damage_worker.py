"""Reads damaged files in a process of its own and says what went wrong: run as ``python -m``, driven over stdin.

Input: one JSON object, a :class:`Batch`. Output: one JSON line for each outcome that is neither rows nor a typed error
that says where; last ``{"cases": …, "refused": …}``. The name of the case under way stands in the file ``progress``,
should this process not live to tell.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import resource
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from lancelet.errors import Corrupt, LanceletError, OverBudget, Unsupported
from lancelet.file import LanceFileReader
from lancelet.file.data_file import open_file
from lancelet.storage import Store, open_store
from lancelet.storage.counting import CountingStore
from lancelet.testing.bombs import bombs
from lancelet.testing.damage import Damage, boundaries, damages, lies

__all__ = ["Batch", "main"]

_EXPECTED = (Corrupt, Unsupported, OverBudget)
_ADDRESSES = 2 * 2**30
_AT_ODDS = ("differ in length", "disagree", "lists name items past")
_RANGE, _TAKEN = 1000, 23


@dataclass(frozen=True, slots=True)
class Batch:
    """What to damage and how often. ``kind``: ``damages``, ``boundaries``, ``lies``, ``bombs`` or ``as they are``."""

    files: tuple[str, ...]
    kind: str
    seed: int
    #: Damaged forms of each file, where they are drawn.
    count: int
    progress: str
    #: The most seconds and bytes that one case may take.
    seconds: float = 10.0
    memory: int = 256 * 2**20

    def to_json(self) -> str:
        """For the worker's stdin."""
        return json.dumps(asdict(self))

    def cases(self, file: str) -> Iterator[Damage]:
        """The damaged forms of one file."""
        data = Path(file).read_bytes()
        match self.kind:
            case "boundaries":
                return boundaries(data)
            case "lies":
                found = list(lies(data))
                return iter(random.Random(f"{self.seed} {file}").sample(found, min(self.count, len(found))))
            case "bombs":
                return bombs(data)
            case "as they are":
                return iter([Damage("as it is", data)])
        return damages(data, random.Random(f"{self.seed} {Path(file).name}"), self.count)


def main() -> None:
    """Carry out the batch on stdin."""
    given = json.loads(sys.stdin.read())
    batch = Batch(**given | {"files": tuple(given["files"])})
    _limit_addresses()
    cases = refused = 0
    with open(batch.progress, "w", encoding="utf-8") as progress:
        for file in batch.files:
            for at, damage in enumerate(batch.cases(file)):
                name = f"{Path(file).name}: {batch.kind} {at} of seed {batch.seed}: {damage.name}"
                progress.seek(0)
                progress.truncate()
                progress.write(name)
                progress.flush()
                faulthandler.dump_traceback_later(batch.seconds, exit=True)
                before = _reset_peak()
                wrong, stopped = _try(damage, mapped=at % 2 == 0)
                grown = _peak() - before
                faulthandler.cancel_dump_traceback_later()
                cases, refused = cases + 1, refused + stopped
                if grown > batch.memory:
                    wrong.append(f"took {grown:,} bytes for a file of {len(damage.data):,}")
                for one in wrong:
                    _say({"case": name, "wrong": one})
    _say({"cases": cases, "refused": refused})


def _say(line: dict[str, str | int]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _try(damage: Damage, *, mapped: bool) -> tuple[list[str], bool]:
    """What was wrong with the reads of one file, and whether any of them was refused."""
    store: Store = open_store("memory://damaged")
    store.put("f.lance", damage.data)
    if not mapped:
        store = CountingStore(store)
    wrong: list[str] = []
    refused = False
    reader: LanceFileReader | None = None

    def opened() -> None:
        nonlocal reader
        reader = LanceFileReader("f.lance", _file=open_file(store, "f.lance"))

    steps: list[Callable[[], None]] = [opened]
    while steps:
        try:
            steps.pop(0)()
        except _EXPECTED as error:
            refused = True
            wrong += _lacks(error, damage)
        except Exception as error:  # noqa: BLE001 - any other kind is the finding
            last = traceback.extract_tb(error.__traceback__)[-3:]
            places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(last))
            wrong.append(f"{type(error).__name__}: {error!s:.200} at {places}")
        if reader is not None:
            steps, reader = _reads(reader), None
    return wrong, refused


def _reads(reader: LanceFileReader) -> list[Callable[[], None]]:
    rows = reader.num_rows()
    some = min(rows // 2, _RANGE)
    chosen = [at * (rows - 1) // _TAKEN for at in range(_TAKEN + 1)] if rows else []
    return [
        lambda: _check(reader.read_all().to_table(), rows),
        lambda: _check(reader.read_range(rows // 3, some).to_table(), some),
        lambda: _check(reader.take_rows(chosen).to_table(), len(chosen)),
    ]


def _check(table: pa.Table, rows: int) -> None:
    # A table without columns cannot say how many rows it has.
    if table.num_rows != rows and table.num_columns:
        raise ValueError(f"{table.num_rows} rows, expected {rows}")
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        # A decimal with more digits than its type has is a wrong value, but no danger to whoever reads it.
        if "does not fit in precision" not in str(error):
            raise


def _lacks(error: LanceletError, damage: Damage) -> list[str]:
    """What an error should say and does not."""
    lacking = ["uri"] if error.uri is None else []
    if damage.in_page:
        known = {"column": error.column, "page": error.page, "byte_range": error.byte_range}
        if any(words in error.message for words in _AT_ODDS):
            # Several columns are at odds; no page of one of them is to blame.
            known = {"column": error.column}
        lacking += [name for name, value in known.items() if value is None]
    return [f"error without {', '.join(lacking)}: {error}"] if lacking else []


def _limit_addresses() -> None:
    """Let allocations fail that no machine should be asked for."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + _ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _status(name: str) -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.split(name + ":")[1].split()[0]) * 1024


def _reset_peak() -> int:
    """Forget the peak of memory so far, where the kernel allows it; what is in use now."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return _status("VmHWM")
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


if __name__ == "__main__":
    main()
