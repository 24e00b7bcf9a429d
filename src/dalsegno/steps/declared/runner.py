"""The ``Incremental`` step: captures what changed in the sources of a SELECT, writes, and commits."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar
from uuid import uuid4

from dalsegno.capture.consumers import consumer_of_workflow
from dalsegno.capture.lake import Lake
from dalsegno.errors import CapturePending, DalsegnoError
from dalsegno.hints import in_step
from dalsegno.model.captures import Capture, actor_of_run
from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Succeeded
from dalsegno.steps.contract import Finished, Running, Started, Work
from dalsegno.steps.declared.params import BLOCK, declared_table
from dalsegno.steps.declared.refreshing import SESSION_SETTINGS, Declared
from dalsegno.steps.declared.sources import find, sources_of
from dalsegno.steps.declared.targets import refuse_doubtful_target
from dalsegno.steps.incremental import is_open_run, taken_over
from dalsegno.steps.spark import sql as spark_sql
from dalsegno.steps.spark.params import SparkStep, Sql
from dalsegno.steps.spark.sessions import opened_for

#: More columns than a query has.
_MOST_COLUMNS = 10_000


class IncrementalRunner:
    """``incremental: {target: …, query: …}``."""

    name: ClassVar[str] = "Incremental"
    raw: ClassVar[frozenset[str]] = frozenset()

    def capture(self, work: Work) -> Capture | Outcome:
        """What changed in the sources, as this run's own capture; or how the step ends without one."""
        table = declared_table(work)
        with Lake.open(work.settings) as lake:
            lake.actor = actor_of_run(work.workflow_id, work.run_number)
            names = [str(each.name) for each in sources_of(lake, table.query).values()]
            # The checkpoint says how far the target is, whichever workflow, step or iteration writes it.
            consumer = table.consumer or consumer_of_workflow(str(lake.name(table.target)))
            is_new = find(lake, lake.name(table.target)) is None or all(
                lake.position(consumer, name) is None for name in names
            )
            is_full = is_new or work.full_refresh is not None
            options: dict[str, Any] = {
                "consumer": consumer,
                "start": "full" if is_full else None,
                "is_refresh": work.full_refresh is not None,
                "changes": "before_after",
                # Of a whole table they are all touched.
                "partitions": not is_full,
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
                return Succeeded({"has_changes": False, "strategy": "", "why": "Nothing has changed."})
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
            return Finished(Succeeded(outputs, commits=capture.id))
        return seen

    def let_go(self, work: Work) -> None:
        """Leave the step to another process."""
        spark_sql.let_go(work)

    def cancel(self, work: Work) -> None:
        spark_sql.cancel(work)


def _make_room(lake: Lake, capture_id: str) -> bool:
    """Abandon a capture of other sources, or of changes where all is wanted, behind which nobody has begun to write."""
    if is_open_run(lake, lake.store.capture(capture_id).created_by) or lake.store.is_worked_on(capture_id):
        return False
    lake.abandon(capture_id, reason="the declared table is captured in another way")
    return True


def _spark_step(work: Work) -> SparkStep:
    """The statements of this run, as a step of Spark."""
    table = declared_table(work)
    (capture,) = work.captures
    session = opened_for(work.settings, f"declared-{uuid4().hex}")
    try:
        session.configure(dict(table.conf))
        settings = session.settings(SESSION_SETTINGS)

        def described(query: str) -> dict[str, str]:
            rows = session.execute(f"DESCRIBE QUERY {query}", _MOST_COLUMNS).to_pylist()
            return {row["col_name"]: row["data_type"] for row in rows}

        def has_rows(query: str) -> bool:
            return bool(session.execute(query, 1).num_rows)

        with Lake.open(work.settings) as lake:
            declared = Declared.of(lake, table, sources_of(lake, table.query), described, settings)
            if work.full_refresh is None:
                declared.refuse_other_query(work.workflow_id)
                refuse_doubtful_target(lake, declared.target_name, declared.target, capture, work)
            refresh = declared.refresh(capture, is_rebuild=work.full_refresh is not None, has_rows=has_rows)
    finally:
        with suppress(Exception):
            session.release()
    outputs = refresh.as_outputs(declared.target_name, capture)
    with work.log.open("a", encoding="utf-8") as log:
        log.write(f"[dalsegno] {refresh.strategy}: {refresh.why}\n")
    job = Sql(refresh.statements, block=BLOCK, outputs=outputs)
    return SparkStep(job, (), {}, table.conf, None, table.secrets)
