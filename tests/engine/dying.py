"""Processes that run workflows, to be killed in the middle of it: see ``tests.store.crashes.killed_at``."""

from __future__ import annotations

from pathlib import Path

from dalsegno.triggers.signal_triggers.engine import SignalTriggers
from tests.engine.support import Place

#: A moment that never comes.
NEVER = 0


def start_and_work(folder: str, workflow_id: str) -> None:
    place = Place.at(Path(folder))
    place.orchestrator.start(workflow_id, idempotency_key="once")
    place.orchestrator.work()
    place.orchestrator.close()


def announce_and_fire(folder: str) -> None:
    place = Place.at(Path(folder))
    orchestrator = place.orchestrator
    orchestrator.signals.announce("b", {"day": 1}, key="once")
    watched = SignalTriggers(
        orchestrator.store, orchestrator.versions.active, orchestrator.start_by_trigger, orchestrator.scopes
    )
    watched.fire(orchestrator.clock())
    orchestrator.close()
