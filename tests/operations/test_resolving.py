"""What people say about statements that nobody else can tell of."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dalsegno import Lake
from dalsegno.model.work_units import Statement, StatementState, TableState, UnitKey, UnitState, WorkUnit
from dalsegno.operations.resolving import resolve, work_behind
from dalsegno.settings import load
from dalsegno.store import work_units
from tests.store.examples import capture

NOW = datetime(2026, 11, 17, tzinfo=UTC)
BEGUN, DONE, PLANNED = StatementState.BEGUN, StatementState.DONE, StatementState.PLANNED
APPEND = "INSERT INTO lake.db.t SELECT * FROM lake.db.new"
SEVERAL = "FROM lake.db.new INSERT INTO lake.db.t SELECT * INSERT INTO lake.db.u SELECT *"
DRIVER = {"submitted": "w.1.write.1", "deploy_mode": "cluster"}


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake.open(load(working_folder=tmp_path, environment={})) as opened:
        opened.store.record_capture(capture("c1"))
        yield opened


def begin(lake: Lake, *statements: Statement) -> None:
    key = UnitKey(("c1",), "w", "write")
    unit = WorkUnit(key.digest, key, UnitState.OPEN, "template", "w/1", NOW, statements=statements)
    with lake.store.database.writing() as connection:
        work_units.add(connection, unit)


def begun(number: int, text: str = APPEND, doubt: str | None = None) -> Statement:
    before = TableState("uuid", {"main": 1}, 1) if text == APPEND else None
    target = "`lake`.`db`.`t`" if before else None
    return Statement(number, text, BEGUN, target, before, executor=DRIVER, doubt=doubt, begun_at=NOW)


@pytest.mark.parametrize("is_written", [True, False])
@pytest.mark.parametrize("doubt", ["it writes to several tables", None])
def test_only_those_that_a_person_was_asked_about(lake: Lake, doubt: str | None, is_written: bool) -> None:
    """A driver executes several statements out of our sight: of one that leaves a stamp, its target tells."""
    begin(lake, begun(1), begun(2, SEVERAL, doubt), begun(3))
    resolved = resolve(lake, "c1", is_written=is_written)
    assert [each.number for each in resolved.statements] == [2]
    [unit] = work_behind(lake, "c1")
    assert [each.state for each in unit.statements] == [BEGUN, DONE if is_written else PLANNED, BEGUN]
    assert [each.executor for each in unit.statements] == [None, None, None]


def test_the_only_one(lake: Lake) -> None:
    begin(lake, begun(1))
    resolve(lake, "c1", is_written=True)
    [unit] = work_behind(lake, "c1")
    assert [each.state for each in unit.statements] == [DONE]
