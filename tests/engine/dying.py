"""Processes that run workflows, to be killed in the middle of it: see ``tests.store.crashes.killed_at``."""

from __future__ import annotations

from pathlib import Path

from tests.engine.support import Place

#: A moment that never comes.
NEVER = 0


def start_and_work(folder: str, workflow_id: str) -> None:
    place = Place.at(Path(folder))
    place.orchestrator.start(workflow_id, idempotency_key="once")
    place.orchestrator.work()
    place.orchestrator.close()
