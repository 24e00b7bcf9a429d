"""Running models in their order: those whose SELECT or sources have changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from dalsegno.capture.consumers import consumer_of_workflow
from dalsegno.errors import DalsegnoError, UnknownName
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.history import MAIN, branch_heads
from dalsegno.model.full_refresh import FullRefresh
from dalsegno.model.runs import NOTHING_NEW, RunStatus
from dalsegno.model.tables import TableName
from dalsegno.model.workflow import Step
from dalsegno.operations.context import Context
from dalsegno.operations.declared_tables import field_texts, sources_of_step
from dalsegno.operations.models.graph import ModelGraph
from dalsegno.operations.models.model_files import STEP, ModelFile
from dalsegno.operations.models.results import ModelResult, ModelStatus
from dalsegno.operations.models.stored import push_model
from dalsegno.operations.pushed import Pushed
from dalsegno.operations.run_views import RunView
from dalsegno.operations.runs import Runs
from dalsegno.spec.captures import declared_query

#: Bring a run to its end.
Finish = Callable[[RunView], RunView]
_DONE = (ModelStatus.REFRESHED, ModelStatus.UNCHANGED)


class ModelRunner:
    def __init__(
        self,
        context: Context,
        graph: ModelGraph,
        pushed: Sequence[Pushed],
        *,
        full_refresh: FullRefresh | None,
        finish: Finish | None,
    ) -> None:
        self._context = context
        self._graph = graph
        self._pushed = {each.workflow_id: each for each in pushed}
        self._full_refresh = full_refresh
        self._runs = Runs(context)
        self._finish = finish or (lambda run: self._runs.finish(run.id))
        self._results: dict[str, ModelResult] = {}
        self._is_stopped = False

    def run(self, model: ModelFile) -> ModelResult:
        """Bring one model up to date, after those that it reads."""
        began = time.monotonic()
        blank = ModelResult(model.path, model.workflow_id, model.target, ModelStatus.NOT_RUN)
        if (why := self._obstacle(model)) is not None:
            result = replace(blank, reason=why)
        else:
            try:
                result = self._refreshed(model, blank) if self._has_work(model) else _unchanged(blank)
            except DalsegnoError as error:
                result = replace(blank, status=ModelStatus.FAILED, reason=error.message, hint=error.hint)
        result = replace(result, seconds=round(time.monotonic() - began, 3))
        self._results[model.workflow_id] = result
        return result

    def _obstacle(self, model: ModelFile) -> str | None:
        if self._is_stopped:
            return "The run before it was stopped."
        for parent in self._graph.parents[model.workflow_id]:
            before = self._results.get(parent.workflow_id)
            if before is not None and before.status not in _DONE:
                was = "failed" if before.status is ModelStatus.FAILED else "was not run"
                return f"It reads {parent.path}, which {was}."
        return None

    def _has_work(self, model: ModelFile) -> bool:
        """Whether anything has changed since the last run, by the store and by metadata of the tables."""
        if self._full_refresh is not None:
            return True
        last = next(iter(self._runs.list(model.workflow_id, limit=1)), None)
        if last is None or last.status is not RunStatus.SUCCEEDED:
            return True
        if last.version != self._pushed[model.workflow_id].version or self._loaded(model.target) is None:
            return True
        consumer = model.header.values.get("consumer") or consumer_of_workflow(str(model.target))
        return not all(self._is_processed(source, consumer) for source in self._followed(model))

    def _followed(self, model: ModelFile) -> list[TableName]:
        """The tables that the last push found, those behind views included; without those that only a rebuild reads."""
        step = self._step(model, self._pushed[model.workflow_id].version)
        pinned = field_texts(step, "pinned")
        return [TableName.of(name) for name in sources_of_step(step) if name not in pinned]

    def _query(self, model: ModelFile, version: int) -> str | None:
        found = declared_query(self._step(model, version))
        return None if found is None else found[1]

    def _step(self, model: ModelFile, version: int) -> Step:
        return self._context.machinery.versions.blueprint(model.workflow_id, version).steps[STEP]

    def _is_processed(self, source: TableName, consumer: str) -> bool:
        table = self._loaded(source)
        position = None if table is None else self._context.lake.position(consumer, str(source))
        if table is None or position is None:
            # The run says what is missing.
            return False
        head = branch_heads(table.metadata).get(MAIN)
        return (position.table_uuid, position.snapshot_id) == (table.metadata.get("table-uuid"), head)

    def _loaded(self, name: TableName) -> LoadedTable | None:
        try:
            return self._context.lake.load(name)
        except UnknownName:
            return None

    def _refreshed(self, model: ModelFile, blank: ModelResult) -> ModelResult:
        pushed = self._pushed[model.workflow_id]
        if model.may_have_star(self._query(model, pushed.version)):
            # A model that it reads may have made the table by now, so that the columns of SELECT * are known.
            pushed = push_model(self._context, model)
        before = _snapshots(self._loaded(model.target))
        started = self._runs.start(
            model.workflow_id, version=str(pushed.version), full_refresh=self._own_refresh(model)
        )
        ended = self._finish(started)
        self._is_stopped = ended.status is RunStatus.STOPPED
        [step] = [each for each in self._runs.steps(ended.id) if each.id == STEP]
        if ended.status is not RunStatus.SUCCEEDED:
            failure = step.failure or {}
            reason = failure.get("message") or ended.reason
            return replace(blank, status=ModelStatus.FAILED, run=ended.name, reason=reason, hint=failure.get("hint"))
        if ended.reason == NOTHING_NEW:
            return replace(_unchanged(blank), run=ended.name)
        after = _snapshots(self._loaded(model.target))
        added, removed = (
            sum(int(summary.get(name, 0)) for key, summary in after.items() if key not in before)
            for name in ("added-records", "deleted-records")
        )
        return replace(
            blank,
            status=ModelStatus.REFRESHED,
            run=ended.name,
            strategy=step.outputs.get("strategy"),
            added_rows=added,
            removed_rows=removed,
            reason=step.outputs.get("why"),
        )

    def _own_refresh(self, model: ModelFile) -> FullRefresh | None:
        if self._full_refresh is None:
            return None
        name = self._context.lake.name
        own = frozenset(table for table in self._full_refresh.empty if name(table) == model.target)
        return FullRefresh(own, self._full_refresh.trust)


def _unchanged(blank: ModelResult) -> ModelResult:
    return replace(blank, status=ModelStatus.UNCHANGED, reason="Nothing has changed.")


def _snapshots(table: LoadedTable | None) -> dict[int, dict[str, str]]:
    """The summary of each snapshot."""
    raw = () if table is None else table.metadata.get("snapshots", ())
    return {each["snapshot-id"]: each.get("summary") or {} for each in raw}
