"""The verbs of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalsegno.errors import NotReached
from dalsegno.operations.context import Context
from dalsegno.operations.pages import Page, key_of, page_of, wrong_cursor
from dalsegno.operations.run_reader import RunReader
from dalsegno.operations.run_views import RunEvent, RunView, StepView
from dalsegno.operations.step_logs import StepLog

if TYPE_CHECKING:
    from dalsegno.model.full_refresh import FullRefresh
    from dalsegno.model.runs import RestartFrom
    from dalsegno.operations.run_control import RunControl
    from dalsegno.operations.run_params import TypedParams


class Runs:
    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def _reader(self) -> RunReader:
        return RunReader(self._context.settings, self._context.database)

    @property
    def _control(self) -> RunControl:
        from dalsegno.operations.run_control import RunControl  # noqa: PLC0415 - the engine takes a moment

        return RunControl(self._context.machinery)

    # Looking.

    def get(self, reference: str) -> RunView:
        """A run by its id, or as ``workflow/number``, or the newest of a workflow."""
        return self._reader.run(reference)

    def list(
        self,
        workflow_id: str | None = None,
        *,
        status: Sequence[str] = (),
        limit: int = 20,
        cursor: str | None = None,
        with_params: bool = False,
    ) -> Page[RunView]:
        """Newest first. Parameters can be large, so they are read only if somebody wants them."""
        after = key_of(cursor, "runs")
        found = self._reader.list_runs(
            workflow_id, status=status, limit=limit + 1, after=after, with_params=with_params
        )
        if found is None:
            raise wrong_cursor(str(cursor))
        return page_of(found, limit, "runs", lambda run: run.id)

    def steps(self, reference: str) -> tuple[StepView, ...]:
        """The steps of a run in their order, with iterations and subworkflows below them."""
        return tuple(self._reader.steps(reference))

    def events(self, reference: str, after: int = 0) -> tuple[RunEvent, ...]:
        """What happened to a run after an event, oldest first."""
        return tuple(self._reader.events(reference, after))

    def last_event(self, reference: str) -> int:
        """The number of the newest event of a run; those that follow are news."""
        return self._reader.last_event(reference)

    def log(
        self, reference: str, step: str, *, attempt: int | None = None, iteration: str = "", follow: bool = False
    ) -> StepLog:
        """What a step has written; of the last attempt if none is named. ``follow``: go on while the run does."""

        def find(is_to_come: bool) -> Path | None:
            try:
                return self._reader.log_file(reference, step, attempt, iteration)
            except NotReached:
                if is_to_come:
                    return None
                raise

        return StepLog(find, lambda: not follow or self.get(reference).status.is_final)

    def waits_for(self, run: RunView) -> RunView | None:
        """The run of the same workflow that keeps this one from beginning, if one does."""
        return self._reader.waits_for(run)

    def is_attended(self) -> bool:
        """Whether some process is at work on the store's runs."""
        return self._control.is_attended()

    def typed_params(self, workflow_id: str, texts: Mapping[str, str], *, version: str = "default") -> TypedParams:
        """Parameters as somebody typed them, with the types that the workflow gives them."""
        from dalsegno.operations.run_params import read_typed_params  # noqa: PLC0415 - the engine takes a moment

        return read_typed_params(self._context.machinery.versions.named(workflow_id, version), texts)

    # Changing.

    def start(
        self,
        workflow_id: str,
        params: Mapping[str, Any] | None = None,
        *,
        version: str = "default",
        idempotency_key: str | None = None,
        full_refresh: FullRefresh | None = None,
    ) -> RunView:
        """Ask for a run; it begins when its run strategy allows. Asking again with the same key is the same run.

        ``full_refresh``: its captures take their sources as a whole, and its SQL replaces what its targets hold.
        """
        with self._context.changing("runs.start"):
            return self._control.start(workflow_id, params or {}, version, idempotency_key, full_refresh)

    def stop(
        self, reference: str, *, step: str | None = None, iteration: str = "", reason: str | None = None
    ) -> RunView:
        """End a run, or one of its steps."""
        with self._context.changing("runs.stop", reason):
            return self._control.end(reference, "STOP", step=step, iteration=iteration, reason=reason)

    def kill(
        self, reference: str, *, step: str | None = None, iteration: str = "", reason: str | None = None
    ) -> RunView:
        """As ``stop``, but it counts as a failure."""
        with self._context.changing("runs.kill", reason):
            return self._control.end(reference, "KILL", step=step, iteration=iteration, reason=reason)

    def skip(self, reference: str, step: str, *, iteration: str = "", reason: str | None = None) -> RunView:
        """Go on as if a step had succeeded."""
        with self._context.changing("runs.skip", reason):
            return self._control.end(reference, "SKIP", step=step, iteration=iteration, reason=reason)

    def pause(self, reference: str, *, reason: str | None = None) -> RunView:
        """Start no new step; those that run go on."""
        with self._context.changing("runs.pause", reason):
            return self._control.pause(reference, is_paused=True)

    def resume(
        self, reference: str, step: str | None = None, *, iteration: str = "", reason: str | None = None
    ) -> RunView:
        """Resume what was paused: the run, or one step at a breakpoint."""
        with self._context.changing("runs.resume", reason):
            if step is None:
                return self._control.pause(reference, is_paused=False)
            return self._control.resume_step(reference, step, iteration)

    def restart(
        self,
        reference: str,
        *,
        restart: RestartFrom | None = None,
        step: str | None = None,
        params: Mapping[str, Any] | None = None,
        skip: Sequence[str] = (),
        version: str | None = None,
        reason: str | None = None,
    ) -> RunView:
        """Run an ended run again: what did not complete, a step and what follows, or all of it.

        ``version``: resume with this version of the workflow, as ``start`` takes it; by default the one that it had.
        """
        with self._context.changing("runs.restart", reason):
            return self._control.restart(
                reference, restart=restart, step=step, params=params or {}, skip=skip, version=version
            )

    # Working.

    def finish(self, reference: str) -> RunView:
        """Run what a run still needs to come to its end, in this process."""
        self._context.require("runs.finish")
        return self._control.finish(reference)

    def work(self) -> None:
        """Run whatever is open, in this process, until nothing is."""
        self._context.require("runs.work")
        self._control.work()
