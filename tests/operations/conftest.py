"""A place to run workflows in, on each database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.engine.conftest import either_place, engine_database, place
from tests.engine.support import Place

__all__ = ["either_place", "engine_database", "place"]


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **time: float) -> None:
        self.now += timedelta(**time)


@pytest.fixture
def clock(either_place: Place) -> Clock:
    clock = Clock()
    either_place.orchestrator.clock = either_place.orchestrator.versions.clock = clock
    return clock
