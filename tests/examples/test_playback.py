"""The playback example in its three forms on a real Spark, over some days: which has every row that came late?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from dalsegno.model.runs import RunStatus
from dalsegno.operations.callers import local_caller
from dalsegno.operations.facade import Operations
from dalsegno.settings import Settings
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.steps.spark.sessions import local_server
from dalsegno.store import Store
from tests.conftest import SHORT_LIVED, warm_spark

pytestmark = pytest.mark.spark

EXAMPLE = Path(__file__).parents[2] / "examples" / "playback"
FIRST, DAYS_BEFORE, RUNS = date(2026, 1, 1), 24, 2
EVENTS = 3000


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Settings]:
    """With a Spark that works as that of users does: other tests have one that is made for few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", SHORT_LIVED)
        with warm_spark(tmp_path_factory.mktemp("project"), pytestconfig) as loaded:
            yield loaded


class Place:
    def __init__(self, settings: Settings) -> None:
        self._address = local_server(settings).ensure().address
        self._operations = Operations(Store.open(settings.store), settings, local_caller())
        for file in EXAMPLE.glob("*.yaml"):
            self._operations.workflows.push_file(file)

    def close(self) -> None:
        self._operations.close()

    def run(self, workflow_id: str, **params: Any) -> None:
        run = self._operations.runs.finish(self._operations.runs.start(f"playback.{workflow_id}", params).id)
        assert run.status is RunStatus.SUCCEEDED, run.reason

    def sql(self, statement: str) -> list[dict[str, Any]]:
        session = Session(self._address, session_id_for(uuid4().hex))
        rows: list[dict[str, Any]] = session.execute(statement, 10_000).to_pylist()
        session.release()
        return rows

    def differing(self, table: str, other: str) -> tuple[int, int]:
        """How many rows one table has that the other has not, and the reverse."""
        query = "SELECT COUNT(*) AS rows FROM (SELECT * FROM lake.media.{} EXCEPT ALL SELECT * FROM lake.media.{})"
        missing, surplus = (self.sql(query.format(*pair))[0]["rows"] for pair in ((table, other), (other, table)))
        return missing, surplus


@pytest.fixture
def place(settings: Settings) -> Iterator[Place]:
    made = Place(settings)
    yield made
    made.close()


def test_only_the_incremental_forms_have_every_late_row(place: Place) -> None:
    targets = {"daily": "lake.media.lookback_daily", "agg": "lake.media.lookback_agg"}
    by_hand = {"daily": "lake.media.by_hand_daily", "agg": "lake.media.by_hand_agg"}
    place.run("setup")
    place.run("setup", source="lake.media.unused", **targets)
    place.run("setup", source="lake.media.unused_too", **by_hand)

    def arrive(first: date, last: date) -> None:
        place.run("arrive", epoch=str(FIRST), first_day=str(first), last_day=str(last), events=EVENTS)

    def look_back(day: date, days: int) -> None:
        place.run("lookback_daily", day=str(day), lookback=days, daily=targets["daily"])
        place.run("lookback_agg", day=str(day), lookback=days, source=targets["daily"], agg=targets["agg"])

    def process_what_is_new() -> None:
        place.run("daily")
        place.run("by_hand_daily", daily=by_hand["daily"])
        place.run("by_hand_agg", **by_hand)

    last = FIRST + timedelta(DAYS_BEFORE - 1)
    arrive(FIRST, last)
    look_back(last, DAYS_BEFORE)
    process_what_is_new()
    for day in (last + timedelta(number + 1) for number in range(RUNS)):
        arrive(day, day)
        look_back(day, 14)
        process_what_is_new()

    # All that lookback lacks are events that came after more than 14 days, and for the first time.
    missed, surplus = place.differing("playback_daily", "lookback_daily")
    [late] = place.sql(
        "SELECT COUNT_IF(DATEDIFF(received_at, event_day) > 14) AS missed, COUNT_IF(deliveries > 1) AS again FROM ("
        "SELECT event_day, MIN(received_at) AS received_at, COUNT(*) AS deliveries FROM lake.media.playback "
        f"GROUP BY event_id, event_day) WHERE TO_DATE(received_at) > DATE'{last}'"
    )
    assert (missed, surplus) == (late["missed"], 0)
    assert late["missed"] > 0
    assert late["again"] > 0

    # Of everything, computed anew, the incremental forms lack nothing.
    look_back(day, DAYS_BEFORE + RUNS)
    assert place.differing("playback_daily", "lookback_daily") == (0, 0)
    assert place.differing("playback_daily_agg", "lookback_agg") == (0, 0)
    assert place.differing("by_hand_daily", "lookback_daily") == (0, 0)
    assert place.differing("by_hand_agg", "lookback_agg") == (0, 0)
