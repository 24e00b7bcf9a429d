"""What the answer to a request means for an HTTP step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dalsegno import sel
from dalsegno.clock import utc_now
from dalsegno.errors import SelError
from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Stopped, Succeeded
from dalsegno.steps.contract import Work

#: Of Maestro's states, those that mean a failure.
_FAILURES = {
    "USER_ERROR": FailureKind.USER,
    "PLATFORM_ERROR": FailureKind.PLATFORM,
    "FATAL_ERROR": FailureKind.FATAL,
    "TIMED_OUT": FailureKind.TIMEOUT,
}
_TIMEOUT_STATUS, _BUSY_STATUS, _FIRST_USER_STATUS, _FIRST_SERVER_STATUS = 408, 429, 400, 500


@dataclass(frozen=True)
class GoesOn:
    """What the request began, or asked for, has not ended."""


def judged(work: Work, outputs: Mapping[str, Any]) -> Outcome | GoesOn:
    """As the step says by ``state_expr``, or else by the status."""
    expression = work.params.get("state_expr")
    if not isinstance(expression, str):
        return by_status(outputs)
    seen = {name: sel.value_of(value) for name, value in {**work.params, **outputs}.items() if name != "http"}
    try:
        state = sel.evaluate(expression, seen, now=utc_now()).value
    except SelError as error:
        return Failed(FailureKind.FATAL, f"state_expr: {error.message}", error.hint, outputs)
    return _by_state(state, outputs)


def _by_state(state: Any, outputs: Mapping[str, Any]) -> Outcome | GoesOn:
    message = f"The server answered {outputs['status_code']}, which state_expr takes for {state}."
    match state:
        case "DONE":
            return Succeeded(outputs)
        case "RUNNING":
            return GoesOn()
        case "STOPPED":
            return Stopped(message)
        case _ if state in _FAILURES:
            return Failed(_FAILURES[state], message, outputs=outputs)
        case _:
            known = ", ".join(["DONE", "RUNNING", "STOPPED", *_FAILURES])
            return Failed(FailureKind.FATAL, f"state_expr gave {state!r}, expected one of {known}.", outputs=outputs)


def by_status(outputs: Mapping[str, Any]) -> Outcome:
    """What a status means where the step does not say."""
    status = outputs["status_code"]
    if status < _FIRST_USER_STATUS:
        return Succeeded(outputs)
    passing = status >= _FIRST_SERVER_STATUS or status in (_TIMEOUT_STATUS, _BUSY_STATUS)
    kind = FailureKind.PLATFORM if passing else FailureKind.USER
    beginning = " ".join(str(outputs["response_body"]).split())[:200]
    return Failed(kind, f"The server answered {status}: {beginning or 'nothing else'}", outputs=outputs)
