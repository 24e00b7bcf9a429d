"""Lengths of time as people write them: ``90``, ``45s``, ``1 day 2h 30min``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from dalsegno.errors import ParamError
from dalsegno.model.retries import Retries, Retry
from dalsegno.model.workflow import RetryPolicy
from dalsegno.spec.durations import duration

#: Turns a text that may refer to parameters into one that does not.
Interpolation = Callable[[str], str]

DEFAULT_TIMEOUT = timedelta(days=10)
LONGEST_TIMEOUT = timedelta(days=120)
MOST_RETRIES = 99
LONGEST_WAIT = timedelta(days=1)

#: Longer ones are not even read.
_LONGEST_NUMBER = 12
_LARGEST_EXPONENT = 2**31 - 1


def duration_of(text: str | int, *, what: str = "a duration") -> timedelta:
    """A length of time; a bare number is one of seconds."""
    found = duration(str(text))
    if found is not None:
        return found
    raise ParamError(
        f"{what} is a number of seconds or such as '45s', '30min' or '1 day 2h'; found '{text}'.",
        hint="Units: d, h, m or min, s, ms, or day(s), hour(s), minute(s), second(s), millisecond(s).",
    )


def timeout_of(text: str | int | None, interpolation: Interpolation = str) -> timedelta:
    """How long a step or a run may take."""
    if text is None:
        return DEFAULT_TIMEOUT
    found = duration_of(interpolation(str(text)), what="A timeout")
    if not timedelta() < found <= LONGEST_TIMEOUT:
        raise ParamError(
            f"A timeout is longer than 0 and at most {LONGEST_TIMEOUT.days} days; found '{text}': {found}."
        )
    return found


def retry_policy_of(policy: RetryPolicy, interpolation: Interpolation = str) -> Retries:
    """The numbers of a retry policy."""

    def number(text: str | int, field: str, most: int) -> int:
        written = interpolation(str(text)).strip()
        if not written.isdecimal() or len(written) > _LONGEST_NUMBER or int(written) > most:
            raise ParamError(f"retry_policy: {field} is a whole number from 0 to {most}; found '{written}'.")
        return int(written)

    def wait(text: str | int, field: str) -> timedelta:
        found = duration_of(interpolation(str(text)), what=f"retry_policy: {field}")
        if not timedelta(seconds=1) <= found <= LONGEST_WAIT:
            raise ParamError(f"retry_policy: {field} is between 1 s and 24 h; found '{text}': {found}.")
        return found

    def retry(kind: str) -> Retry:
        backoff = policy.backoff
        return Retry(
            limit=number(getattr(policy, f"{kind}_limit"), f"{kind}_retry_limit", MOST_RETRIES),
            base=wait(getattr(backoff, f"{kind}_base"), f"backoff.{kind}_retry_backoff_in_secs"),
            exponent=number(getattr(backoff, f"{kind}_exponent"), f"backoff.{kind}_retry_exponent", _LARGEST_EXPONENT),
            longest=wait(getattr(backoff, f"{kind}_limit"), f"backoff.{kind}_retry_limit_in_secs"),
        )

    return Retries(error=retry("error"), platform=retry("platform"), timeout=retry("timeout"))
