"""The playback example in both forms on a real Spark, over some days: which of them has every row that came late?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from dalsegno.model.runs import RunStatus
from dalsegno.operations.orchestrator import Orchestrator
from dalsegno.settings import Settings
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.steps.spark_sessions import local_server
from dalsegno.store import Store
from tests.conftest import warm_spark

pytestmark = pytest.mark.spark

EXAMPLE = Path(__file__).parents[2] / "examples" / "playback"
FIRST, DAYS_BEFORE, RUNS = date(2026, 1, 1), 24, 2
EVENTS = 1000


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Settings]:
    with warm_spark(tmp_path_factory.mktemp("project"), pytestconfig) as loaded:
        yield loaded


class Place:
    def __init__(self, settings: Settings) -> None:
        self._address = local_server(settings).ensure().address
        self._orchestrator = Orchestrator(settings, Store.open(settings.store))
        for file in EXAMPLE.glob("*.yaml"):
            self._orchestrator.push_file(file)

    def close(self) -> None:
        self._orchestrator.close()

    def run(self, workflow_id: str, **params: Any) -> None:
        run = self._orchestrator.finish(self._orchestrator.start(f"playback.{workflow_id}", params).id)
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


def test_only_the_incremental_form_has_every_late_row(place: Place) -> None:
    place.run("setup")
    tables = {
        form: {"daily": f"lake.media.{form}_daily", "agg": f"lake.media.{form}_agg"} for form in ("lookback", "full")
    }
    for number, form in enumerate(tables):
        place.run("setup", source=f"lake.media.unused_{number}", **tables[form])

    def compute_back(form: str, day: date, days: int) -> None:
        for stage in ("lookback_daily", "lookback_agg"):
            place.run(stage, day=str(day), lookback=days, **tables[form])

    def arrive(first: date, last: date) -> None:
        place.run("arrive", epoch=str(FIRST), first_day=str(first), last_day=str(last), events=EVENTS)

    last = FIRST + timedelta(DAYS_BEFORE - 1)
    arrive(FIRST, last)
    compute_back("lookback", last, DAYS_BEFORE)
    for day in (last, *(last + timedelta(number + 1) for number in range(RUNS))):
        if day > last:
            arrive(day, day)
            compute_back("lookback", day, 14)
        place.run("daily")
        place.run("daily_agg")
    compute_back("full", day, DAYS_BEFORE + RUNS)

    assert place.differing("playback_daily", "full_daily") == (0, 0)
    assert place.differing("playback_daily_agg", "full_agg") == (0, 0)
    [told] = place.sql(
        "SELECT COUNT(*) AS rows, COUNT(DISTINCT event_id) AS events, "
        f"COUNT(DISTINCT event_id) FILTER (WHERE event_day < DATE_SUB(DATE'{day}', 14)) AS old FROM lake.media.playback"
    )
    assert told["events"] < told["rows"], "something was delivered twice"
    missed, surplus = place.differing("full_daily", "lookback_daily")
    assert missed > 0
    assert surplus == 0
    [late] = place.sql(
        "SELECT COUNT(DISTINCT event_id) AS rows FROM lake.media.playback p WHERE "
        f"TO_DATE(received_at) > DATE'{last}' AND DATEDIFF(received_at, event_day) > 14 AND NOT EXISTS ("
        "SELECT 1 FROM lake.media.playback e WHERE e.event_id = p.event_id AND e.received_at < p.received_at)"
    )
    assert missed == late["rows"]
