"""Which tables an incremental trigger watches, and for whom: as the workflow's own steps capture them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalsegno.capture.consumers import checked_consumer, consumer_of_workflow
from dalsegno.capture.lake import Lake
from dalsegno.errors import UserError
from dalsegno.model.captures import EVERY_OPERATION, CaptureSpec, capture_spec_of
from dalsegno.model.starts import Bound, Start, parse_start
from dalsegno.model.tables import TableName
from dalsegno.model.workflow import Workflow
from dalsegno.spec.captures import WrittenCapture, written_captures
from dalsegno.triggers.table_triggers.model import IncrementalTrigger, Watch

_MANNER = ("changes", "data_operations", "keys", "capture_mode")


def watches_of(lake: Lake, workflow: Workflow, trigger: IncrementalTrigger) -> tuple[Watch, ...]:
    """One for each table and consumer."""
    captures = [each for each in written_captures(workflow) if each.is_of_branch(trigger.branch)]
    sources = [(lake.name(table), capture) for capture in captures for table in capture.tables or ()]
    named = [lake.name(table) for table in trigger.tables] or [table for table, _ in sources]
    found: dict[str, Watch] = {}
    for table in named:
        by_name = [capture for source, capture in sources if source == table]
        # A step that takes its sources from parameters may be the one.
        for capture in by_name or [each for each in captures if each.tables is None]:
            watch = _watch(workflow, trigger, table, capture)
            found.setdefault(watch.key, watch)
        if not any(watch.table == table for watch in found.values()):
            raise UserError(
                f"No step of {workflow.id} captures {table}, so no run would process its changes.",
                hint=f"Add a step: type: IpCapture, ip_capture: {{source_tables: [{table}]}}",
            )
    return tuple(found.values())


def _watch(workflow: Workflow, trigger: IncrementalTrigger, table: TableName, capture: WrittenCapture) -> Watch:
    if not capture.knows("consumer"):
        raise UserError(
            f"For whom {capture.step_id!r} of {workflow.id} captures is known in a run only, so {table} cannot be "
            "watched for it.",
            hint="Write the consumer's name, or leave it out.",
        )
    fields = capture.fields
    return Watch(
        table=table,
        consumer=checked_consumer(str(fields.get("consumer") or consumer_of_workflow(workflow.id))),
        branch=trigger.branch or capture.branch or "main",
        spec=_spec(capture),
        start=_start(fields),
        bound=Bound(_count(fields, "max_snapshots"), _count(fields, "max_bytes")),
    )


def _spec(capture: WrittenCapture) -> CaptureSpec:
    if not capture.knows(*_MANNER):
        return CaptureSpec(operations=EVERY_OPERATION)
    fields = capture.fields
    operations = [word.lower() for word in _texts(fields, "data_operations")] or None
    return capture_spec_of(fields.get("changes"), operations, _texts(fields, "keys"), fields.get("capture_mode"))


def _start(fields: Mapping[str, Any]) -> Start | None:
    written = fields.get("from")
    return None if written is None else parse_start(str(written))


def _texts(fields: Mapping[str, Any], name: str) -> list[str]:
    found = fields.get(name) or []
    return [str(each) for each in (found if isinstance(found, list) else [found])]


def _count(fields: Mapping[str, Any], name: str) -> int | None:
    text = str(fields.get(name) or "")
    return int(text) if text.isdecimal() and int(text) else None
