"""When time triggers are due, for people."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from dalsegno.triggers.time_triggers.operations import DueView, TimeTriggerView

#: So many times in one place are named.
_FEW = 3


def lines(view: TimeTriggerView, workflow_id: str | None) -> Iterator[str]:
    yield _title(view, has_workflow=workflow_id is not None)
    width = max((len(_local(due)) for due in (*view.past, *view.next)), default=0)
    for name, found in (("past", view.past), ("next", view.next)):
        if not found:
            yield f"  {name}  never"
        for number, due in enumerate(found):
            yield f"  {name if number == 0 else '':<4}  {_line(due, view, width)}"


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


def _line(due: DueView, each: TimeTriggerView, width: int) -> str:
    utc = f"{due.due_at:%Y-%m-%d} {_clock(due.due_at)} UTC"
    start = f"starts at {due.start_at:%H:%M:%S}" if due.start_at != due.due_at else ""
    return "  ".join(filter(None, (f"{_local(due):<{width}}", utc, start, _odd(due, each))))


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
