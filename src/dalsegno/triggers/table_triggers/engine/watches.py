"""Which tables an incremental trigger watches, and for whom: as the workflow's own steps capture them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dalsegno.capture.consumers import consumer_of_workflow
from dalsegno.capture.lake import Lake
from dalsegno.capture.requests import CaptureOptions, capture_request
from dalsegno.errors import UserError
from dalsegno.model.capture_requests import TableRequest
from dalsegno.model.captures import EVERY_OPERATION, CaptureSpec
from dalsegno.model.tables import TableName
from dalsegno.model.workflow import Workflow
from dalsegno.spec.captures import WrittenCapture, watched_captures
from dalsegno.steps.capture_fields import SPEC_FIELDS, capture_options
from dalsegno.steps.fields import BlockValues
from dalsegno.triggers.table_triggers.model import IncrementalTrigger

#: Until a run decides what is captured: whatever changes may be wanted.
_ANY_CHANGE = CaptureSpec(operations=EVERY_OPERATION)
_WITHOUT_SPEC: CaptureOptions = {"changes": None, "operations": None, "keys": (), "mode": None}


def watches_of(lake: Lake, workflow: Workflow, trigger: IncrementalTrigger) -> tuple[TableRequest, ...]:
    """One for each table and consumer."""
    captures = [each for each in watched_captures(workflow) if each.is_of_branch(trigger.branch)]
    sources = [(lake.name(table), capture) for capture in captures for table in capture.tables or ()]
    named = [lake.name(table) for table in trigger.tables] or [table for table, _ in sources]
    found: dict[str, TableRequest] = {}
    for table in named:
        by_name = [capture for source, capture in sources if source == table]
        # A step that takes its sources from parameters may be the one.
        for capture in by_name or [each for each in captures if each.tables is None]:
            watch = _watch(lake, workflow, trigger, table, capture)
            found.setdefault(watch.key, watch)
        if not any(watch.table == table for watch in found.values()):
            raise UserError(
                f"No step of {workflow.id} captures {table}, so no run would process its changes.",
                hint=f"Add a step: type: IpCapture, ip_capture: {{source_tables: [{table}]}}",
            )
    return tuple(found.values())


def _watch(
    lake: Lake, workflow: Workflow, trigger: IncrementalTrigger, table: TableName, capture: WrittenCapture
) -> TableRequest:
    """The request that the step will make, as far as it is known before a run."""
    if not capture.knows("consumer"):
        raise UserError(
            f"Step {capture.step_id!r} of {workflow.id} sets its consumer at run time, so {table} cannot be watched "
            "for it.",
            hint="Write the consumer's name, or leave it out.",
        )
    fields = BlockValues(capture.step_id, capture.fields)
    consumer = fields.text("consumer") or consumer_of_workflow(workflow.id)
    options = capture_options(fields)
    options["branch"] = trigger.branch or capture.branch
    is_spec_known = capture.knows(*SPEC_FIELDS) and (capture.tables is not None or not _has_keys_by_table(options))
    if not is_spec_known:
        options |= _WITHOUT_SPEC
    request = capture_request(lake.name, capture.tables or [str(table)], consumer, **options)
    [watch] = [each for each in request.tables if each.table == table]
    return watch if is_spec_known else replace(watch, spec=_ANY_CHANGE)


def _has_keys_by_table(options: CaptureOptions) -> bool:
    keys = options["keys"]
    return isinstance(keys, Mapping) or any(":" in key for key in keys)
