"""Runs: a pipeline planned against its table, and carried out by Spark step by step, each ended by a commit."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from lancelet.dataset.index_request import kind_of_request
from lancelet.events import emit, span
from lancelet.ops.job import readable_bytes
from lancelet.pipeline.compacting import compacted, plan_compact
from lancelet.pipeline.declaration import Embed, Pipeline
from lancelet.pipeline.embedders import model_path, save_text_model
from lancelet.pipeline.embedding import code_of_embed, embedded, embedder_of
from lancelet.pipeline.figures import RunFigures, RunPlan, StepFigures, StepPlan
from lancelet.pipeline.learning import learned
from lancelet.pipeline.lock import held
from lancelet.pipeline.rows import FINGERPRINT, INPUT, beside
from lancelet.pipeline.sources import OpenSource, open_source
from lancelet.pipeline.state import CHANGED, GONE, NEW, Inputs, TableState, compared, named
from lancelet.pipeline.transforming import code_of_transforms, register_functions, transformed
from lancelet.pipeline.upkeep import cleaned_up, indexed, plan_clean_up, plan_index
from lancelet.pipeline.writing import Written, remove_gone, write_inputs
from lancelet.spark.address import Address
from lancelet.storage import Store

__all__ = ["plan", "run"]


def plan(spark: SparkSession, pipeline: Pipeline) -> RunPlan:
    """What a run would do now. Inputs are listed and compared with the table; nothing is written."""
    work = _Work.of(spark, pipeline)
    inputs = work.inputs()
    steps = [_plan_inputs(inputs, pipeline)]
    if inputs.pending:
        steps += [_plan_embed(work, item) for item in pipeline.embed]
    steps.append(_plan_write(inputs, pipeline))
    steps += [plan_index(work.state, item) for item in pipeline.index]
    if pipeline.compact is not None:
        steps.append(plan_compact(work.state, pipeline.compact))
    if pipeline.cleanup is not None:
        steps.append(plan_clean_up(work.state, pipeline.cleanup))
    return RunPlan(pipeline.name, work.state.uri, tuple(steps))


def run(spark: SparkSession, pipeline: Pipeline) -> RunFigures:
    """Bring the table up to date with the source: only inputs that are new or changed are read.

    A run that was stopped is gone on with by the next; a second one finds nothing to do. Conflict where another run of
    the same pipeline is under way. Each step is told as events ``pipeline.step``.
    """
    work = _Work.of(spark, pipeline)
    before = work.version()
    with held(work.store(), f"_lancelet/pipelines/{pipeline.name}", pipeline.name):
        steps = tuple(_steps(work))
    return RunFigures(pipeline.name, work.state.uri, before, work.version(), steps)


@dataclass(frozen=True, slots=True)
class _Work:
    """What is known of a run before its inputs are."""

    spark: SparkSession
    pipeline: Pipeline
    source: OpenSource
    state: TableState
    #: What decides, besides the inputs, which rows come of them.
    code: str

    @staticmethod
    def of(spark: SparkSession, pipeline: Pipeline) -> _Work:
        """A pipeline in a session."""
        # Absolute, because tasks run in other folders.
        uri = Address(uri=beside(pipeline.write.table, pipeline.folder)).absolute().uri
        pipeline = replace(pipeline, write=replace(pipeline.write, table=uri))
        for index in pipeline.index:
            # Known before anything is written rather than after.
            kind_of_request(index.type, index.parameters)
        register_functions(spark, pipeline)
        source = open_source(spark, pipeline)
        told = [source.code, *code_of_transforms(pipeline), *(code_of_embed(item, pipeline) for item in pipeline.embed)]
        code = hashlib.sha256("\n".join(told).encode()).hexdigest()
        state = TableState(spark, uri, pipeline.name, pipeline.write.storage_options)
        return _Work(spark, pipeline, source, state, code)

    def inputs(self) -> Inputs:
        """All inputs, compared with the table."""
        return compared(self.source.marks(), self.state, self.code, append=self.pipeline.write.mode == "append")

    def rows(self, chosen: DataFrame) -> DataFrame:
        """The rows of inputs after all transforms."""
        return transformed(self.source.rows(chosen), self.pipeline)

    def store(self) -> Store:
        """The table's folder."""
        return self.state.address.main_store()

    def version(self) -> int | None:
        """The newest version of the table, if there is one."""
        return self.state.address.open().version if self.state.exists else None


def _steps(work: _Work) -> Iterator[StepFigures]:
    """The steps, each carried out when it is asked for."""
    pipeline, state = work.pipeline, work.state
    with _timed(work, "inputs") as clock:
        inputs = work.inputs()
    yield _inputs_figures(inputs, clock.seconds)
    for item in pipeline.embed if inputs.pending else ():
        if item.builtin:
            yield _step(work, "learn", partial(_learn, work, item, inputs))
    yield _step(work, "write", partial(_write, work, inputs))
    if not state.exists:
        return
    if pipeline.compact is not None:
        # Before the indexes, so that these are brought up to date once.
        yield _step(work, "compact", partial(compacted, state, pipeline.compact))
    for index in pipeline.index:
        yield _step(work, "index", partial(indexed, state, index))
    if pipeline.cleanup is not None:
        yield _step(work, "cleanup", partial(cleaned_up, state, pipeline.cleanup))


@dataclass(slots=True)
class _Clock:
    seconds: float = 0.0


@contextmanager
def _timed(work: _Work, name: str) -> Iterator[_Clock]:
    clock, began = _Clock(), time.perf_counter()
    with span("pipeline.step", pipeline=work.pipeline.name, step=name, uri=work.state.uri):
        yield clock
    clock.seconds = time.perf_counter() - began


def _step(work: _Work, name: str, do: Callable[[], StepFigures]) -> StepFigures:
    with _timed(work, name) as clock:
        made = do()
    return replace(made, seconds=clock.seconds)


def _said(inputs: Inputs, *, keeps: bool) -> str:
    gone = f"{inputs.gone:,} gone" + (" (their rows are kept)" if keeps and inputs.gone else "")
    return f"{inputs.new:,} new, {inputs.changed:,} changed, {gone}, {inputs.same:,} as they were"


def _inputs_figures(inputs: Inputs, seconds: float) -> StepFigures:
    facts = {"new": inputs.new, "changed": inputs.changed, "gone": inputs.gone, "same": inputs.same}
    return StepFigures("inputs", _said(inputs, keeps=False), seconds, idle=True, facts=facts)


def _plan_inputs(inputs: Inputs, pipeline: Pipeline) -> StepPlan:
    facts = {"new": inputs.new, "changed": inputs.changed, "gone": inputs.gone, "same": inputs.same}
    return StepPlan("inputs", _said(inputs, keeps=not pipeline.write.deletes), idle=True, facts=facts)


def _has_model(work: _Work, embed: Embed) -> bool:
    path = model_path(work.pipeline.name, embed)
    return any(entry.path == path for entry in work.store().list_from(path))


def _plan_embed(work: _Work, embed: Embed) -> StepPlan:
    name = f"{embed.column} into {embed.into}, {embed.dimension} numbers each"
    if not embed.builtin:
        model = embed.model if embed.function is None and embed.load is None else "a function"
        return StepPlan("embed", f"{name}, by {model}")
    if _has_model(work, embed):
        return StepPlan("embed", f"{name}, by the text model that is there")
    return StepPlan("embed", f"{name}, by a text model learned from up to {embed.sample:,} texts")


def _learn(work: _Work, embed: Embed, inputs: Inputs) -> StepFigures:
    """The built-in model, learned once: vectors of later runs are of the same model."""
    if _has_model(work, embed):
        return StepFigures("learn", "the text model is there", 0.0, idle=True)
    model = learned(work.rows(inputs.share(0, 1)), embed)
    path = model_path(work.pipeline.name, embed)
    save_text_model(model, work.state.address.uri, path, work.state.storage_options)
    what = f"a text model of {len(model.terms):,} terms, {embed.dimension} numbers each"
    return StepFigures("learn", what, 0.0, facts={"terms": len(model.terms)})


def _commits(inputs: Inputs, pipeline: Pipeline) -> int:
    return -(-inputs.pending // pipeline.write.inputs_per_commit)


def _plan_write(inputs: Inputs, pipeline: Pipeline) -> StepPlan:
    commits = _commits(inputs, pipeline)
    parts = []
    if inputs.pending:
        if inputs.size is not None:
            parts.append(f"{readable_bytes(inputs.size)} read")
        parts.append(
            f"rows of {inputs.pending:,} inputs by {commits} commit{'s' * (commits > 1)}, mode {pipeline.write.mode}"
        )
    if inputs.gone and pipeline.write.deletes:
        parts.append(f"rows of {inputs.gone:,} inputs deleted")
    return StepPlan("write", "; ".join(parts) or "nothing to write", idle=not parts, facts={"commits": commits})


def _write(work: _Work, inputs: Inputs) -> StepFigures:
    """Share by share of the inputs: read, transformed, embedded, and committed before the next."""
    pipeline, state = work.pipeline, work.state
    shares, done = _commits(inputs, pipeline), Written()
    numbers = inputs.full_shares(shares)
    for place, number in enumerate(numbers, 1):
        chosen = inputs.share(number, shares)
        frame = work.rows(chosen)
        for item in pipeline.embed:
            frame = embedded(frame, embedder_of(item, pipeline))
        part = f", part {place} of {len(numbers)}" if len(numbers) > 1 else ""
        message = f"pipeline {pipeline.name}: {_said(inputs, keeps=False)}{part}"
        rows = named(frame, chosen, state.prefix)
        goes = _goes(inputs, chosen, pipeline, first=place == 1)
        done += write_inputs(rows, chosen, inputs, state, pipeline.write, goes=goes, message=message)
        facts = {"version": done.version, "done": place, "total": len(numbers)}
        emit("pipeline.commit", pipeline=pipeline.name, uri=state.uri, **facts)
    if inputs.gone and pipeline.write.deletes and not (shares and pipeline.write.mode == "sync"):
        done += remove_gone(inputs, state, f"pipeline {pipeline.name}: {inputs.gone:,} inputs gone")
    if inputs.pending:
        _tell_empty(inputs, state)
    if not done.commits:
        return StepFigures("write", "nothing to write", 0.0, idle=True, facts=asdict(done))
    told = ((done.inserted, "inserted"), (done.updated, "updated"), (done.deleted, "deleted"))
    what = ", ".join(f"{count:,} rows {name}" for count, name in told if count) or "no rows"
    return StepFigures("write", f"{what}; {readable_bytes(done.num_bytes)} written", 0.0, facts=asdict(done))


def _goes(inputs: Inputs, chosen: DataFrame, pipeline: Pipeline, *, first: bool) -> DataFrame | None:
    """Inputs whose rows go by the same commit as new rows come; those that are gone with the first. None if none do."""
    if pipeline.write.mode != "sync":
        return None
    goes = chosen.select(INPUT) if inputs.changed else None
    if not (first and inputs.gone and pipeline.write.deletes):
        return goes
    gone = inputs.of_kind(GONE).select(INPUT)
    return gone if goes is None else goes.union(gone)


def _tell_empty(inputs: Inputs, state: TableState) -> None:
    """Inputs that were read and gave no rows are not read again as long as they stay as they are."""
    pending = inputs.of_kind(NEW, CHANGED)
    without = (
        pending.join(state.pairs(), [INPUT, FINGERPRINT], "left_anti").select(INPUT, FINGERPRINT).localCheckpoint()
    )
    if without.limit(1).count():
        state.tell_empty(without)
