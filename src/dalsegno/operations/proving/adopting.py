"""Push the workflow of a declared table that was proven."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dalsegno.capture.lake import Lake
from dalsegno.errors import Conflict, UserError
from dalsegno.hints import Action, Verb, action
from dalsegno.model.tables import TableName
from dalsegno.operations.context import Context
from dalsegno.operations.proving.replay import Replayed
from dalsegno.operations.proving.request import SNAPSHOTS, ProofRequest
from dalsegno.operations.pushing import push
from dalsegno.spec.captures import declared_query
from dalsegno.steps.declared.companions import QUERY_PROPERTY
from dalsegno.steps.declared.sources import find
from dalsegno.store.reading import Row

#: Runs that are audited if no history could be replayed.
AUDITED_RUNS = 3


@dataclass(frozen=True)
class Adopted:
    """What was pushed, and what comes next."""

    workflow_id: str
    version: int
    #: False: the newest version was the same already.
    is_new: bool
    target: TableName
    #: Whether a proof stands behind it; otherwise no source has a history to replay.
    is_proven: bool
    #: So many runs are each followed by an audit.
    audit_first_runs: int
    #: What the first run must replace, if the target has rows that it did not write.
    first_run: Action


def adopt(context: Context, request: ProofRequest, workflow_id: str | None) -> Adopted:
    """Refused if the last proof of the SELECT failed, or if there is none although there is a history to replay."""
    lake, replayed = context.lake, Replayed.of(context.lake, request)
    target, past = replayed.target, replayed.past
    proof = context.store.proof(target, request.digest)
    _refuse(request, target, proof, has_history=bool(past.commits))
    audited = AUDITED_RUNS if past.without else 0
    chosen = _id_of(context, target, workflow_id)
    block: dict[str, Any] = {"target": str(target), "query": request.query, **request.options}
    if audited:
        block["audit_first_runs"] = audited
    step = {"id": _word(target.name), "type": "Incremental", "incremental": block}
    text = json.dumps({"Workflow": {"id": chosen, "jobs": [{"job": step}]}})
    pushed = push(context, text, file=chosen, folder=None)
    first = _first_run(lake, target, chosen)
    return Adopted(chosen, pushed.version, pushed.is_new, target, proof is not None, audited, first)


def _refuse(request: ProofRequest, target: TableName, proof: Row | None, *, has_history: bool) -> None:
    again = action(
        "Prove it", Verb.REWRITE, file="FILE", target=str(target), prove=str(request.snapshots or SNAPSHOTS), adopt=True
    )
    if proof is None and has_history:
        raise UserError(f"This SELECT was not proven for {target}, so it is not adopted.", actions=[again])
    if proof is not None and not proof["is_proven"] and (has_history or proof["details"]["difference"]):
        raise UserError(f"The last proof of this SELECT for {target} failed: {proof['details']['verdict']}")


def _id_of(context: Context, target: TableName, workflow_id: str | None) -> str:
    """What was asked for, or the name of the target. A workflow that does more is its author's to change."""
    chosen = workflow_id or ".".join(map(_word, target.identifier))
    versions = context.machinery.versions
    if versions.newest(chosen) is None:
        return chosen
    workflow = versions.named(chosen, "latest").workflow
    declared = [declared_query(step) for step in workflow.all_steps()]
    is_ours = len(declared) == 1 and declared[0] is not None and context.lake.name(declared[0][0]) == target
    if not is_ours or workflow.triggers or workflow.params:
        raise Conflict(
            f"There is a workflow {chosen} that does more than to declare {target}.",
            hint="Change the SELECT in its file and push it, or name another workflow.",
        )
    return chosen


def _first_run(lake: Lake, target: TableName, workflow_id: str) -> Action:
    known = find(lake, target)
    rows = known is not None and known.history().head is not None
    properties: Mapping[str, str] = known.metadata.get("properties", {}) if known is not None else {}
    if not rows:
        return action("Run it", Verb.RUN, workflow=workflow_id)
    empty = None if QUERY_PROPERTY in properties else str(target)
    return action("Replace what the target holds", Verb.RUN, workflow=workflow_id, full_refresh=True, empty=empty)


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)
