"""Signal triggers, for people."""

from __future__ import annotations

from collections.abc import Iterator

from dalsegno.triggers.signal_triggers.operations import SignalTriggerView


def lines(view: SignalTriggerView, workflow_id: str | None) -> Iterator[str]:
    yield f"{workflow_id} waits for the signals {view.waits_for}."
