"""Shorthands for evaluating."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from dalsegno.errors import SelError
from dalsegno.sel import Limits, evaluate, value_of

#: The moment at which Maestro's answers in maestro.jsonl were recorded.
NOW = datetime(2019, 1, 1, 0, 0, 12, 345_000, tzinfo=UTC)


def result(expression: str, *, limits: Limits | None = None, **params: Any) -> Any:
    """The plain value of an expression."""
    given = {name: value_of(value) for name, value in params.items()}
    return evaluate(expression, given, now=NOW, limits=limits).value


def type_of_result(expression: str) -> str:
    return str(evaluate(expression, {}, now=NOW).type)


def refusal(expression: str, *, limits: Limits | None = None, **params: Any) -> SelError:
    """What is said about an expression that has no value."""
    with pytest.raises(SelError) as caught:
        result(expression, limits=limits, **params)
    return caught.value
