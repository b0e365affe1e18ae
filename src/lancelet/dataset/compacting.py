"""Compaction as users name it: a plan, tasks and results that travel as JSON or pickles, and one commit of results."""

from __future__ import annotations

import json as jsons
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from lancelet.dataset.fragments.convert import from_stored, to_stored_all
from lancelet.dataset.fragments.metadata import FragmentMetadata
from lancelet.errors import InvalidInput
from lancelet.ops.committing import CommitOptions
from lancelet.ops.compaction.commit import commit_compaction, refuse_deferred
from lancelet.ops.compaction.compact import Figures, compact_files, figures_of
from lancelet.ops.compaction.options import CompactionOptions as Options
from lancelet.ops.compaction.options import options_of
from lancelet.ops.compaction.plan import plan_compaction, task_of, written_version
from lancelet.ops.compaction.task import Compacted, CompactFragments
from lancelet.rows.moves import parse_survivors, write_survivors
from lancelet.table.outcome import committed
from lancelet.table.snapshot import Snapshot, open_snapshot

if TYPE_CHECKING:
    from lancelet.dataset.settings import DatasetSettings

__all__ = [
    "Compaction",
    "CompactionMetrics",
    "CompactionOptions",
    "CompactionPlan",
    "CompactionTask",
    "RewriteResult",
    "compacted",
]

Value = TypeVar("Value")


class CompactionOptions(TypedDict, total=False):
    """What may be said about a compaction; what is not said is as the table's config has it."""

    target_rows_per_fragment: int | None
    max_rows_per_group: int | None
    max_bytes_per_file: int | None
    materialize_deletions: bool | None
    materialize_deletions_threshold: float | None
    num_threads: int | None
    batch_size: int | None
    io_buffer_size: int | None
    compaction_mode: Literal["reencode", "try_binary_copy", "force_binary_copy"] | None
    binary_copy_read_batch_bytes: int | None
    defer_index_remap: bool | None
    max_source_fragments: int | None
    max_source_rows: int | None
    max_source_bytes: int | None
    excluded_fragment_ids: list[int] | None
    data_storage_version: str | None


@dataclass(frozen=True)
class CompactionMetrics:
    """How much a compaction took away and put in its place. Files of deleted rows count as files."""

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0


@dataclass(frozen=True, init=False, repr=False)
class CompactionTask:
    """Fragments that are written anew together; made by :meth:`Compaction.plan`, run in any process."""

    #: The version that the task was planned from, and reads.
    read_version: int
    #: The fragments that it writes anew.
    fragments: list[FragmentMetadata]
    _options: Options

    def execute(self, dataset: DatasetSettings) -> RewriteResult:
        """Write the new fragments. Nothing refers to them before :meth:`Compaction.commit`."""
        snapshot = _at(dataset.snapshot, self.read_version)
        stored = to_stored_all(self.fragments)
        version = written_version(snapshot, self._options)
        task = task_of(snapshot, stored, self._options, version, name="compact")
        return _result(task.run(snapshot.store))

    def json(self) -> str:
        """The task as JSON text, in the reference's form."""
        task = {"fragments": [item.to_json() for item in self.fragments]}
        return _text({"task": task, "read_version": self.read_version, "options": _options_tree(self._options)})

    @staticmethod
    def from_json(json: str) -> CompactionTask:
        """What :meth:`json` gave."""
        return _loaded("CompactionTask", json, lambda tree: _task(tree["task"], tree))

    def __repr__(self) -> str:
        return f"CompactionTask(read_version={self.read_version}, fragments={self.fragments!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return CompactionTask.from_json, (self.json(),)


@dataclass(frozen=True, init=False, repr=False)
class CompactionPlan:
    """What a compaction is going to do; made by :meth:`Compaction.plan`."""

    #: The version that was planned from.
    read_version: int
    tasks: list[CompactionTask]
    _options: Options

    def num_tasks(self) -> int:
        """How many tasks there are."""
        return len(self.tasks)

    def json(self) -> str:
        """The plan as JSON text, in the reference's form."""
        tasks = [{"fragments": [item.to_json() for item in task.fragments]} for task in self.tasks]
        return _text({"tasks": tasks, "read_version": self.read_version, "options": _options_tree(self._options)})

    @staticmethod
    def from_json(json: str) -> CompactionPlan:
        """What :meth:`json` gave."""
        return _loaded("CompactionPlan", json, _plan)

    def __repr__(self) -> str:
        return f"CompactionPlan(read_version={self.read_version}, tasks=<{len(self.tasks)} compaction tasks>)"

    def __reduce__(self) -> tuple[object, ...]:
        return CompactionPlan.from_json, (self.json(),)


@dataclass(frozen=True, init=False, repr=False)
class RewriteResult:
    """What a task made; to be committed together with others or alone."""

    #: The version that the task read.
    read_version: int
    metrics: CompactionMetrics
    #: The fragments that are replaced.
    original_fragments: list[FragmentMetadata]
    #: Those in their place, without ids.
    new_fragments: list[FragmentMetadata]
    #: The addresses of the rows that were written anew, as a stored set.
    _row_addrs: bytes

    def json(self) -> str:
        """The result as JSON text, in the reference's form."""
        return _text(
            {
                "metrics": asdict(self.metrics),
                "new_fragments": [item.to_json() for item in self.new_fragments],
                "read_version": self.read_version,
                "original_fragments": [item.to_json() for item in self.original_fragments],
                "row_addrs": list(self._row_addrs),
            }
        )

    @staticmethod
    def from_json(json: str) -> RewriteResult:
        """What :meth:`json` gave."""
        return _loaded("RewriteResult", json, _result_of)

    def __repr__(self) -> str:
        names = ("read_version", "new_fragments", "original_fragments")
        return f"RewriteResult({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def __reduce__(self) -> tuple[object, ...]:
        return RewriteResult.from_json, (self.json(),)


class Compaction:
    """Compaction in three steps, of which the one in between may run anywhere.

    >>> import lancelet, pyarrow as pa
    >>> dataset = lancelet.write_dataset(pa.table({"x": range(40)}), "memory://by-tasks", max_rows_per_file=10)
    >>> plan = Compaction.plan(dataset, {"target_rows_per_fragment": 20})
    >>> results = [task.execute(dataset) for task in plan.tasks]
    >>> Compaction.commit(dataset, results)
    CompactionMetrics(fragments_removed=4, fragments_added=2, files_removed=4, files_added=2)
    """

    @staticmethod
    def plan(dataset: DatasetSettings, options: CompactionOptions) -> CompactionPlan:
        """What is to be done at the version that the dataset is at."""
        given = _given(dataset, options)
        if given.defer_index_remap:
            refuse_deferred(dataset.snapshot)
        plan = plan_compaction(dataset.snapshot, given)
        # The version that a word such as stable means may be another where a task runs.
        exact = replace(given, data_storage_version=written_version(dataset.snapshot, given).label)
        tasks = [task for task in plan.tasks if isinstance(task, CompactFragments)]
        made = [_new_task(plan.read_version, [from_stored(one) for one in task.fragments], exact) for task in tasks]
        return _new_plan(plan.read_version, made, exact)

    @staticmethod
    def execute(dataset: DatasetSettings, options: CompactionOptions) -> CompactionMetrics:
        """All three steps, with the tasks on threads; the dataset is at the new version then."""
        return compacted(dataset, _given(dataset, options))

    @staticmethod
    def commit(
        dataset: DatasetSettings, rewrites: list[RewriteResult], options: CompactionOptions | None = None
    ) -> CompactionMetrics:
        """Make results a version, at which the dataset is then; they need not be those of all tasks.

        Conflict, and nothing is committed, where fragments were changed by others since they were read. The new files
        stay: those of other results can be committed all the same.
        """
        given = _given(dataset, options or {})
        if not rewrites:
            return CompactionMetrics()
        results = [_stored_result(item) for item in rewrites]
        said = CommitOptions(commit_lock=dataset.location.commit_lock)
        done = commit_compaction(dataset.snapshot, results, defer_index_remap=given.defer_index_remap, options=said)
        dataset._follow(committed(done.outcome, dataset.snapshot.uri))
        return _metrics(figures_of(results))


def compacted(dataset: DatasetSettings, options: Options) -> CompactionMetrics:
    """Compact the table of a dataset, which is at the new version then."""
    said = CommitOptions(commit_lock=dataset.location.commit_lock)
    done = compact_files(dataset.snapshot, options, commit_options=said)
    if done.committed is not None:
        dataset._follow(done.committed)
    return _metrics(done.figures)


def _given(dataset: DatasetSettings, options: object) -> Options:
    if not isinstance(options, Mapping):
        raise TypeError(f"options are {type(options).__name__}, expected a dict")
    return options_of(dataset.config(), options)


def _at(snapshot: Snapshot, version: int) -> Snapshot:
    if snapshot.version == version:
        return snapshot
    return open_snapshot(snapshot.store, version=version, options=snapshot.options)


def _metrics(found: Figures) -> CompactionMetrics:
    return CompactionMetrics(found.fragments_removed, found.fragments_added, found.files_removed, found.files_added)


def _made(kind: type[Any], **values: object) -> Any:
    made = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


def _new_task(version: int, fragments: list[FragmentMetadata], options: Options) -> CompactionTask:
    made: CompactionTask = _made(CompactionTask, read_version=version, fragments=fragments, _options=options)
    return made


def _new_plan(version: int, tasks: list[CompactionTask], options: Options) -> CompactionPlan:
    made: CompactionPlan = _made(CompactionPlan, read_version=version, tasks=tasks, _options=options)
    return made


def _new_result(
    version: int, metrics: CompactionMetrics, old: list[FragmentMetadata], new: list[FragmentMetadata], rows: bytes
) -> RewriteResult:
    made: RewriteResult = _made(
        RewriteResult,
        read_version=version,
        metrics=metrics,
        original_fragments=old,
        new_fragments=new,
        _row_addrs=rows,
    )
    return made


def _result(found: Compacted) -> RewriteResult:
    old, new = ([from_stored(item) for item in items] for items in (found.original, found.new))
    return _new_result(found.read_version, _metrics(figures_of([found])), old, new, write_survivors(found.sources))


def _stored_result(result: RewriteResult) -> Compacted:
    """A result as the commit takes it."""
    original = to_stored_all(result.original_fragments)
    told = [(item.id, item.physical_rows, item.num_deletions) for item in result.original_fragments]
    new = to_stored_all(result.new_fragments)
    return Compacted(result.read_version, original, new, parse_survivors(result._row_addrs, told))


def _options_tree(options: Options) -> dict[str, object]:
    tree = asdict(options)
    tree["excluded_fragment_ids"] = list(options.excluded_fragment_ids)
    # What the reference's own tasks say besides, so that it may run ours.
    return {
        **tree,
        "index_remap_mode": "Direct",
        "enable_binary_copy": False,
        "enable_binary_copy_force": False,
        "max_overlays_per_fragment": 10,
        "has_eager_remappable_index": None,
    }


def _options_of(tree: Mapping[str, Any]) -> Options:
    known = {item.name for item in fields(Options)}
    return options_of({}, {name: value for name, value in tree.items() if name in known})


def _task(task: Mapping[str, Any], tree: Mapping[str, Any]) -> CompactionTask:
    return _new_task(tree["read_version"], _fragments(task["fragments"]), _options_of(tree["options"]))


def _plan(tree: Mapping[str, Any]) -> CompactionPlan:
    tasks = [_task(task, tree) for task in tree["tasks"]]
    return _new_plan(tree["read_version"], tasks, _options_of(tree["options"]))


def _result_of(tree: Mapping[str, Any]) -> RewriteResult:
    metrics = CompactionMetrics(**tree["metrics"])
    old, new = _fragments(tree["original_fragments"]), _fragments(tree["new_fragments"])
    return _new_result(tree["read_version"], metrics, old, new, bytes(tree["row_addrs"]))


def _fragments(trees: Iterable[object]) -> list[FragmentMetadata]:
    return [FragmentMetadata.from_json(jsons.dumps(tree)) for tree in trees]


def _text(tree: object) -> str:
    return jsons.dumps(tree, separators=(",", ":"))


def _loaded(what: str, text: str, read: Callable[[Mapping[str, Any]], Value]) -> Value:
    try:
        return read(jsons.loads(text))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"Could not load {what} due to error: {error}") from None
