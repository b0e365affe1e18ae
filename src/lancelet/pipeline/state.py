"""State: which inputs are new, changed or gone, told by comparing the source with the rows that the table has.

The table itself says from which input each row came and in which state that was, so rows and state are of one commit:
a run that is stopped anywhere is gone on with, and after a restore of an earlier version what is missing is made again.
Inputs that give no rows leave none in the table; they are told in a small table of their own. Its entries are true
whatever version the other has, because an input in the same state gives no rows again.

    table/_input, _fingerprint                   "<pipeline>|<input>", hash of the input's mark and of the declaration
    table/_lancelet/pipelines/<name>/empty       a Lance table of the same two columns
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import (
    array_contains,
    broadcast,
    col,
    collect_set,
    concat,
    count,
    first,
    lit,
    pmod,
    size,
    substring,
    when,
    xxhash64,
)
from pyspark.sql.functions import max as most
from pyspark.sql.functions import sum as total
from pyspark.sql.types import StructField

from lancelet.errors import InvalidInput
from lancelet.pipeline.rows import FINGERPRINT, INPUT, KIND, MARK, SIZE, quoted
from lancelet.spark.address import Address
from lancelet.spark.frames import read
from lancelet.spark.table import LanceTable
from lancelet.spark.writes import write

__all__ = ["CHANGED", "GONE", "NEW", "Inputs", "TableState", "compared", "few", "named"]

NEW, CHANGED, GONE, SAME = "new", "changed", "gone", "same"
_COPIES, _SIDE = "__lancelet_copies", "__lancelet_side"
#: Inputs up to this number go to every task, rather than rows to where their inputs are.
_FEW = 1_000_000


@dataclass(frozen=True, slots=True)
class TableState:
    """Where the state of a pipeline is kept."""

    spark: SparkSession
    uri: str
    pipeline: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def prefix(self) -> str:
        """What the names of this pipeline's inputs begin with in the table."""
        return f"{self.pipeline}|"

    @property
    def address(self) -> Address:
        """Of the table."""
        return Address(uri=self.uri, storage_options=dict(self.storage_options)).absolute()

    @property
    def exists(self) -> bool:
        """Whether there is a table."""
        return LanceTable.isLanceTable(self.spark, self.uri, storage_options=self.storage_options)

    def pairs(self) -> DataFrame:
        """Inputs that the table has rows of, in all states that these are in."""
        known = {item.name for item in self.address.open().schema.fields} if self.exists else set()
        if not {INPUT, FINGERPRINT} <= known:
            return self._none()
        rows = read(self.spark, self.uri, columns=[INPUT, FINGERPRINT], storage_options=self.storage_options)
        mine = rows.where(col(INPUT).startswith(self.prefix)).distinct()
        return mine.select(substring(INPUT, lit(len(self.prefix) + 1), lit(2**31 - 1)).alias(INPUT), FINGERPRINT)

    def empty(self) -> DataFrame:
        """Inputs that gave no rows, and their states then."""
        place = self._empty_place()
        if not LanceTable.isLanceTable(self.spark, place, storage_options=self.storage_options):
            return self._none()
        return read(self.spark, place, storage_options=self.storage_options)

    def tell_empty(self, pairs: DataFrame) -> None:
        """Keep in mind that these inputs, besides those known already, give no rows."""
        place = self._empty_place()
        together = pairs.select(INPUT, FINGERPRINT).union(self.empty()).distinct()
        write(together, place, mode="overwrite", storage_options=self.storage_options)
        LanceTable.forPath(self.spark, place, storage_options=self.storage_options).vacuum(0)

    def _empty_place(self) -> str:
        return f"{self.address.uri.rstrip('/')}/_lancelet/pipelines/{self.pipeline}/empty"

    def _none(self) -> DataFrame:
        return self.spark.createDataFrame([], f"{INPUT} string, {FINGERPRINT} long")


@dataclass(frozen=True, slots=True)
class Inputs:
    """All inputs, and what is to become of them: evaluated once, and counted."""

    frame: DataFrame
    new: int
    changed: int
    gone: int
    same: int
    #: Bytes of those that are to be read; None where the source does not know.
    size: int | None = None

    @property
    def pending(self) -> int:
        """How many are to be read."""
        return self.new + self.changed

    def full_shares(self, shares: int) -> list[int]:
        """The shares that have inputs at all: which one an input is in is left to a hash of its name."""
        if shares <= 1:
            return list(range(shares))
        bucket = pmod(xxhash64(INPUT), lit(shares)).alias("bucket")
        found = self.frame.where(col(KIND).isin(NEW, CHANGED)).select(bucket).distinct().collect()
        return sorted(row.bucket for row in found)

    def share(self, number: int, shares: int) -> DataFrame:
        """One of several shares of the inputs that are to be read, of about the same size."""
        wanted = col(KIND).isin(NEW, CHANGED)
        if shares > 1:
            wanted = wanted & (pmod(xxhash64(INPUT), lit(shares)) == number)
        return few(self.frame.where(wanted), self.pending // shares)

    def of_kind(self, *kinds: str) -> DataFrame:
        """The inputs of some kinds."""
        counts = {NEW: self.new, CHANGED: self.changed, GONE: self.gone, SAME: self.same}
        return few(self.frame.where(col(KIND).isin(*kinds)), sum(counts[kind] for kind in kinds))


def few(frame: DataFrame, rows: int) -> DataFrame:
    """The frame, sent to every task where it has few rows."""
    return broadcast(frame) if rows <= _FEW else frame


def compared(marks: DataFrame, state: TableState, code: str, *, append: bool) -> Inputs:
    """The inputs that a source has beside those that the table has rows of.

    An input is as it was if all of its rows are of its state; with ``append`` if any are.
    """
    states, none = "__lancelet_states", "__lancelet_none"
    size_of = col(SIZE) if SIZE in marks.columns else lit(None)
    print_of = xxhash64(MARK, lit(code)).alias(FINGERPRINT)
    here = marks.select(INPUT, MARK, print_of, lit(0).alias(_SIDE), size_of.cast("long").alias(SIZE))
    sides = here
    for side, pairs in ((1, state.pairs()), (2, state.empty())):
        nothing_more = lit(None).cast("string"), FINGERPRINT, lit(side), lit(None).cast("long")
        sides = sides.union(pairs.select(INPUT, *nothing_more))
    # One shuffle for all three: inputs are found by their names.
    joined = sides.groupBy(INPUT).agg(
        first(when(col(_SIDE) == 0, col(MARK)), ignorenulls=True).alias(MARK),
        first(when(col(_SIDE) == 0, col(FINGERPRINT)), ignorenulls=True).alias(FINGERPRINT),
        count(when(col(_SIDE) == 0, 1)).alias(_COPIES),
        most(SIZE).alias(SIZE),
        collect_set(when(col(_SIDE) == 1, col(FINGERPRINT))).alias(states),
        collect_set(when(col(_SIDE) == 2, col(FINGERPRINT))).alias(none),
    )
    unknown = size(states) == 0
    alike = array_contains(states, col(FINGERPRINT)) & (lit(append) | (size(states) == 1))
    nothing = array_contains(none, col(FINGERPRINT)) & (lit(append) | unknown)
    kind = when(col(_COPIES) == 0, GONE).when(alike | nothing, SAME).when(unknown, NEW).otherwise(CHANGED)
    known = joined.where((col(_COPIES) > 0) | ~unknown)
    frame = known.select(INPUT, MARK, FINGERPRINT, _COPIES, SIZE, kind.alias(KIND)).localCheckpoint(eager=False)
    rows = frame.groupBy(KIND).agg(
        count(lit(1)).alias("n"),
        total(SIZE).alias("size"),
        most(_COPIES).alias("copies"),
        most(col(INPUT).isNull()).alias("unnamed"),
    )
    counts = {row[KIND]: row for row in rows.collect()}
    copies = max((row.copies or 0 for row in counts.values()), default=0)
    _check(frame, any(row.unnamed for row in counts.values()), copies)
    found = {kind: counts[kind].n if kind in counts else 0 for kind in (NEW, CHANGED, GONE, SAME)}
    sizes = [counts[kind].size for kind in (NEW, CHANGED) if kind in counts]
    read = None if any(size is None for size in sizes) else sum(sizes)
    return Inputs(frame.drop(_COPIES), found[NEW], found[CHANGED], found[GONE], found[SAME], read)


def _check(frame: DataFrame, unnamed: bool, copies: int) -> None:
    if unnamed:
        raise InvalidInput(
            "a row of the source has no key", hint="leave out rows whose key is null, or name another key"
        )
    if copies > 1:
        found = frame.where(col(_COPIES) > 1).orderBy(INPUT).first()
        name = None if found is None else found[INPUT]
        hint = "let the source have each key once, or name more columns as its key"
        raise InvalidInput(f"the source has {copies} rows with the key {name!r}", hint=hint)


def named(frame: DataFrame, chosen: DataFrame, prefix: str) -> DataFrame:
    """Rows with the state of their input, and its name as the table has it."""
    full = frame.join(chosen.select(INPUT, FINGERPRINT), INPUT, "inner")
    columns = [col(quoted(name)) for name in frame.columns if name != INPUT]
    told = full.select(*columns, concat(lit(prefix), col(INPUT)).alias(INPUT), FINGERPRINT)
    # Any column of the table may be null: other pipelines write to it that have none of this name.
    return told.select(*(_nullable(field) for field in told.schema.fields))


def _nullable(field: StructField) -> Column:
    value = col(quoted(field.name))
    return value if field.nullable else when(value.isNotNull(), value).alias(field.name, metadata=field.metadata)
