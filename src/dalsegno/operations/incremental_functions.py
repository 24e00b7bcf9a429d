"""``@incremental``: a Python function that declares a table, as a workflow of one ``Incremental`` step."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalsegno import settings as settings_module
from dalsegno.errors import DalsegnoError, PlatformError, UserError
from dalsegno.model.outcomes import FailureKind
from dalsegno.settings import Settings

if TYPE_CHECKING:
    from dalsegno.audit.results import Audit
    from dalsegno.model.tables import TableName
    from dalsegno.operations.facade import Operations
    from dalsegno.operations.pushed import Pushed
    from dalsegno.operations.run_views import RunView, StepView

_STEP = "refresh"


@dataclass(frozen=True)
class Refreshed:
    """What one call of ``refresh`` did."""

    #: As WORKFLOW/NUMBER.
    run: str
    has_changes: bool
    #: Empty if nothing had changed.
    strategy: str
    why: str
    capture_id: str | None
    #: How many rows the sources gained since the last refresh, rewritten ones included.
    changed_rows: int
    #: How many rows were written to the table.
    rows_written: int
    #: The outputs of the step.
    outputs: Mapping[str, Any] = field(repr=False)

    def __bool__(self) -> bool:
        return self.has_changes


class IncrementalTable:
    """A table that a function declares. Calling it calls the function."""

    def __init__(self, function: Callable[..., Any], block: Mapping[str, Any], workflow: Mapping[str, Any]) -> None:
        self.function = function
        self.target: str = block["target"]
        self.workflow_id: str = workflow["id"]
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._block, self._workflow = block, workflow

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def definition(self, settings: Settings | None = None) -> str:
        """The workflow that keeps the table up to date, as JSON."""
        settings = settings or settings_module.load()
        if inspect.signature(self.function).parameters:
            what: dict[str, Any] = {"file": self._file(settings), "function": self.function.__name__}
        else:
            what = {"query": self._query(settings)}
        job = {"id": _STEP, "type": "Incremental", "incremental": {**self._block, **what}}
        return json.dumps({"Workflow": {**self._workflow, "jobs": [{"job": job}]}}, indent=2, default=list)

    def push(self, settings: Settings | None = None) -> Pushed:
        """Store the workflow, so that its triggers, or commands, run it."""
        with _operations(settings) as operations:
            return operations.workflows.push(self.definition(operations.settings), file=self._name)

    def refresh(self, *, full: bool = False, settings: Settings | None = None) -> Refreshed:
        """Bring the table up to date in this process: capture, write, commit. ``full``: compute all of it anew."""
        from dalsegno.model.full_refresh import FullRefresh  # noqa: PLC0415 - the engine takes a moment
        from dalsegno.model.runs import RunStatus  # noqa: PLC0415

        with _operations(settings) as operations:
            operations.workflows.push(self.definition(operations.settings), file=self._name)
            runs = operations.runs
            run = runs.finish(runs.start(self.workflow_id, full_refresh=FullRefresh() if full else None).id)
            [step] = runs.steps(run.id)
            if run.status is not RunStatus.SUCCEEDED:
                raise _failure(run, step)
            return _refreshed(operations, run, step)

    def check(self, settings: Settings | None = None) -> Audit:
        """Compute the whole table anew, from the snapshots that its refreshes consumed, and compare."""
        from dalsegno.audit.results import AuditRequest  # noqa: PLC0415 - Spark takes a moment

        with _operations(settings) as operations:
            return operations.audits.run(AuditRequest(self.workflow_id))

    @property
    def _name(self) -> str:
        return f"{self.function.__module__}.{self.function.__name__}"

    def _query(self, settings: Settings) -> str:
        from dalsegno.capture.lake_reader import table_name  # noqa: PLC0415 - the rewriter takes a moment
        from dalsegno.rewrite.analysis import tables_in  # noqa: PLC0415

        query = self.function()
        if not isinstance(query, str):
            raise UserError(
                f"{self._name} takes no arguments, so it must return SQL; it returned {type(query).__name__}.",
                hint="To return a DataFrame, take one argument for each source.",
            )
        read = {table_name(settings, ".".join(name)) for name in tables_in(query)}
        named = {table_name(settings, each) for each in self._block.get("sources", ())}
        if named and named != read:
            raise UserError(
                f"The SELECT of {self._name} reads {_listed(read)}, but its sources are {_listed(named)}.",
                hint="Leave out the sources: they follow from the SELECT.",
            )
        return query

    def _file(self, settings: Settings) -> str:
        found = inspect.getsourcefile(self.function)
        if found is None or not Path(found).is_file():
            raise UserError(
                f"{self._name} is not in a file. A function of DataFrames is called in a process of its own.",
                hint="Save it in a .py file, and import it from there.",
            )
        path = Path(found).resolve()
        root = settings.root.resolve()
        return str(path.relative_to(root) if path.is_relative_to(root) else path)


def incremental(
    target: str,
    *,
    sources: Sequence[str] = (),
    keys: Sequence[str] = (),
    partitioned_by: Sequence[str] | None = None,
    strategy: str | None = None,
    policy: str | None = None,
    facts: Any = None,
    dimensions: Any = None,
    deterministic: Sequence[str] = (),
    consumer: str | None = None,
    conf: Mapping[str, str] | None = None,
    workflow: str | Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], IncrementalTable]:
    """Declare a table by a function: without arguments it returns SQL, otherwise a DataFrame of its sources.

    The arguments are the fields of the ``Incremental`` step. ``workflow``: the workflow's id, by default the target; or
    more of its fields, such as its triggers.
    """
    more = {
        "sources": list(sources),
        "keys": list(keys),
        "partitioned_by": None if partitioned_by is None else list(partitioned_by),
        "strategy": strategy,
        "policy": policy,
        "facts": facts,
        "dimensions": dimensions,
        "deterministic": list(deterministic),
        "consumer": consumer,
        "conf": conf,
    }
    # No partitions at all is something to ask for; no key is not.
    block = {"target": target} | {
        name: value for name, value in more.items() if value or (name == "partitioned_by" and value is not None)
    }
    fields: Mapping[str, Any] = {"id": workflow} if isinstance(workflow, str) else workflow or {}

    def decorate(function: Callable[..., Any]) -> IncrementalTable:
        if inspect.signature(function).parameters and not (sources and keys):
            raise UserError(
                f"{function.__name__} takes DataFrames, so its sources and keys must be declared.",
                hint='Write: @incremental("TARGET", sources=["…"], keys=["…"])',
            )
        return IncrementalTable(function, block, {"id": target.replace("`", ""), **fields})

    return decorate


def _operations(settings: Settings | None) -> Operations:
    from dalsegno.operations.callers import local_caller  # noqa: PLC0415
    from dalsegno.operations.facade import Operations  # noqa: PLC0415

    if getattr(sys.modules.get("__main__"), "CALLS_FUNCTIONS", False):
        raise UserError(
            "A step imports this file to call its function, and must not refresh a table meanwhile.",
            hint='Put the call below: if __name__ == "__main__":',
        )
    return Operations(None, settings or settings_module.load(), local_caller())


def _listed(names: Collection[TableName]) -> str:
    return ", ".join(sorted(map(str, names)))


def _refreshed(operations: Operations, run: RunView, step: StepView) -> Refreshed:
    found = step.outputs or {}
    capture_id = found.get("capture_id")
    rows = 0
    if capture_id:
        rows = sum(each.details.get("rows") or 0 for each in operations.store.capture(capture_id).tables)
    return Refreshed(
        run.name,
        bool(found.get("has_changes")),
        str(found.get("strategy", "")),
        str(found.get("why", "")),
        capture_id,
        rows,
        found.get("rows_written") or 0,
        found,
    )


def _failure(run: RunView, step: StepView) -> DalsegnoError:
    failure = step.failure or {}
    kind = PlatformError if failure.get("kind") == FailureKind.PLATFORM else UserError
    message = failure.get("message") or run.reason or f"it is {run.status}"
    return kind(f"{run.name} failed: {message}", hint=failure.get("hint"))
