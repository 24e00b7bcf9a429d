"""A new run: which version, which parameters. Nothing is stored here."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from dalsegno.clock import to_millis
from dalsegno.engine.blueprints import Blueprint
from dalsegno.engine.records import OpenRun
from dalsegno.engine.scopes import Scopes, run_definitions
from dalsegno.model.full_refresh import FullRefresh
from dalsegno.model.runs import RunStatus
from dalsegno.model.stored_text import readable
from dalsegno.spec.params.durations import timeout_of
from dalsegno.spec.params.layers import made_anew
from dalsegno.spec.params.stored import to_stored

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_LENGTH = 12


def new_run_id() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))


def child_run_id(flow_id: str, step_id: str, attempt: int) -> str:
    """The same whenever the step is started again, so that there is one subworkflow per attempt."""
    digest = hashlib.sha256(f"{flow_id}/{step_id}/{attempt}".encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:_LENGTH])


def new_run(
    blueprint: Blueprint,
    *,
    run_id: str,
    number: int,
    run_params: Mapping[str, Any],
    initiator: Mapping[str, Any],
    now: datetime,
    parent: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> dict[str, Any]:
    """The row of a run whose parameters are not evaluated yet."""
    return {
        "id": run_id,
        "workflow_id": blueprint.workflow.id,
        "number": number,
        "attempt": 1,
        "version": blueprint.version,
        "status": RunStatus.CREATED.value,
        "reason": None,
        "ended_by": None,
        "revision": 0,
        "is_paused": False,
        "run_params": dict(run_params),
        "params": {},
        "initiator": {"planned_ms": to_millis(now), **initiator},
        "parent_run": None,
        "parent_flow": None,
        "parent_step": None,
        "root_run": run_id,
        "idempotency_key": idempotency_key,
        "created_at": now,
        **(parent or {}),
    }


def full_refresh_of(row: Mapping[str, Any]) -> FullRefresh | None:
    stored = row["initiator"].get("full_refresh")
    return None if stored is None else FullRefresh.of_json(stored)


def failed(row: Mapping[str, Any], reason: str, now: datetime) -> dict[str, Any]:
    """The row of a run that could not even begin."""
    return {**row, "status": RunStatus.FAILED.value, "reason": readable(reason), "ended_at": now}


def evaluated(scopes: Scopes, blueprint: Blueprint, row: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The row with its parameters and its timeout worked out; an error in them is raised, and nothing is stored."""
    run = OpenRun(row, blueprint, 0, frozenset())
    scope = scopes.of_run(run, None, now)
    found = scope.evaluate().params
    scopes.check_given(run, scope, found)
    params = to_stored(found)
    initiator = {name: value for name, value in row["initiator"].items() if name != "timeout_seconds"}
    if blueprint.workflow.timeout is not None:
        initiator["timeout_seconds"] = timeout_of(blueprint.workflow.timeout, scope.text).total_seconds()
    return {**row, "params": params, "initiator": initiator}


def restarted_with(
    scopes: Scopes,
    versions: tuple[Blueprint, Blueprint],
    row: Mapping[str, Any],
    given: Mapping[str, Any],
    now: datetime,
) -> dict[str, Any]:
    """The row of a run that is run again, with the version that it had and the one that it resumes with."""
    old, new = versions
    run_params = {**row["run_params"], **given}
    definitions = run_definitions(new.workflow.params, run_params)
    versions_params = (old.workflow.params, new.workflow.params)
    anew = made_anew(definitions, versions_params, given.keys(), scopes.expressions)
    kept = {name: param for name, param in row["params"].items() if name not in anew}
    changed = {**row, "version": new.version, "run_params": run_params, "params": kept}
    return evaluated(scopes, new, changed, now)


#: What a restart changes of a run's row.
RESTARTED = ("version", "run_params", "params", "initiator")
