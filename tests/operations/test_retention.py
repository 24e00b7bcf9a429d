"""What is too old goes, and nothing else."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from dalsegno.model.captures import actor_of_run
from dalsegno.operations.retention import Retention
from dalsegno.operations.run_views import RunView
from dalsegno.store import run_tables
from tests.engine.support import Place, foreach, noop, shell, subworkflow
from tests.operations.conftest import Clock
from tests.store.examples import capture


def retention(place: Place, keep_runs_least: int = 1) -> Retention:
    chosen = replace(place.operations.settings, keep_runs_least=keep_runs_least)
    return Retention(chosen, place.operations.store, place.operations.clock)


def numbers(place: Place, workflow_id: str = "w") -> list[int]:
    return sorted(run.number for run in place.operations.runs.list(workflow_id, limit=100))


def count(place: Place, name: str, run: RunView | None = None) -> int:
    table = getattr(run_tables, name)
    query = select(func.count()).select_from(table)
    if run is not None:
        query = query.where(table.c.run_id == run.id)
    with place.operations.store.database.reading() as connection:
        return connection.execute(query).scalar_one()


def test_old_runs_go_with_all_that_was_remembered_of_them(either_place: Place, clock: Clock) -> None:
    either_place.operations.signals.announce("x")
    either_place.push("w", foreach("each", [1, 2], [noop("a", signal_dependencies=[{"name": "x"}])]))
    first = either_place.run("w")
    clock.pass_by(days=89)
    second = either_place.run("w")
    assert retention(either_place).forget_runs().runs == 0

    clock.pass_by(days=2)
    assert retention(either_place).forget_runs().runs == 1

    assert numbers(either_place) == [2]
    for name in ("flows", "steps", "events", "signal_waits"):
        assert count(either_place, name, first) == 0
        assert count(either_place, name, second) > 0


def test_the_newest_stay_however_old(either_place: Place, clock: Clock) -> None:
    either_place.push("w", noop("a"))
    runs = [either_place.run("w") for _ in range(5)]
    clock.pass_by(days=1000)

    assert retention(either_place, keep_runs_least=3).forget_runs().runs == 2
    assert numbers(either_place) == [3, 4, 5]
    assert all(count(either_place, "events", run) for run in runs[2:])


def test_open_runs_stay(either_place: Place, clock: Clock) -> None:
    either_place.push("w", noop("a"), properties={"run_strategy": {"rule": "PARALLEL"}})
    waiting = either_place.start("w")
    either_place.run("w")
    either_place.run("w")
    clock.pass_by(days=1000)

    retention(either_place).forget_runs()

    assert (waiting.number, numbers(either_place)) == (1, [1, 3])


def test_a_restarted_run_is_as_old_as_its_last_end(either_place: Place, clock: Clock) -> None:
    either_place.push("w", shell("bad", "exit 1", retry_policy={"error_retry_limit": 0}))
    run = either_place.run("w")
    either_place.run("w")
    clock.pass_by(days=80)
    either_place.operations.runs.restart(run.id)
    either_place.finish(run)
    clock.pass_by(days=20)

    assert retention(either_place).forget_runs().runs == 0


def test_a_run_goes_with_those_that_it_started(either_place: Place, clock: Clock) -> None:
    either_place.push("inner", noop("a"))
    either_place.push("w", subworkflow("below", "inner"))
    for _ in range(2):
        either_place.run("w")
    clock.pass_by(days=100)

    assert retention(either_place).forget_runs().runs == 2
    assert (numbers(either_place), numbers(either_place, "inner")) == ([2], [2])


def test_a_run_stays_while_one_that_it_started_does(either_place: Place, clock: Clock) -> None:
    either_place.push("inner", noop("a"))
    either_place.push("w", subworkflow("below", "inner"))
    for _ in range(2):
        either_place.run("w")
    clock.pass_by(days=100)
    # Now both of the inner ones are among the newest.
    assert retention(either_place, keep_runs_least=2).forget_runs().runs == 0
    either_place.push("w", noop("other"))
    for _ in range(2):
        either_place.run("w")
    clock.pass_by(days=100)

    assert retention(either_place, keep_runs_least=2).forget_runs().runs == 0
    assert numbers(either_place) == [1, 2, 3, 4]


def test_a_run_that_captured_stays_without_its_events(either_place: Place, clock: Clock) -> None:
    either_place.push("w", noop("a"))
    runs = [either_place.run("w") for _ in range(3)]
    made = replace(capture(), created_by=actor_of_run("w", 1))
    either_place.operations.store.record_capture(made)
    clock.pass_by(days=100)

    done = retention(either_place).forget_runs()

    assert (done.runs, numbers(either_place)) == (1, [1, 3])
    assert done.events > 0
    assert (count(either_place, "events", runs[0]), count(either_place, "steps", runs[0])) == (0, 1)
    assert count(either_place, "events", runs[2]) > 0


def test_it_stops_when_it_is_told_to(either_place: Place, clock: Clock) -> None:
    either_place.push("w", noop("a"))
    for _ in range(3):
        either_place.run("w")
    clock.pass_by(days=100)

    assert retention(either_place).forget_runs(lambda: False).runs == 0


class TestFiles:
    @pytest.fixture
    def run(self, place: Place) -> RunView:
        return place.do(shell("a", "echo hello"))

    def folder(self, place: Place, number: int = 1) -> Path:
        return place.operations.settings.jobs_path / "w" / str(number)

    def age(self, place: Place, days: int, number: int = 1) -> None:
        then = (place.operations.clock() - timedelta(days=days)).timestamp()
        os.utime(self.folder(place, number), (then, then))

    def in_days(self, place: Place, days: int) -> Retention:
        now = place.operations.clock() + timedelta(days=days)
        return replace(retention(place), clock=lambda: now)

    def test_they_go_when_the_run_ended_long_ago(self, place: Place, run: RunView) -> None:
        assert (self.folder(place) / "a" / "1" / "log").exists()
        assert self.in_days(place, 29).remove_files() == 0
        assert self.in_days(place, 31).remove_files() == 1
        assert not self.folder(place).exists()
        assert numbers(place) == [run.number]

    def test_they_stay_while_the_run_is_open(self, place: Place, run: RunView) -> None:
        waiting = place.start("w")
        self.folder(place, waiting.number).mkdir()
        self.age(place, 100, waiting.number)

        assert retention(place).remove_files() == 0
        assert self.folder(place, waiting.number).exists()

    def test_they_go_when_nobody_knows_the_run(self, place: Place, run: RunView) -> None:
        self.folder(place, 7).mkdir()
        assert retention(place).remove_files() == 0
        self.age(place, 31, 7)
        assert retention(place).remove_files() == 1
        assert self.folder(place).exists()

    def test_what_is_no_folder_of_a_run_stays(self, place: Place, run: RunView) -> None:
        elsewhere = place.folder / "precious"
        elsewhere.mkdir()
        (elsewhere / "file").write_text("x")
        jobs = place.operations.settings.jobs_path
        (jobs / "w" / "8").symlink_to(elsewhere)
        (jobs / "w" / "notes").mkdir()
        (jobs / "file").write_text("x")

        self.in_days(place, 1000).remove_files()

        assert (elsewhere / "file").exists()
        assert (jobs / "w" / "notes").exists()
        assert (jobs / "file").exists()
