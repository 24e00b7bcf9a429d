"""What the work of a thread is about, for its log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from dalsegno.engine.records import Claim

_ABOUT: ContextVar[Mapping[str, Any] | None] = ContextVar("about", default=None)


def about() -> Mapping[str, Any]:
    """``run``, ``step`` and ``attempt``, where they are known."""
    return _ABOUT.get() or {}


@contextmanager
def working_on(claim: Claim) -> Iterator[None]:
    run = f"{claim.run.workflow_id}/{claim.run.row['number']}"
    token = _ABOUT.set({"run": run, "step": claim.step.id, "attempt": claim.state.attempt})
    try:
        yield
    finally:
        _ABOUT.reset(token)
