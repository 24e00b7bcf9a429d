"""When time triggers are due, for people."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from dalsegno.cli.tables import table
from dalsegno.triggers.time_triggers.operations import DueView, TimeTriggerView

#: So many times in one place are named.
_FEW = 3


def lines(view: TimeTriggerView, workflow_id: str | None) -> Iterator[str]:
    yield _title(view, has_workflow=workflow_id is not None)
    rows = [
        _row(name if number == 0 else "", due, view)
        for name, found in (("past", view.past), ("next", view.next))
        for number, due in enumerate(found or [None])
    ]
    yield table(("", "DUE", "UTC", "STARTS", "CLOCK"), rows, indent="  ")


def _title(each: TimeTriggerView, *, has_workflow: bool) -> str:
    parts = [f"{each.cron} in {each.timezone}"]
    if each.fuzzy_max_delay:
        parts.append(f"starts up to {each.fuzzy_max_delay} later")
    if has_workflow:
        parts.append(_CATCH_UP[each.catch_up.rule].format(most=each.catch_up.most))
    return "; ".join(parts)


_CATCH_UP = {
    "NONE": "catches up on nothing",
    "LATEST": "catches up on the latest",
    "ALL": "catches up on all, at most {most}",
}


def _row(name: str, due: DueView | None, each: TimeTriggerView) -> tuple[str, ...]:
    if due is None:
        return name, "never", "", "", ""
    utc = f"{due.due_at:%Y-%m-%d} {_clock(due.due_at)} UTC"
    start = f"at {due.start_at:%H:%M:%S} UTC" if due.start_at != due.due_at else ""
    return name, _local(due), utc, start, _odd(due, each)


def _local(due: DueView) -> str:
    return f"{due.local:%a %Y-%m-%d} {_clock(due.local)} {due.local:%Z}"


def _clock(moment: datetime) -> str:
    return f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"


def _odd(due: DueView, each: TimeTriggerView) -> str:
    """What the clock does to it, if anything."""
    if due.shown:
        only = ", not the second" if not each.is_interval else ""
        return f"the clock shows this twice: the {due.shown} time{only}"
    if not due.skipped:
        return ""
    named = [("" if wall.date() == due.local.date() else f"{wall:%a} ") + _clock(wall) for wall in due.skipped]
    times = f"{named[0]} to {named[-1]}" if len(named) > _FEW else " and ".join(named)
    return f"the clock skips {times}" if each.is_interval else f"for {times}, which the clock skips"
