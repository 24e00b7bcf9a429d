"""A place to run workflows in, on each database."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from dalsegno.clock import utc_now
from tests.engine.conftest import either_place, engine_database, place
from tests.engine.support import Place

__all__ = ["either_place", "engine_database", "place"]


class Clock:
    """It stands still unless it is told otherwise. It begins now: jobs have a clock of their own."""

    def __init__(self) -> None:
        self.now = utc_now()

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **time: float) -> None:
        self.now += timedelta(**time)


@pytest.fixture
def clock(either_place: Place) -> Clock:
    clock = Clock()
    either_place.use_clock(clock)
    return clock
