"""Messages to people about runs: left in the transaction that they follow from, so that there is one for each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from dalsegno.hints import Verb, action, as_command
from dalsegno.model.runs import RunStatus
from dalsegno.spec.alerting import alerting_of
from dalsegno.store import outbox, run_queries

_WORDS = {RunStatus.FAILED: "has failed", RunStatus.TIMED_OUT: "took longer than its timeout allows"}


def tell_of_end(connection: Connection, run: Mapping[str, Any], now: datetime) -> None:
    """Leave messages if the run did not end well, and its workflow says whom to tell."""
    said = _WORDS.get(RunStatus(run["status"]))
    if said is None:
        return
    row = run_queries.workflow_row(connection, run["workflow_id"])
    channels = alerting_of(row["properties"] if row else {}).on_failure
    key = f"run {run['id']} {run['attempt']} failed"
    outbox.add(connection, key, channels, message("run_failed", run, said, now), now)


def message(kind: str, run: Mapping[str, Any], said: str, now: datetime) -> dict[str, Any]:
    """What is sent, whatever it is sent with."""
    name = f"{run['workflow_id']}/{run['number']}"
    return {
        "kind": kind,
        "title": f"{name} {said}",
        "text": run["reason"] or "",
        "hint": as_command(action("See its steps", Verb.SHOW, run=name)),
        "workflow": run["workflow_id"],
        "run": name,
        "run_id": run["id"],
        "attempt": run["attempt"],
        "status": run["status"],
        "at": now.isoformat(),
    }
