"""Whether a failed attempt is followed by another, and when."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from dalsegno.model.outcomes import FailureKind
from dalsegno.model.retries import Retries
from dalsegno.model.runs import StepStatus, Tries

#: How a step stands that will be tried again.
WAITING = {
    FailureKind.USER: StepStatus.USER_FAILED,
    FailureKind.PLATFORM: StepStatus.PLATFORM_FAILED,
    FailureKind.TIMEOUT: StepStatus.TIMEOUT_FAILED,
}


def next_try(kind: FailureKind, tried: Tries, retries: Retries) -> tuple[Tries, timedelta, int] | None:
    """What was tried with this one counted, how long to wait before it, and how many are left with it.

    None if there is to be none.
    """
    match kind:
        case FailureKind.USER:
            retry, so_far, counted = retries.error, tried.user, replace(tried, user=tried.user + 1)
        case FailureKind.PLATFORM:
            retry, so_far, counted = retries.platform, tried.platform, replace(tried, platform=tried.platform + 1)
        case FailureKind.TIMEOUT:
            retry, so_far, counted = retries.timeout, tried.timeout, replace(tried, timeout=tried.timeout + 1)
        case FailureKind.FATAL:
            return None
    return (counted, retry.wait(so_far), retry.limit - so_far) if so_far < retry.limit else None
