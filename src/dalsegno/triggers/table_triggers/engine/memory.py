"""What an incremental trigger remembers, as it is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dalsegno.clock import from_millis, to_millis
from dalsegno.model.capture_requests import request_key
from dalsegno.triggers.table_triggers.model import Memory, Span, Waiting


def to_state(memory: Memory, version: int | None) -> dict[str, Any]:
    """``version``: the one that was active, of which a run was started or not."""
    return {
        "version": version,
        "starts": memory.starts,
        "started_ms": None if memory.started_at is None else to_millis(memory.started_at),
        "started_for": {key: list(span) for key, span in memory.started_for.items()},
        "in_vain": memory.in_vain,
        "waiting": {
            key: {"span": list(each.span), "since_ms": to_millis(each.since), "last_ms": to_millis(each.last)}
            for key, each in memory.waiting.items()
        },
    }


def from_state(state: Mapping[str, Any], version: int | None) -> Memory:
    """Of one that has not remembered anything yet, too.

    Another version may succeed where the one before failed: it is tried with what waits, and no back-off is left.
    """
    started_ms = state.get("started_ms")
    is_same = state.get("version") == version
    return Memory(
        starts=state.get("starts", 0),
        started_at=None if started_ms is None else from_millis(started_ms),
        started_for={key: _span(span) for key, span in state.get("started_for", {}).items()} if is_same else {},
        in_vain=state.get("in_vain", 0) if is_same else 0,
        waiting={
            key: Waiting(_span(each["span"]), from_millis(each["since_ms"]), from_millis(each["last_ms"]))
            for key, each in state.get("waiting", {}).items()
        },
    )


def spans_of_run(initiator: Mapping[str, Any]) -> dict[str, Span]:
    """What there was when a run was started, as it knows itself."""
    tables = initiator.get("tables", {})
    return {request_key(table, each["consumer"]): _span(each["span"]) for table, each in tables.items()}


def _span(ends: Sequence[Any]) -> Span:
    return int(ends[0]), int(ends[1])
