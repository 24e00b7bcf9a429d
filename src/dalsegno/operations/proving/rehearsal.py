"""The ``Incremental`` step itself over clones, run by an engine of its own, with a store that nobody else has."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dalsegno.capture.context import CaptureContext
from dalsegno.capture.scratch import Scratch, remove_scratch
from dalsegno.errors import PlatformError
from dalsegno.file_locks import is_held
from dalsegno.model.callers import Caller, Role
from dalsegno.model.full_refresh import FullRefresh
from dalsegno.model.outcomes import FailureKind
from dalsegno.model.refreshes import Cost
from dalsegno.model.runs import RunStatus
from dalsegno.model.tables import TableName
from dalsegno.operations.facade import Operations
from dalsegno.operations.run_views import StepView
from dalsegno.private_files import make_private_folder
from dalsegno.settings import Settings
from dalsegno.store import Store

_STEP = "table"
_PREFER = "prefer"
_LOCK = "lock"


@dataclass(frozen=True)
class Refreshed:
    """What one run of the step did."""

    #: Empty if nothing had changed.
    strategy: str
    why: str
    cost: Cost
    #: What it executed.
    sql: tuple[str, ...]
    #: Why it stopped before it wrote anything, if so.
    refusal: str | None = None
    #: What went wrong while it wrote, if something did.
    failure: str | None = None


class Rehearsal:
    """Runs a declared table over clones."""

    def __init__(self, operations: Operations, target: TableName, query: str, options: Mapping[str, Any]) -> None:
        self.operations = operations
        self._workflows = [self._pushed("dalsegno.proof", target, query, options)]
        if "strategy" not in options and options.get("policy", _PREFER) == _PREFER:
            # Of small clones, a full refresh may be the cheapest; what is to be proven is the other way.
            strict = {**options, "policy": "strict"}
            self._workflows.insert(0, self._pushed("dalsegno.strict_proof", target, query, strict))

    def _pushed(self, workflow_id: str, target: TableName, query: str, options: Mapping[str, Any]) -> str:
        step = {
            "id": _STEP,
            "type": "Incremental",
            # What fails here fails for a reason.
            "retry_policy": {"error_retry_limit": 0, "platform_retry_limit": 1},
            "incremental": {**options, "target": str(target), "query": query},
        }
        text = json.dumps({"Workflow": {"id": workflow_id, "jobs": [{"job": step}]}})
        return self.operations.workflows.push(text).workflow_id

    def refresh(self, *, is_full: bool = False) -> Refreshed:
        """Run the step once. A refusal before the first statement is an answer; so is SQL that fails."""
        done = self._run(self._workflows[0], is_full=is_full)
        return done if done.refusal is None else self._run(self._workflows[-1], is_full=is_full)

    def _run(self, workflow_id: str, *, is_full: bool) -> Refreshed:
        runs = self.operations.runs
        run = runs.start(workflow_id, full_refresh=FullRefresh() if is_full else None)
        try:
            ended = runs.finish(run.id)
        except BaseException:
            # What Spark still does would write to clones that are about to be removed.
            runs.kill(run.id)
            runs.finish(run.id)
            raise
        [step] = runs.steps(run.id)
        outputs = step.outputs or {}
        if ended.status is RunStatus.SUCCEEDED:
            return self._refreshed(step, outputs)
        failure = _failure(step, ended.reason)
        captures = self.operations.captures
        units = [unit for each in captures.list(pending_only=True, limit=1) for unit in captures.work(each.id)]
        executed = tuple(each.text for unit in units for each in unit.statements if each.begun_at is not None)
        strategy = str(next((unit.decision["strategy"] for unit in units if unit.decision), ""))
        kind = {"failure": failure} if executed else {"refusal": failure}
        return Refreshed(strategy, "", Cost(0, 0, _seconds(step)), executed, **kind)

    def _refreshed(self, step: StepView, outputs: Mapping[str, Any]) -> Refreshed:
        known = self.operations.store.refreshes_behind([str(outputs.get("capture_id", ""))])
        if not known:
            return Refreshed("", str(outputs.get("why", "")), Cost(0, 0, _seconds(step)), ())
        [refresh] = known
        return Refreshed(refresh.strategy, refresh.why, refresh.cost, refresh.statements)


@contextmanager
def rehearsing(settings: Settings, scratch: Scratch, catalogs: frozenset[str], by: str) -> Iterator[Operations]:
    """Operations on a store of their own, which make change tables among the clones."""
    folder = _folder(settings) / scratch.prefix
    make_private_folder(folder)
    lock = os.open(folder / _LOCK, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        # Whoever finds the folder without a process behind the lock may remove it, and the clones.
        fcntl.flock(lock, fcntl.LOCK_EX)
        own = _settings(settings, folder, scratch.namespace(*sorted(catalogs)))
        caller = Caller.of(by, [Role.ADMIN])
        with Operations(Store.open(own.store), own, caller) as operations:
            yield operations
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_dead(context: CaptureContext) -> tuple[str, ...]:
    """Remove the clones of proofs on this machine whose processes are gone: what could not be removed."""
    problems: list[str] = []
    folders = _folder(context.settings)
    for folder in sorted(folders.iterdir()) if folders.is_dir() else ():
        if is_held(folder / _LOCK):
            continue
        found = remove_scratch(context, folder.name)
        problems += found
        if not found:
            shutil.rmtree(folder, ignore_errors=True)
    return tuple(problems)


def _folder(settings: Settings) -> Path:
    return settings.jobs_path.with_name("proofs")


def _settings(settings: Settings, folder: Path, namespace: str) -> Settings:
    catalogs = {
        name: replace(each, changes_location=f"{each.changes_location.rstrip('/')}/{namespace}")
        if each.changes_location
        else each
        for name, each in settings.catalogs.items()
    }
    return replace(
        settings,
        store=f"sqlite:///{folder / 'store.db'}",
        jobs_folder=str(folder / "jobs"),
        change_namespace=namespace,
        notifications={},
        catalogs=catalogs,
    )


def _failure(step: StepView, reason: str | None) -> str:
    failure = step.failure or {}
    said = str(failure.get("message") or reason or "The run did not succeed.")
    if failure.get("kind") == FailureKind.PLATFORM:
        raise PlatformError(f"A refresh of the proof failed: {said}", hint=failure.get("hint"))
    return said


def _seconds(step: StepView) -> float | None:
    return (step.ended_at - step.started_at).total_seconds() if step.ended_at and step.started_at else None
