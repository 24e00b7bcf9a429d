"""Retry policies, timeouts: numbers that may also be texts, because parameters may be in them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from dalsegno.model.workflow import Backoff, RetryPolicy
from dalsegno.spec.durations import duration, names_params
from dalsegno.spec.fields import Fields, kind_of
from dalsegno.spec.nodes import Scalar
from dalsegno.spec.problems import meant

RETRIES = 99
WAIT_SECONDS = 24 * 3600
TIMEOUT_DAYS = 120
_EXPONENT = 1_000_000

_EXPONENTIAL, _FIXED = "EXPONENTIAL_BACKOFF", "FIXED_BACKOFF"
_KINDS = ("error", "platform", "timeout")


def read_retry_policy(fields: Fields | None) -> RetryPolicy:
    if fields is None:
        return RetryPolicy()
    limits = {
        f"{kind}_limit": _amount(fields, f"{kind}_retry_limit", high=RETRIES, what=f"a number from 0 to {RETRIES}")
        for kind in _KINDS
    }
    backoff = _backoff(fields.mapping("backoff"))
    fields.refuse_rest("a retry policy")
    return RetryPolicy(**_given(limits), backoff=backoff)


def _backoff(fields: Fields | None) -> Backoff:
    if fields is None:
        return Backoff()
    kind = (fields.text("type") or _EXPONENTIAL).upper()
    if kind not in (_EXPONENTIAL, _FIXED):
        fields.add(f"there is no back-off {kind!r}", "type", meant(kind, (_EXPONENTIAL, _FIXED)))
    values: dict[str, str | int | None] = {}
    for each in _KINDS:
        base = _seconds(fields, f"{each}_retry_backoff_in_secs")
        values[f"{each}_base"] = base
        if kind == _FIXED:
            values[f"{each}_exponent"] = 1
            values[f"{each}_limit"] = Backoff().error_base if base is None else base
        else:
            values[f"{each}_exponent"] = _amount(fields, f"{each}_retry_exponent", high=_EXPONENT, what="a number")
            values[f"{each}_limit"] = _seconds(fields, f"{each}_retry_limit_in_secs")
    fields.refuse_rest("a back-off")
    return Backoff(**_given(values))


def _given(values: dict[str, str | int | None]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _seconds(fields: Fields, name: str) -> str | int | None:
    return _amount(fields, name, high=WAIT_SECONDS, what="seconds or a duration of at most 24 hours")


def _amount(fields: Fields, name: str, *, high: int, what: str) -> str | int | None:
    """A whole number, a duration, or a text that a run turns into one of them."""
    node = fields.find(name)
    if node is None:
        return None
    value = node.value if isinstance(node, Scalar) else None
    number: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str):
        if names_params(value):
            return value
        length = duration(value)
        number = None if length is None else length // timedelta(seconds=1)
    if number is None or not 0 <= number <= high:
        found = repr(value) if isinstance(node, Scalar) else kind_of(node)
        fields.at(f"{name!r} must be {what}, found {found}", node, name)
        return None
    return value if isinstance(value, str) and not value.strip().isdecimal() else number


def read_timeout(fields: Fields) -> str | None:
    text = fields.text("timeout")
    if text is None or names_params(text):
        return text
    length = duration(text)
    if length is None:
        fields.add(f"the timeout {text!r} is not a duration", "timeout", "write for instance 90s, 30min, 2h or 1 day")
    elif not timedelta() < length <= timedelta(days=TIMEOUT_DAYS):
        fields.add(f"the timeout {text!r} must be above 0 and at most {TIMEOUT_DAYS} days", "timeout")
    return text
