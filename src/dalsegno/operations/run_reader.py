"""What can be seen of runs, without the engine, which takes a moment to load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from dalsegno.engine.attempt_folders import attempt_folder
from dalsegno.errors import NotReached, UnknownName, UserError
from dalsegno.hints import Verb, action
from dalsegno.model.runs import RunStatus
from dalsegno.model.stored_text import whole_number
from dalsegno.operations.run_views import RunEvent, RunView, StepView, run_view, step_views
from dalsegno.operations.stored_steps import StoredStep, stored_steps, with_loops
from dalsegno.operations.version_reader import VersionReader
from dalsegno.settings import Settings
from dalsegno.store import run_queries
from dalsegno.store.reading import Readable


class RunReader:
    """Runs in one store, to look at."""

    def __init__(self, settings: Settings, database: Readable) -> None:
        self.settings = settings
        self.database = database

    def run(self, reference: str) -> RunView:
        """A run by its id, or as ``workflow/number``, or the newest of a workflow."""
        return run_view(self._row(reference))

    def _row(self, reference: str) -> Mapping[str, Any]:
        workflow_id, _, number = reference.rpartition("/")
        with self.database.reading() as connection:
            found = run_queries.run_row(connection, reference)
            if found is None and (at := whole_number(number)) is not None:
                found = run_queries.numbered(connection, workflow_id, at)
            if found is None:
                found = run_queries.numbered(connection, reference, None)
        if found is None:
            raise UnknownName(
                f"There is no run {reference!r}: expected a run's id, WORKFLOW/NUMBER, or a workflow that has run.",
                actions=[action("See the runs there are", Verb.LIST_RUNS)],
            )
        return dict(found)

    def list_runs(
        self,
        workflow_id: str | None = None,
        *,
        status: Sequence[str] = (),
        limit: int = 20,
        after: str | None = None,
        with_params: bool = False,
    ) -> list[RunView] | None:
        """Newest first, those behind a run; None if that run is not there."""
        wanted = [_run_status(each).value for each in status]
        with self.database.reading() as connection:
            if after is not None and run_queries.run_row(connection, after) is None:
                return None
            rows = run_queries.newest_runs(
                connection, workflow_id, wanted, limit=limit, after=after, with_params=with_params
            )
        if workflow_id and not rows and after is None:
            # A workflow without runs has none to show; one that is not there is a mistake.
            VersionReader(self.database).row(workflow_id)
        return [run_view(row) for row in rows]

    def waits_for(self, run: RunView) -> RunView | None:
        """The run of the same workflow that keeps this one from beginning, if one does."""
        if run.status is not RunStatus.CREATED:
            return None
        running = [RunStatus.IN_PROGRESS.value]
        with self.database.reading() as connection:
            before = partial(run_queries.newest_runs, connection, run.workflow_id, below=run.number, limit=1)
            found = before(running) or before()
        return run_view(found[0]) if found else None

    def steps(self, reference: str) -> list[StepView]:
        """The steps of a run in their order, with iterations and subworkflows below them."""
        row = self._row(reference)
        steps = self._steps(row)
        with self.database.reading() as connection:
            return step_views(connection, row["id"], steps)

    def _steps(self, row: Mapping[str, Any]) -> tuple[StoredStep, ...]:
        return stored_steps(VersionReader(self.database).definition(row["workflow_id"], row["version"]))

    def events(self, reference: str, after: int = 0) -> list[RunEvent]:
        row = self._row(reference)
        with self.database.reading() as connection:
            return [RunEvent(**event) for event in run_queries.event_rows(connection, row["id"], after)]

    def last_event(self, reference: str) -> int:
        """The number of the newest event of a run; those that follow are news."""
        row = self._row(reference)
        with self.database.reading() as connection:
            return run_queries.last_event(connection, row["id"])

    def log_file(self, reference: str, step: str, attempt: int | None = None, iteration: str = "") -> Path:
        """Where the output of an attempt of a step is; of the last attempt if none is named."""
        row = self._row(reference)
        flow_id = f"{row['id']}/{iteration}" if iteration else row["id"]
        with self.database.reading() as connection:
            found = run_queries.step_row(connection, flow_id, step)
        if found is None:
            raise self._not_reached(row, step, iteration)
        if attempt is not None and attempt > found["attempt"]:
            raise UnknownName(f"Step {step!r} has had no attempt {attempt}; the last was {found['attempt']}.")
        return attempt_folder(self.settings, row, flow_id, step, attempt or found["attempt"]) / "log"

    def _not_reached(self, row: Mapping[str, Any], step: str, iteration: str) -> UserError:
        """Why there is nothing to say of a step: it does not exist, is elsewhere, or was not reached."""
        loop_of = {each.id: loop for each, loop in with_loops(self._steps(row))}
        if step not in loop_of:
            raise unknown_step(row["workflow_id"], step, loop_of)
        loop, name = loop_of[step], f"{row['workflow_id']}/{row['number']}"
        if loop is not None and not iteration:
            return UserError(
                f"Step {step!r} is inside of the loop {loop!r}: say in which iteration.",
                hint=f"The first 'iteration' is {loop}/0.",
            )
        return NotReached(
            f"Step {step!r} of {name} has not been reached{f' in {iteration}' if iteration else ''}.",
            actions=[action("See its steps", Verb.SHOW, run=name)],
        )


def _run_status(word: str) -> RunStatus:
    try:
        return RunStatus(word.upper())
    except ValueError:
        close = get_close_matches(word.upper(), list(RunStatus), n=1)
        meant = f"Did you mean {close[0]}?" if close else f"Expected one of {', '.join(RunStatus)}."
        raise UserError(f"There is no status {word!r} of runs.", hint=meant) from None


def unknown_step(workflow_id: str, step: str, known: Iterable[str]) -> UnknownName:
    names = list(known)
    close = get_close_matches(step, names, n=1)
    return UnknownName(
        f"{workflow_id} has no step {step!r}; it has {', '.join(names)}.",
        hint=f"Did you mean {close[0]!r}?" if close else None,
    )
