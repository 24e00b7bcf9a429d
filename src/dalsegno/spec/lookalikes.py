"""Names that other tools give to fields of workflows and steps: as a parameter, each is more likely a mistake."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dalsegno.spec.problems import meant
from dalsegno.spec.step_types import blocks

_RETRIES = "retry_policy: {error_retry_limit: 3}"
_BACKOFF = "retry_policy: {backoff: {type: FIXED_BACKOFF, error_retry_backoff_in_secs: 60}}"
_IGNORE = "failure_mode: IGNORE_FAILURE"
_TIMEOUTS = dict.fromkeys(
    ("timeout_seconds", "timeout_secs", "timeout_sec", "timeout_minutes", "timeout_in_secs", "execution_timeout"),
    "timeout: 30min",
)
_OF_JOBS = {
    **dict.fromkeys(("retries", "retry", "max_retries", "retry_count", "retry_limit", "max_attempts"), _RETRIES),
    **dict.fromkeys(("retry_delay", "retry_backoff", "retry_interval"), _BACKOFF),
    **dict.fromkeys(("allow_failure", "continue_on_error", "ignore_failure", "ignore_failures"), _IGNORE),
}
#: By the name that somebody may write in a workflow: what to write instead.
OF_WORKFLOW: Mapping[str, str] = {
    **{name: f"{written}, in a job" for name, written in _OF_JOBS.items()},
    **_TIMEOUTS,
    **dict.fromkeys(("schedule", "cron", "schedule_interval", "schedules"), "Trigger: {cron: '@daily'}, beside it"),
    **dict.fromkeys(("owners", "owned_by"), "owner: NAME"),
    **dict.fromkeys(("alerts", "alert", "notify", "notifications", "on_failure"), "alerting: {on_failure: [NAME]}"),
    **dict.fromkeys(("sla", "on_late", "complete_within"), "alerting: {complete_within: 2h, on_late: [NAME]}"),
    **dict.fromkeys(("on_lag", "max_lag"), "alerting: {max_lag: 1h, on_lag: [NAME]}"),
    **dict.fromkeys(("concurrency", "max_active_runs", "max_concurrency"), "run_strategy: PARALLEL"),
    **dict.fromkeys(("dependencies", "edges"), "dag: [a -> b]"),
    **dict.fromkeys(("tasks", "stages"), "jobs"),
}
#: The same in a job.
OF_JOB: Mapping[str, str] = {
    **_OF_JOBS,
    **_TIMEOUTS,
    **dict.fromkeys(("after", "needs", "depends", "dependencies", "upstream", "run_after"), "depends_on: [STEP]"),
    **dict.fromkeys(("when", "if", "run_if"), "transition: [IF CONDITION THEN STEP], in the step before"),
}
#: The fields of a step itself.
STEP_FIELDS = frozenset(
    {
        *("id", "name", "type", "type_version", "description", "tags", "timeout", "failure_mode", "retry_policy"),
        *("transition", "depends_on", "dependsOn", "signal_dependencies", "signal_outputs", "params"),
    }
)


def instead_in_workflow(name: str, fields: Collection[str]) -> str | None:
    """A question that may help, if the name of a parameter looks like that of a field."""
    return _instead(name, fields, OF_WORKFLOW)


def instead_in_job(name: str, fields: Collection[str], block: str | None) -> str | None:
    """The same in a job whose type has this block."""
    if name == block:
        return None
    known = blocks()
    if block is not None and name in known.get(block, {}):
        return f"did you mean {block}: {{{name}: ...}}?"
    if name in known and name not in fields and (block is None or block in known):
        return f"the type of the step has the block {block!r}" if block else "the type of the step has no block"
    return _instead(name, [*fields, *([block] if block else [])], OF_JOB)


def _instead(name: str, fields: Collection[str], aliases: Mapping[str, str]) -> str | None:
    alias = aliases.get(name.lower())
    return f"did you mean {alias}?" if alias else meant(name, fields, cutoff=0.85)
