"""What a table trigger watches is what its workflow's steps will ask for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dalsegno import Lake
from dalsegno.capture.requests import capture_request
from dalsegno.errors import UserError
from dalsegno.model.capture_requests import TableRequest
from dalsegno.model.captures import EVERY_OPERATION, ChangeKind
from dalsegno.model.snapshots import Operation
from dalsegno.spec.workflows import read
from dalsegno.triggers.table_triggers.engine.watches import watches_of
from dalsegno.triggers.table_triggers.model import IncrementalTrigger


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    (tmp_path / "dalsegno.toml").touch()
    with Lake.open(tmp_path / "dalsegno.toml") as opened:
        yield opened


def watches(lake: Lake, fields: str, trigger: str = "{}") -> dict[str, TableRequest]:
    text = f"""
Workflow:
  id: w
  params: {{day: {{value: monday, type: STRING}}}}
  jobs:
    - job: {{id: capture, type: IpCapture, ip_capture: {{{fields}}}}}
    - job: {{id: commit, type: IpCommit, ip_commit: {{capture_step: capture}}}}
  incremental_triggers: [{trigger}]
"""
    workflow = read(text, file="w.yaml").definition.workflow
    (found,) = workflow.triggers_of(IncrementalTrigger)
    return {watch.table.name: watch for watch in watches_of(lake, workflow, found)}


def test_a_watch_is_the_request_of_the_step(lake: Lake) -> None:
    found = watches(
        lake,
        "source_tables: [db.plays, db.users], consumer: c, from: latest, upto: '2030-01-01', max_snapshots: 3, "
        "max_bytes: '900', branch: audit, changes: before_after, keys: {plays: [id], db.users: name}",
    )
    request = capture_request(
        lake.name,
        ["db.plays", "db.users"],
        "c",
        start="latest",
        is_start_for_first=True,
        upto="2030-01-01",
        max_snapshots=3,
        max_bytes=900,
        branch="audit",
        changes="before_after",
        keys=["plays:id", "db.users:name"],
    )
    assert found == {each.table.name: each for each in request.tables}
    assert (found["plays"].spec.keys, found["users"].spec.keys) == (("id",), ("name",))


def test_what_a_run_decides_is_left_open(lake: Lake) -> None:
    found = watches(lake, "source_tables: [db.plays], changes: '${kind}', max_snapshots: '${most}'")
    assert found["plays"].spec.operations == EVERY_OPERATION
    assert found["plays"].bound.snapshots is None
    by_table = watches(lake, "source_tables: '${tables}', changes: keys, keys: {users: [id]}", "{tables: [db.plays]}")
    assert by_table["plays"].spec.operations == EVERY_OPERATION
    known = watches(lake, "source_tables: '${tables}', changes: upserts", "{tables: [db.plays]}")
    assert known["plays"].spec.changes is ChangeKind.UPSERTS
    plain = watches(lake, "source_tables: [db.plays], data_operations: [APPEND]")
    assert plain["plays"].spec.operations == {Operation.APPEND}


def test_a_branch_of_the_trigger_counts(lake: Lake) -> None:
    found = watches(lake, "source_tables: [db.plays], branch: '${b}'", "{tables: [db.plays], branch: audit}")
    assert found["plays"].branch == "audit"


def test_a_consumer_of_a_run_cannot_be_watched(lake: Lake) -> None:
    with pytest.raises(UserError, match="sets its consumer at run time"):
        watches(lake, "source_tables: [db.plays], consumer: '${who}'")


def test_a_declared_table_is_watched_by_its_sources(lake: Lake) -> None:
    found_when_pushed = "sources: [lake.db.plays, lake.db.users], consumer: lake.db.daily"
    block = f"target: db.daily, query: 'SELECT 1', keys: [day], {found_when_pushed}"
    text = f"""
Workflow:
  id: w
  jobs:
    - job: {{id: daily, type: Incremental, incremental: {{{block}}}}}
  incremental_triggers: [{{}}]
"""
    workflow = read(text, file="w.yaml").definition.workflow
    (trigger,) = workflow.triggers_of(IncrementalTrigger)
    found = {watch.table.name: watch for watch in watches_of(lake, workflow, trigger)}
    assert set(found) == {"plays", "users"}
    assert {watch.consumer for watch in found.values()} == {"lake.db.daily"}
    assert {watch.spec.changes for watch in found.values()} == {ChangeKind.BEFORE_AFTER}
