"""Incremental triggers as they are written → what decides when they start a run."""

from __future__ import annotations

from datetime import timedelta
from uuid import NAMESPACE_OID, uuid5

from dalsegno.errors import UserError
from dalsegno.model.watching import Rules
from dalsegno.model.workflow import IncrementalTrigger, Quorum
from dalsegno.spec.durations import duration

_LONGEST_NAME = 300


def watch_name(trigger: IncrementalTrigger) -> str:
    """What it watches, in one way of writing: in another version of the workflow, the same is the same trigger."""
    tables = ", ".join(sorted(trigger.tables)) or "what is captured"
    name = f"{tables} on {trigger.branch}" if trigger.branch else tables
    # A database finds triggers by their names, which must not be too long for that.
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}… {uuid5(NAMESPACE_OID, name)}"


def rules_of(trigger: IncrementalTrigger) -> Rules:
    """Of a trigger that nobody has checked yet, too."""
    return Rules(
        name=watch_name(trigger),
        needs_all=trigger.when is Quorum.ALL,
        quiet=_span("quiet", trigger.quiet or "0"),
        min_interval=_span("min_interval", trigger.min_interval or "0"),
        max_wait=None if trigger.max_wait is None else _span("max_wait", trigger.max_wait),
        min_snapshots=trigger.min_snapshots,
        min_files=trigger.min_files,
        min_rows=trigger.min_rows,
        min_bytes=trigger.min_bytes,
    )


def _span(name: str, text: str) -> timedelta:
    found = duration(text)
    if found is None:
        raise UserError(f"{name} is {text!r}, which is no duration.", hint="Write for instance 30s or 10min.")
    return found
