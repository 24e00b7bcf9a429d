"""A process that runs a workflow, and is killed at a moment that was chosen."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from dalsegno.operations.facade import Operations
from dalsegno.settings import load
from dalsegno.store import Store
from tests.callers import admin
from tests.exact.faults import FAULTS, Injection, injected, kill_at_commit
from tests.exact.protections import switched_off

_BY_NAME = {fault.name: fault for fault in FAULTS}


def start_and_finish(
    folder: str, workflow_id: str, key: str, fault: str, statement: int, skip: int, seconds: float, *without: str
) -> None:
    settings = load(working_folder=Path(folder), environment={})
    injection = Injection(_BY_NAME[fault], settings, statement, skip, seconds)
    if "commit step" in injection.fault.moment:
        kill_at_commit(nth=1 + skip, is_after=injection.fault.moment.startswith("after"))
    with ExitStack() as stack:
        for name in without:
            stack.enter_context(switched_off(name))
        stack.enter_context(injected(injection))
        operations = stack.enter_context(Operations(Store.open(settings.store), settings, admin()))
        operations.runs.finish(operations.runs.start(workflow_id, idempotency_key=key).id)
    # Not by returning: a timer may still run.
    os._exit(0)
