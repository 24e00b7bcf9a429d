"""Runs and steps for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil
from shlex import quote
from typing import TYPE_CHECKING, Any

from dalsegno.model.step_files import StepFile, Unstored

if TYPE_CHECKING:
    from dalsegno.operations.run_views import RunView, StepView, WaitView
    from dalsegno.operations.version_diff import VersionDiff

#: How much of a file's SHA-256 is shown.
_DIGITS = 12

#: One sign and one colour per status; what is not named here has neither.
SIGNS = {
    "SUCCEEDED": ("✔", "green"),
    "RUNNING": ("▶", "cyan"),
    "IN_PROGRESS": ("▶", "cyan"),
    "CREATED": ("…", "white"),
    "PAUSED": ("‖", "yellow"),
    "WAITING_FOR_SIGNALS": ("…", "white"),
    "NOT_CREATED": ("·", "bright_black"),
    "UNSATISFIED": ("∅", "bright_black"),
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


def lasted(started: datetime | None, ended: datetime | None, now: datetime | None = None) -> str:
    """How long something took, or has taken."""
    if started is None or (ended is None and now is None):
        return ""
    seconds = max(((ended or now or started) - started) / timedelta(seconds=1), 0.0)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"  # noqa: PLR2004


def pushed(found: Any) -> str:
    active = ", active" if found.is_active else ""
    if not found.is_new:
        return f"{found.workflow_id} is at version {found.version} already: the file says the same."
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


def runs(found: Sequence[RunView]) -> str:
    if not found:
        return "No runs."
    width = max(len(run.name) for run in found)
    lines = []
    for run in found:
        again = f" (attempt {run.attempt})" if run.attempt > 1 else ""
        took = lasted(run.started_at, run.ended_at)
        why = f"  {brief(run.reason)}" if run.reason else ""
        began = f"{run.created_at:%Y-%m-%d %H:%M:%S}"
        lines.append(f"{run.name:<{width}}  {run.status:<12}{began}  {took:>12}{again}{why}")
    return "\n".join(lines)


def run_line(run: RunView, now: datetime) -> str:
    sign, _ = SIGNS.get(run.status, ("?", ""))
    again = f", attempt {run.attempt}" if run.attempt > 1 else ""
    paused = ", paused" if run.is_paused and not run.ended_at else ""
    took = lasted(run.started_at, run.ended_at, now)
    return f"{sign} {run.name} (version {run.version}{again}{paused})  {run.status}  {took}".rstrip()


def step_line(step: StepView, now: datetime) -> str:
    sign, _ = SIGNS.get(step.status, ("?", ""))
    parts = [f"{sign} {step.id}", step.type, step.status]
    if step.attempt > 1:
        parts.append(f"attempt {step.attempt}")
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
        when = "now"
    elif seconds < 100:  # noqa: PLR2004 - what one still counts in seconds
        when = f"in {seconds} s"
    else:
        when = f"in {lasted(now, now + timedelta(seconds=seconds))}"
    retry = failure.get("retry")
    return f"retries {when} (attempt {retry['attempt']} of {retry['of']})" if retry else f"retries {when}"


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
    lines += [f"  → {hint}" for hint in _hints(run, steps, newest, file)]
    return "\n".join(lines)


def _hints(run: RunView, steps: Sequence[StepView], newest: int | None, file: str | None) -> Iterator[str]:
    """What to do about a run that did not succeed."""
    for step in steps:
        if step.failure and step.status in ENDED_BADLY and step.failure["hint"]:
            yield str(step.failure["hint"])
    if run.status in ENDED_BADLY:
        yield f"When that is mended: dalsegno restart {run.name}"
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
        for index, inside in step.inside.items():
            yield f"{indent}  [{index}]"
            yield from _below(inside, now, f"{indent}    ")


def versions(found: Sequence[Any]) -> str:
    lines = []
    for each in found:
        active = "  active" if each["is_active"] else ""
        lines.append(f"{each['version']:>4}  {each['created_at']:%Y-%m-%d %H:%M:%S}  {each['created_by']}{active}")
        # Several steps may name the same file.
        lines += dict.fromkeys(f"      {_file_state(file):<16}  {file.name}" for file in each["files"])
    return "\n".join(lines)


def _file_state(file: StepFile) -> str:
    if file.digest is not None:
        return file.digest[:_DIGITS]
    return "read at run time" if file.unstored is Unstored.PARAMETERS else "not stored"


def version_diff(found: VersionDiff) -> str:
    return found.diff.removesuffix("\n") or f"Versions {found.first} and {found.second} are the same."


def event(found: Any) -> str:
    when = f"{found['happened_at']:%H:%M:%S}"
    what = found["data"].get("status", "")
    who = f"step {found['step_id']}" if found["step_id"] else "run"
    inside = (found["flow_id"] or "").partition("/")[2]
    place = f" [{inside}]" if inside else ""
    again = f"  attempt {found['attempt']}" if (found["attempt"] or 1) > 1 else ""
    # A failure stays with its step until the next try has ended; it is told once.
    failure = found["data"].get("failure") if what in (*FAILED, "WAITING_FOR_SIGNALS") else None
    retry = (failure or {}).get("retry") if what not in ENDED else None
    why = (failure or {}).get("message") or found["data"].get("reason") or ""
    said = f"  {brief(why)}" if why else ""
    if failure and retry:
        said = f"  {_retry(failure, datetime.fromisoformat(retry['at']), found['happened_at'])}: {brief(why)}"
    return f"{when}  {who}{place}  {what}{again}{said}"
