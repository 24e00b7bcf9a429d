"""Processes that run workflows, to be killed in the middle of it: see ``tests.store.crashes.killed_at``."""

from __future__ import annotations

from pathlib import Path

from dalsegno.triggers.signal_triggers.engine import SignalTriggers
from tests.engine.support import Place

#: A moment that never comes.
NEVER = 0


def start_and_work(folder: str, workflow_id: str) -> None:
    place = Place.at(Path(folder))
    place.operations.runs.start(workflow_id, idempotency_key="once")
    place.operations.runs.work()
    place.operations.close()


def announce_and_fire(folder: str) -> None:
    place = Place.at(Path(folder))
    operations = place.operations
    operations.signals.announce("b", {"day": 1}, key="once")
    watched = SignalTriggers(
        operations.store,
        operations.machinery.versions.active,
        operations.machinery.start_by_trigger,
        operations.machinery.scopes,
    )
    watched.fire(operations.clock())
    operations.close()
