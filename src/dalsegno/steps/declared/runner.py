"""The ``Incremental`` step: captures what changed in the sources of a SELECT, writes, and commits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar
from uuid import uuid4

from dalsegno.capture.consumers import consumer_of_workflow
from dalsegno.capture.lake import Lake
from dalsegno.errors import CapturePending, DalsegnoError, DataError
from dalsegno.hints import Verb, action, as_sentence, in_step
from dalsegno.model.captures import Capture, actor_of_run
from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Succeeded
from dalsegno.model.tables import TableName
from dalsegno.plan.full_refresh import emptied_by
from dalsegno.rewrite.checks import MOST_KEYS
from dalsegno.rewrite.tables import Name
from dalsegno.spark.connect import Session
from dalsegno.steps.attempt_log import AttemptLog
from dalsegno.steps.contract import Finished, Running, Started, Work
from dalsegno.steps.declared.calling import call_for
from dalsegno.steps.declared.changed_selects import refuse_changed_select
from dalsegno.steps.declared.decision_time import DecisionTime
from dalsegno.steps.declared.dimensions import Pinned, pinned_at, pinned_names
from dalsegno.steps.declared.facts import refuse_violated
from dalsegno.steps.declared.first_runs import audit_statement, concluded_by_audit, is_due
from dalsegno.steps.declared.functions import DeclaredFunction, sources_of_table
from dalsegno.steps.declared.params import BLOCK, DeclaredTable, Dimension, declared_table
from dalsegno.steps.declared.records import concluded, decided, past_costs
from dalsegno.steps.declared.refreshing import SESSION_SETTINGS, Declared, range_columns
from dalsegno.steps.declared.sources import find, parts_of
from dalsegno.steps.declared.targets import refuse_doubtful_target
from dalsegno.steps.declared.views import over_tables
from dalsegno.steps.incremental import is_open_run, taken_over
from dalsegno.steps.spark import sql as spark_sql
from dalsegno.steps.spark.params import SparkStep, Sql
from dalsegno.steps.spark.sessions import opened_for, prepared
from dalsegno.steps.spark.sql import UseSession
from dalsegno.steps.stored_secrets import has_secrets
from dalsegno.store.refresh_queries import decision_values

#: More columns than a query has.
_MOST_COLUMNS = 10_000


class IncrementalRunner:
    """``incremental: {target: …, query: …}``, or ``{target: …, file: …}`` with a function of Python."""

    name: ClassVar[str] = "Incremental"
    raw: ClassVar[frozenset[str]] = frozenset()

    def capture(self, work: Work) -> Capture | Outcome:
        """What changed in the sources, as this run's own capture; or how the step ends without one."""
        with Lake.open(work.settings) as lake:
            table = _over_tables(lake, declared_table(work))
            lake.actor = actor_of_run(work.workflow_id, work.run_number)
            sources = sources_of_table(lake, table)
            if work.full_refresh is None and table.function is None:
                refuse_changed_select(lake, table, sources, work.workflow_id)
            # The checkpoint says how far the target is, whichever workflow, step or iteration writes it.
            consumer = _consumer(lake, table)
            every = [each.name for each in sources.values()]
            pinned = pinned_names(lake.name, table.dimensions, table.query, every)
            followed_names = [str(name) for name in every if name not in pinned]
            is_new = find(lake, lake.name(table.target)) is None or all(
                lake.position(consumer, name) is None for name in followed_names
            )
            is_full = is_new or work.full_refresh is not None
            if not is_full:
                # Long after the last full refresh, nothing else keeps what they are pinned to.
                for name in pinned:
                    lake.hold(name, consumer)
            names = [*map(str, every)] if is_full else _captured_names(lake, consumer, followed_names, every)
            options: dict[str, Any] = {
                "consumer": consumer,
                "start": "full" if is_full else None,
                "is_refresh": work.full_refresh is not None,
                "changes": "before_after",
                # Of a whole table they are all touched.
                "partitions": not is_full,
                "ranges": () if is_full or table.function else range_columns(lake, table, sources, names),
            }
            try:
                try:
                    changes = lake.capture(*names, **options)
                except CapturePending as error:
                    if not _make_room(lake, error.capture_id):
                        raise
                    changes = lake.capture(*names, **options)
            except DalsegnoError as error:
                error.hint = in_step(error.actions, work.workflow_id, work.step_id, BLOCK) or error.hint
                raise
            if changes.capture is None:
                outputs = {"has_changes": False, "strategy": "", "why": "Nothing has changed."}
                return Succeeded({**outputs, "changed_dimensions": _changed_dimensions(work)})
            if other := taken_over(lake, changes, lake.actor):
                return Failed(
                    FailureKind.PLATFORM,
                    f"Capture {changes.id} is being processed by {other}, which has not ended.",
                    hint="It is handed over when that run has ended without committing it.",
                )
            return lake.store.capture(changes.id)

    def start(self, work: Work) -> Started | Finished:
        return spark_sql.begin(work)

    def poll(self, work: Work, patience: float) -> Running | Finished:
        seen = spark_sql.poll(work, patience, _spark_step)
        if isinstance(seen, Finished) and isinstance(seen.outcome, Succeeded):
            capture = work.captures[0]
            outputs = {**seen.outcome.outputs, "has_changes": True, "capture_id": capture.id}
            outputs["changed_dimensions"] = _changed_dimensions(work, capture)
            return Finished(Succeeded(outputs, commits=capture.id))
        if isinstance(seen, Finished) and isinstance(seen.outcome, Failed):
            return Finished(concluded_by_audit(seen.outcome, work.captures[0]))
        return seen

    def let_go(self, work: Work) -> None:
        """Leave the step to another process."""
        spark_sql.let_go(work)

    def cancel(self, work: Work) -> None:
        spark_sql.cancel(work)


def _over_tables(lake: Lake, table: DeclaredTable) -> DeclaredTable:
    """The same with the views in its query expanded: a changed view is a changed SELECT."""
    return table if table.function else replace(table, query=over_tables(lake, table.query))


def _consumer(lake: Lake, table: DeclaredTable) -> str:
    return table.consumer or consumer_of_workflow(str(lake.name(table.target)))


def _captured_names(lake: Lake, consumer: str, followed: list[str], every: Sequence[TableName]) -> list[str]:
    """The sources that are followed; more if a capture of more of them is pending, as of a full refresh that broke."""
    pending = lake.store.pending(consumer, lake.name(followed[0]))
    names = {captured.table for captured in pending.tables} if pending is not None else set()
    return [str(name) for name in every if name in names] if names <= set(every) and names else followed


def _pinned(lake: Lake, work: Work, table: DeclaredTable, captured: Collection[TableName]) -> dict[Name, Pinned]:
    """The dimensions that a run reads as of their snapshots."""
    sources = sources_of_table(lake, table)
    names = pinned_names(lake.name, table.dimensions, table.query, [each.name for each in sources.values()])
    return {
        parts_of(name): pinned_at(lake, _consumer(lake, table), name, sources[parts_of(name)], work.workflow_id)
        for name in names - set(captured)
    }


def _changed_dimensions(work: Work, capture: Capture | None = None) -> list[str]:
    """The pinned dimensions that have other rows by now; the step's log says what to do about them."""
    declared = declared_table(work)
    if declared.dimensions is Dimension.FOLLOW:
        return []
    with Lake.open(work.settings) as lake:
        captured = [each.table for each in capture.tables] if capture is not None else []
        pinned = _pinned(lake, work, _over_tables(lake, declared), captured)
    changed = [each for each in pinned.values() if each.is_changed]
    with work.log.open("a", encoding="utf-8") as log:
        refresh = as_sentence(action("To read it as it is now", Verb.RUN, workflow=work.workflow_id, full_refresh=True))
        for each in changed:
            said = f"{each.table.name} has changed since snapshot {each.snapshot_id}, which it is pinned to. {refresh}"
            log.write(f"[dalsegno] {said}\n")
    return sorted(str(each.table.name) for each in changed)


def _make_room(lake: Lake, capture_id: str) -> bool:
    """Abandon a capture of other sources, or of changes where all is wanted, behind which nobody has begun to write."""
    if is_open_run(lake, lake.store.capture(capture_id).created_by) or lake.store.is_worked_on(capture_id):
        return False
    lake.abandon(capture_id, reason="the declared table is captured in another way")
    return True


def _spark_step(work: Work, use: UseSession) -> SparkStep:
    """The statements of this run, as a step of Spark."""
    table = declared_table(work)
    (capture,) = work.captures
    if (begun := _begun(work, table, capture)) is not None:
        if table.function is not None:
            with _planning_session(work, table, use) as session, Lake.open(work.settings) as lake:
                call_for(work, lake, table, table.function, capture, session)
        return SparkStep(begun, (), {}, table.conf, None, table.secrets)
    with _planning_session(work, table, use) as session:
        settings = session.settings(SESSION_SETTINGS)

        def described(query: str) -> dict[str, str]:
            rows = session.execute(f"DESCRIBE QUERY {query}", _MOST_COLUMNS).to_pylist()
            return {row["col_name"]: row["data_type"] for row in rows}

        def has_rows(query: str) -> bool:
            return bool(session.execute(query, 1).num_rows)

        def rows(query: str) -> list[dict[str, Any]]:
            return list(session.execute(query, MOST_KEYS).to_pylist())

        is_rebuild = work.full_refresh is not None
        with Lake.open(work.settings) as lake:
            table = _over_tables(lake, table)
            pinned = _pinned(lake, work, table, [each.table for each in capture.tables])
            sources = sources_of_table(lake, table)
            given = call_for(work, lake, table, table.function, capture, session) if table.function else None
            took = DecisionTime()
            if given is not None:
                declared: Declared = DeclaredFunction.called_with(
                    given, lake, table, sources, took.without(described), settings
                )
            else:
                declared = Declared.of(lake, table, sources, took.without(described), settings, capture, pinned)
            if work.full_refresh is None:
                declared.refuse_other_query(work.workflow_id)
                refuse_doubtful_target(lake, declared.target_name, declared.target, capture, work)
            past = past_costs(lake, declared.target_name, declared.digest)
            try:
                refuse_violated(declared.checks(capture, is_rebuild=is_rebuild), took.without(rows), work.workflow_id)
            except DataError:
                # The next run must see what was corrected since, and nothing is written for this capture.
                lake.actor = actor_of_run(work.workflow_id, work.run_number)
                with suppress(DalsegnoError):
                    lake.abandon(capture.id, reason="a fact does not hold for what it captured")
                raise
            refresh = declared.refresh(capture, is_rebuild=is_rebuild, has_rows=took.without(has_rows), past=past)
            decide_ms = took.milliseconds
            if is_due(lake, capture.consumer, table.audit_first_runs):
                audited = (*refresh.statements, audit_statement(declared, capture))
                refresh = replace(refresh, statements=audited)
    log = AttemptLog(work.log, (*work.secrets, *table.secrets), limit=work.log_limit)
    log.note(f"{refresh.strategy}: {refresh.why}")
    log.note(f"decided in {decide_ms:.0f} ms")
    decision = decision_values(decided(declared, refresh, capture, log.masked))
    job = Sql(refresh.statements, _code(table), BLOCK, decision, partial(concluded, work))
    return SparkStep(job, (), {}, table.conf, None, table.secrets)


@contextmanager
def _planning_session(work: Work, table: DeclaredTable, use: UseSession) -> Iterator[Session]:
    """A session to find out what is to be executed; a function leaves its view in the attempt's own."""
    session = prepared(work, table.conf) if table.function else opened_for(work.settings, f"declared-{uuid4().hex}")
    try:
        use(session)
        session.configure(dict(table.conf))
        yield session
    finally:
        with suppress(Exception):
            session.disconnect() if table.function else session.release()


def _code(table: DeclaredTable) -> str | None:
    return table.function.file.text() if table.function else None


def _begun(work: Work, table: DeclaredTable, capture: Capture) -> Sql | None:
    """What an earlier attempt or run began to execute: whoever resumes it decides nothing anew."""
    units = work.log_of_work.units() if work.log_of_work is not None else ()
    unit = next((each for each in units if each.id == work.unit and each.is_begun), None)
    # Secrets are not stored: only whoever writes the statements anew has them.
    if unit is None or unit.decision is None or any(has_secrets(each.text) for each in unit.statements):
        return None
    with Lake.open(work.settings) as lake:
        name = lake.name(table.target)
        if work.full_refresh is None:
            refuse_doubtful_target(lake, name, find(lake, name), capture, work)
    AttemptLog(work.log, work.secrets, limit=work.log_limit).note(
        f"{unit.begun_by} decided on {unit.decision['strategy']}: {unit.decision['why']}"
    )
    texts = tuple(each.text for each in unit.statements if emptied_by(each.text) is None)
    return Sql(texts, _code(table), BLOCK, unit.decision, partial(concluded, work))
