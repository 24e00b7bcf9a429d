"""Lengths of time, timeouts and retries as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dalsegno.errors import ParamError
from dalsegno.model.workflow import Backoff, RetryPolicy
from dalsegno.spec.params.durations import duration_of, retry_policy_of, timeout_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", timedelta(seconds=90)),
        (90, timedelta(seconds=90)),
        ("45s", timedelta(seconds=45)),
        ("2 sec", timedelta(seconds=2)),
        ("30min", timedelta(minutes=30)),
        ("1 minute 1 second", timedelta(seconds=61)),
        ("1 day 2h", timedelta(hours=26)),
        ("1d2h3min4s5ms", timedelta(days=1, hours=2, minutes=3, seconds=4, milliseconds=5)),
        (" 2 Days ", timedelta(days=2)),
        ("500 milliseconds", timedelta(milliseconds=500)),
    ],
)
def test_durations(text: str | int, expected: timedelta) -> None:
    assert duration_of(text) == expected


@pytest.mark.parametrize(
    "text", ["", "soon", "h", "-5", "5 parsecs", "1h and a bit", "1.5h", "9999999999999999d", "9" * 5000]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ParamError, match="number of seconds"):
        duration_of(text)


def test_timeouts() -> None:
    assert timeout_of(None) == timedelta(days=10)
    assert timeout_of("${bar}s", lambda text: text.replace("${bar}", "7")) == timedelta(seconds=7)
    for text in ("0", "121 days"):
        with pytest.raises(ParamError, match="longer than 0 and at most 120 days"):
            timeout_of(text)


def test_retries() -> None:
    values = {"${far}": "2min", "${n}": "3"}
    policy = RetryPolicy(error_limit="${n}", backoff=Backoff(error_base="${far}", error_exponent=3, error_limit="1h"))
    found = retry_policy_of(policy, lambda text: values.get(text, text))
    assert found.error.limit == 3
    waits = [found.error.wait(retries) // timedelta(minutes=1) for retries in range(5)]
    assert waits == [2, 6, 18, 54, 60]
    assert found.error.wait(10_000) == timedelta(hours=1)
    assert (found.platform.limit, found.timeout.limit) == (10, 0)


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        (RetryPolicy(error_limit="many"), "error_retry_limit is a whole number from 0 to 99"),
        (RetryPolicy(error_limit="9" * 5000), "error_retry_limit is a whole number from 0 to 99"),
        (RetryPolicy(platform_limit=100), "platform_retry_limit is a whole number from 0 to 99"),
        (RetryPolicy(backoff=Backoff(error_base="0")), "error_retry_backoff_in_secs is between 1 s and 24 h"),
        (RetryPolicy(backoff=Backoff(timeout_limit="25h")), "timeout_retry_limit_in_secs is between 1 s and 24 h"),
    ],
)
def test_retries_out_of_bounds(policy: RetryPolicy, field: str) -> None:
    with pytest.raises(ParamError, match=field):
        retry_policy_of(policy)


def test_a_fixed_wait() -> None:
    found = retry_policy_of(RetryPolicy(backoff=Backoff(error_base=5, error_exponent=1)))
    assert [found.error.wait(n).seconds for n in (0, 1, 9)] == [5, 5, 5]
