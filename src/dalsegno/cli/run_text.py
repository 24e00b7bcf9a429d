"""Runs and steps for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil
from shlex import quote
from typing import TYPE_CHECKING, Any

from dalsegno.cli.colours import paint
from dalsegno.cli.tables import table
from dalsegno.cli.times import clock, lasted, moment, when
from dalsegno.clock import utc_now

if TYPE_CHECKING:
    from dalsegno.model.step_files import StepFile
    from dalsegno.operations.run_views import RunEvent, RunView, StepView, WaitView
    from dalsegno.operations.version_diff import VersionDiff
    from dalsegno.operations.workflow_list import LastRun, WorkflowView
    from dalsegno.operations.workflows import Version

#: How much of a file's SHA-256 is shown.
_DIGITS = 12

#: One sign and one colour per status; what is not named here has neither.
SIGNS = {
    "SUCCEEDED": ("✔", "green"),
    "RUNNING": ("▶", "cyan"),
    "IN_PROGRESS": ("▶", "cyan"),
    "CREATED": ("…", "dim"),
    "PAUSED": ("‖", "yellow"),
    "WAITING_FOR_SIGNALS": ("…", "dim"),
    "NOT_CREATED": ("·", "dim"),
    "UNSATISFIED": ("∅", "dim"),
    "SKIPPED": ("↷", "yellow"),
    "COMPLETED_WITH_ERROR": ("!", "yellow"),
    "USER_FAILED": ("↻", "yellow"),
    "PLATFORM_FAILED": ("↻", "yellow"),
    "TIMEOUT_FAILED": ("↻", "yellow"),
    "FATALLY_FAILED": ("✘", "red"),
    "FAILED": ("✘", "red"),
    "STOPPED": ("■", "magenta"),
    "TIMED_OUT": ("◷", "red"),
}

#: Statuses of steps whose last attempt has failed, and how a step or a run ends that did.
FAILED = ("USER_FAILED", "PLATFORM_FAILED", "TIMEOUT_FAILED", "COMPLETED_WITH_ERROR", "FATALLY_FAILED", "TIMED_OUT")
ENDED_BADLY = ("FATALLY_FAILED", "FAILED", "TIMED_OUT")
ENDED = (*ENDED_BADLY, "COMPLETED_WITH_ERROR")


def status(word: str) -> str:
    """A status in its colour."""
    return paint(word, SIGNS.get(word, ("?", None))[1])


def sign(word: str) -> str:
    """The sign of a status in its colour."""
    found, colour = SIGNS.get(word, ("?", None))
    return paint(found, colour)


def pushed(found: Any) -> str:
    active = ", active" if found.is_active else ""
    if not found.is_new:
        return f"{found.workflow_id} is at version {found.version} already: nothing changed."
    return f"Pushed {found.workflow_id} as version {found.version}{active}.\nRun it: dalsegno run {found.workflow_id}"


def submitted(run: RunView) -> str:
    asked = "was submitted before with the same key" if run.is_repeated else "has been successfully submitted"
    return f"Workflow run {run.name} {asked}."


def left_to_others(run: RunView, *, is_attended: bool) -> str:
    """What to do about a run that this process does not run itself."""
    follow = f"Watch it: dalsegno watch {run.name}"
    return f"{submitted(run)}\n{follow}" + ("" if is_attended else "\nNo process works on runs now: dalsegno work")


def waits(run: RunView, other: RunView, *, is_attended: bool) -> str:
    """Why a run does not begin."""
    if other.status == "IN_PROGRESS":
        unattended = "" if is_attended else " No process works on that one: dalsegno work"
        return f"{run.name} waits for {other.name}, which is {other.status}.{unattended}"
    if other.status == "FAILED":
        return f"{run.name} waits: {other.name} is FAILED, and must succeed first: dalsegno restart {other.name}"
    return f"{run.name} waits for its turn."


def workflows(views: Sequence[WorkflowView], now: datetime) -> str:
    rows = [
        (
            view.id,
            _versions_of(view),
            _last_run(view.id, view.last_run),
            when(view.last_run.created_at, now) if view.last_run else "",
            _next(view, now),
            lasted(view.waiting_since, None, now) or None,
        )
        for view in views
    ]
    headers = ("WORKFLOW", "VERSION", "LAST RUN", "STARTED", "NEXT", "BEHIND")
    return table(headers, rows, empty="There are no workflows. Push one: dalsegno push FILE", right=(5,))


def _versions_of(view: WorkflowView) -> str:
    newest = "" if view.active_version == view.latest_version else f" of {view.latest_version}"
    return f"{view.active_version or '-'}{newest}"


def _last_run(workflow_id: str, last: LastRun | None) -> str | None:
    if last is None:
        return None
    why = f", {last.reason}" if last.status == "SUCCEEDED" and last.reason else ""
    return f"{sign(last.status)} {workflow_id}/{last.number} {status(last.status)}{why}"


def _next(view: WorkflowView, now: datetime) -> str | None:
    if view.next_due_at:
        return when(view.next_due_at, now)
    return f"when {', '.join(view.watches)} changes" if view.watches else None


def runs(found: Sequence[RunView]) -> str:
    now = utc_now()
    rows = [
        (
            run.name,
            status(run.status),
            when(run.created_at, now, seconds=True),
            lasted(run.started_at, run.ended_at, now) or None,
            run.attempt,
            brief(run.reason) if run.reason else "",
        )
        for run in found
    ]
    headers = ("RUN", "STATUS", "CREATED", "TOOK", "ATTEMPT", "REASON")
    return table(headers, rows, empty="There are no runs.", right=(3,))


def run_line(run: RunView, now: datetime) -> str:
    again = f", run attempt {run.attempt}" if run.attempt > 1 else ""
    paused = ", paused" if run.is_paused and not run.ended_at else ""
    parts = [f"{sign(run.status)} {run.name} (version {run.version}{again}{paused})", status(run.status)]
    if run.status == "SUCCEEDED" and run.reason:
        parts.append(run.reason)
    return "  ".join(filter(None, (*parts, lasted(run.started_at, run.ended_at, now))))


def step_line(step: StepView, now: datetime) -> str:
    parts = [f"{sign(step.status)} {step.id}", step.type, status(step.status)]
    if step.attempt > 1:
        parts.append(f"step attempt {step.attempt}")
    if took := lasted(step.started_at, step.ended_at, None if step.ended_at or step.status != "RUNNING" else now):
        parts.append(took)
    if step.iterations:
        parts.append(_iterations(step))
    if step.run:
        parts.append(f"→ {step.run}")
    if step.progress and step.status == "RUNNING":
        parts.append(_progress(step.progress))
    if step.status == "WAITING_FOR_SIGNALS" and step.signals:
        parts.append(f"for {', '.join(_wait(each) for each in step.signals if each.signal_id is None)}")
    if step.reason:
        parts.append(step.reason)
    if step.again_at and step.failure:
        parts.append(f"{_retry(step.failure, step.again_at, now)}: {brief(step.failure['message'])}")
    elif step.failure and step.status in FAILED:
        parts.append(brief(step.failure["message"]))
    return "  ".join(parts)


def _retry(failure: Mapping[str, Any], at: datetime, now: datetime) -> str:
    """When a step is tried again, as a countdown of whole seconds, and how many attempts there are."""
    seconds = ceil((at - now) / timedelta(seconds=1))
    if seconds <= 0:
        in_time = "now"
    elif seconds < 100:  # noqa: PLR2004 - what one still counts in seconds
        in_time = f"in {seconds} s"
    else:
        in_time = f"in {lasted(now, now + timedelta(seconds=seconds))}"
    retry = failure.get("retry")
    return f"retries {in_time} (step attempt {retry['attempt']} of {retry['of']})" if retry else f"retries {in_time}"


def brief(message: str) -> str:
    """A message in one line: what a job printed last is usually what was wrong."""
    lines = [line.strip() for line in message.splitlines() if line.strip()] or [""]
    return f"{lines[0]} {lines[-1]}" if len(lines) > 1 and lines[0].endswith(":") else lines[0]


def _iterations(step: StepView) -> str:
    total = step.iterations["total"]
    others = ", ".join(f"{count} {status}" for status, count in step.iterations.items() if status != "total")
    return f"{total} iterations: {others}"


def _wait(wait: WaitView) -> str:
    match = ", ".join(f"{name} {operator} {value}" for name, (operator, value) in wait.match.items())
    return f"{wait.name} ({match})" if match else wait.name


def _progress(progress: Any) -> str:
    done, total, unit, message = (progress.get(key) for key in ("done", "total", "unit", "message"))
    bar = ""
    if total:
        filled = round(20 * min(done / total, 1))
        bar = f"[{'█' * filled}{'·' * (20 - filled)}] "
    return f"{bar}{done}{f'/{total}' if total else ''} {unit or ''} {message or ''}".rstrip()


def tree(
    run: RunView,
    steps: Sequence[StepView],
    now: datetime,
    *,
    newest: int | None = None,
    file: str | None = None,
) -> str:
    """A run with its steps. ``newest``: the workflow's newest version. ``file``: where the run's version came from."""
    lines = [run_line(run, now), *_below(steps, now, "  ")]
    if run.reason and run.status != "SUCCEEDED":
        lines += ["because " + run.reason.splitlines()[0], *("  " + line for line in run.reason.splitlines()[1:])]
    lines += [paint(f"  → {hint}", "dim") for hint in _hints(run, steps, newest, file)]
    return "\n".join(lines)


def _hints(run: RunView, steps: Sequence[StepView], newest: int | None, file: str | None) -> Iterator[str]:
    """What to do about a run that did not succeed."""
    for step in steps:
        if step.failure and step.status in ENDED_BADLY and step.failure["hint"]:
            yield str(step.failure["hint"])
    if run.status in ENDED_BADLY:
        yield f"After you fix it: dalsegno restart {run.name}"
        if newest is not None and newest > run.version:
            yield f"With version {newest}, the newest: dalsegno restart {run.name} --latest"
        elif file is not None:
            yield f"If you edit the file: dalsegno push {quote(file)} && dalsegno restart {run.name} --latest"


def newer_version(run: RunView, newest: int | None) -> str | None:
    """A word to whoever restarts a run, and may have meant the version that was pushed since."""
    if newest is None or newest <= run.version:
        return None
    return (
        f"{run.name} resumes with version {run.version}; the newest is version {newest}. "
        f"To resume with that one: dalsegno restart {run.name} --latest"
    )


def cut(lines: list[str], most: int) -> list[str]:
    """As many lines as there is room for: the beginning, the end, and how many are not shown."""
    if len(lines) <= most:
        return lines
    above = max(most * 2 // 3, 1)
    below = max(most - above - 1, 0)
    hidden = len(lines) - above - below
    return [*lines[:above], f"  … {hidden} more lines", *lines[len(lines) - below :]]


def _below(steps: Sequence[StepView], now: datetime, indent: str) -> Iterator[str]:
    for step in steps:
        yield indent + step_line(step, now)
        if step.refresh is not None:
            from dalsegno.cli.refresh_text import refresh_lines  # noqa: PLC0415 - most runs have none

            yield from (f"{indent}    {line}" for line in refresh_lines(step.refresh))
        for index, inside in step.inside.items():
            yield f"{indent}  [{index}]"
            yield from _below(inside, now, f"{indent}    ")


def versions(found: Sequence[Version]) -> str:
    rows: list[tuple[str | int | None, ...]] = []
    for each in found:
        # Several steps may name the same file.
        files = list(dict.fromkeys((file.name, _file_state(file)) for file in each.files)) or [("", "")]
        active = paint("active", "green") if each.is_active else ""
        rows.append((str(each.version), active, moment(each.created_at, seconds=True), each.created_by, *files[0]))
        rows += [("", "", "", "", *file) for file in files[1:]]
    headers = ("VERSION", "ACTIVE", "PUSHED", "BY", "FILE", "CONTENT")
    return table(headers, rows, empty="There are no versions.", right=(0,))


def _file_state(file: StepFile) -> str:
    from dalsegno.model.step_files import Unstored  # noqa: PLC0415 - not for --help

    if file.digest is not None:
        return file.digest[:_DIGITS]
    return "read at run time" if file.unstored is Unstored.PARAMETERS else "not stored"


def version_diff(found: VersionDiff) -> str:
    return found.diff.removesuffix("\n") or f"Versions {found.first} and {found.second} are the same."


def event(found: RunEvent) -> str:
    what = found.data.get("status", "")
    who = f"step {found.step_id}" if found.step_id else "run"
    inside = (found.flow_id or "").partition("/")[2]
    place = f" [{inside}]" if inside else ""
    kind = "step" if found.step_id else "run"
    again = f"  {kind} attempt {found.attempt}" if (found.attempt or 1) > 1 else ""
    # A failure stays with its step until the next try has ended; it is printed once.
    failure = found.data.get("failure") if what in (*FAILED, "WAITING_FOR_SIGNALS") else None
    retry = (failure or {}).get("retry") if what not in ENDED else None
    why = (failure or {}).get("message") or found.data.get("reason") or ""
    said = f"  {brief(why)}" if why else ""
    if failure and retry:
        said = f"  {_retry(failure, datetime.fromisoformat(retry['at']), found.happened_at)}: {brief(why)}"
    return f"{clock(found.happened_at)}  {who}{place}  {status(what)}{again}{said}"
