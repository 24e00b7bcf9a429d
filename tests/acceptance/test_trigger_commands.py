"""dalsegno trigger test, as people call it."""

from __future__ import annotations

import io
import sys

import pytest
from pyiceberg.table import Table

from tests.acceptance.conftest import Commands, append

WORKFLOW = """\
Trigger:
  - cron: 30 2 * * *
    timezone: Europe/Berlin
    catch_up: {rule: all, most: 3}
  - cron: 30 15 10 ? * FRIL
    fuzzy_max_delay: 10min
Workflow:
  id: by.clock
  jobs:
    - job: {id: a, type: NoOp}
"""
SPRING = """\
30 2 * * * in Europe/Berlin
        DUE                        UTC                   CLOCK
  past  Fri 2026-03-27 02:30 CET   2026-03-27 01:30 UTC
        Sat 2026-03-28 02:30 CET   2026-03-28 01:30 UTC
  next  Sun 2026-03-29 03:00 CEST  2026-03-29 01:00 UTC  for 02:30, which the clock skips
        Mon 2026-03-30 02:30 CEST  2026-03-30 00:30 UTC
"""
AUTUMN = """\
*/30 * * * * in Europe/Berlin
        DUE                        UTC                   CLOCK
  past  Sun 2026-10-25 01:30 CEST  2026-10-24 23:30 UTC
        Sun 2026-10-25 02:00 CEST  2026-10-25 00:00 UTC  the clock shows this twice: the first time
  next  Sun 2026-10-25 02:30 CEST  2026-10-25 00:30 UTC  the clock shows this twice: the first time
        Sun 2026-10-25 02:00 CET   2026-10-25 01:00 UTC  the clock shows this twice: the second time
"""


@pytest.mark.parametrize(
    ("line", "at", "expected"),
    [
        ("30 2 * * *", "2026-03-28T12:00:00Z", SPRING),
        ("*/30 * * * *", "2026-10-25T02:10+02:00", AUTUMN),
    ],
)
def test_a_line(line: str, at: str, expected: str, run: Commands) -> None:
    done = run("trigger", "test", line, "--timezone", "Europe/Berlin", "--at", at, "--count", "2")
    assert (done.code, done.out, done.err) == (0, expected, "")


def test_what_intervals_and_appointments_lose(run: Commands) -> None:
    asked = ("--timezone", "Europe/Berlin", "--count", "1", "--at")
    beats = run("trigger", "test", "*/10 * * * *", *asked, "2026-03-29T00:55Z").out
    assert beats.endswith("03:00 CEST  2026-03-29 01:00 UTC  the clock skips 02:00 to 02:50\n")
    fixed = run("trigger", "test", "30 2 * * *", *asked, "2026-10-25T00:00Z").out
    assert fixed.endswith("2026-10-25 00:30 UTC  the clock shows this twice: the first time, not the second\n")
    day = run("trigger", "test", "0 9 * * *", "--timezone", "Pacific/Apia", "--count", "1", "--at", "2011-12-30").out
    assert day.endswith("Sat 2011-12-31 00:00 +14  2011-12-30 10:00 UTC  for Fri 09:00, which the clock skips\n")


def test_a_line_that_is_over(run: Commands) -> None:
    done = run("trigger", "test", "0 0 0 1 1 ? 2020", "--at", "2026-01-01")
    assert done.out == (
        "0 0 0 1 1 ? 2020 in UTC\n        DUE                       UTC\n"
        "  past  Wed 2020-01-01 00:00 UTC  2020-01-01 00:00 UTC\n  next  never\n"
    )


def test_a_file_and_a_workflow(run: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    (run.folder / "clock.yaml").write_text(WORKFLOW)
    asked = ("--at", "2026-11-16T12:00:00Z", "--count", "1")
    done = run("trigger", "test", "clock.yaml", *asked)
    lines = done.out.splitlines()
    assert lines[:4] == [
        "30 2 * * * in Europe/Berlin; catches up on all, at most 3",
        "        DUE                       UTC",
        "  past  Mon 2026-11-16 02:30 CET  2026-11-16 01:30 UTC",
        "  next  Tue 2026-11-17 02:30 CET  2026-11-17 01:30 UTC",
    ]
    assert lines[4] == "30 15 10 ? * FRIL in UTC; starts up to 10min later; catches up on the latest"
    assert lines[5].split() == ["DUE", "UTC", "STARTS"]
    assert lines[7].startswith("  next  Fri 2026-11-27 10:15:30 UTC  2026-11-27 10:15:30 UTC  at 10:")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WORKFLOW.encode())))
    assert run("trigger", "test", "-", *asked).out == done.out
    run("push", "clock.yaml")
    assert run("trigger", "test", "by.clock", *asked).out == done.out
    run("versions", "by.clock", "--deactivate")
    assert run("trigger", "test", "by.clock", *asked).out == (
        f"by.clock is not started by its triggers: it is not active, or they are disabled.\n{done.out}"
    )


def test_json(run: Commands) -> None:
    (run.folder / "clock.yaml").write_text(WORKFLOW)
    asked = ("--at", "2026-03-28T12:00:00Z", "--count", "1")
    found = run.json("trigger", "test", "clock.yaml", *asked)
    assert (found["workflow_id"], found["is_enabled"], found["at"]) == ("by.clock", True, "2026-03-28T12:00:00+00:00")
    first, second = found["triggers"]
    (past,), (coming,) = first.pop("past"), first.pop("next")
    assert first == {
        "kind": "time",
        "cron": "30 2 * * *",
        "timezone": "Europe/Berlin",
        "is_interval": False,
        "fuzzy_max_delay": None,
        "catch_up": {"rule": "ALL", "most": 3},
    }
    assert (past["local"], past["shown"], past["skipped"]) == ("2026-03-28T02:30:00+01:00", None, [])
    key = coming.pop("key")
    assert key.startswith("by.clock/")
    assert key.endswith("/2026-03-29T01:00:00Z")
    assert coming == {
        "due_at": "2026-03-29T01:00:00+00:00",
        "local": "2026-03-29T03:00:00+02:00",
        "start_at": "2026-03-29T01:00:00+00:00",
        "skipped": ["2026-03-29T02:30:00"],
        "shown": None,
    }
    assert second["next"][0]["due_at"] < second["next"][0]["start_at"] < "2026-04-24T10:25:30"
    # What is only tried has no key.
    elsewhere = run.json("trigger", "test", "clock.yaml", "--timezone", "Asia/Kolkata", *asked)
    assert {due["key"] for each in elsewhere["triggers"] for due in each["next"]} == {None}
    assert run.json("trigger", "test", "@daily", *asked)["workflow_id"] is None


def test_no_triggers(run: Commands) -> None:
    (run.folder / "none.yaml").write_text(WORKFLOW[WORKFLOW.index("Workflow") :])
    assert run("trigger", "test", "none.yaml").out == "by.clock has no triggers.\n"


def test_every_kind_is_shown(run: Commands) -> None:
    triggers = "Trigger: [{cron: '@daily'}, {signals: [news, prices]}, {incremental: db.t}]\n"
    (run.folder / "all.yaml").write_text(triggers + WATCHING[WATCHING.index("Workflow") :])
    lines = run("trigger", "test", "all.yaml", "--count", "1").out.splitlines()
    assert lines[0] == "@daily in UTC; catches up on the latest"
    assert lines[4:] == [
        "when.changed waits for the signals news + prices.",
        "when.changed watches db.t; --simulate shows when that would have started it.",
    ]
    found = run.json("trigger", "test", "all.yaml")["triggers"]
    assert [each["kind"] for each in found] == ["time", "signal", "incremental"]
    assert found[1:] == [{"kind": "signal", "waits_for": "news + prices"}, {"kind": "incremental", "watches": "db.t"}]


def test_disabled_triggers(run: Commands) -> None:
    text = WATCHING.replace("Workflow:", "properties: {incremental_trigger_disabled: true}\nWorkflow:")
    (run.folder / "changed.yaml").write_text(text)
    assert not run.json("trigger", "test", "changed.yaml")["is_enabled"]
    (run.folder / "changed.yaml").write_text(text.replace("incremental_trigger_d", "time_trigger_d"))
    assert run.json("trigger", "test", "changed.yaml")["is_enabled"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["61 * * * *"], "UserError: '61 * * * *' is not a schedule: '61' is not a valid minute"),
        (["@dayly"], "there is no schedule '@dayly'"),
        (
            ["@daily", "--timezone", "Europe/Berln"],
            "There is no time zone 'Europe/Berln'.\n  → Did you mean 'Europe/Berlin'?",
        ),
        (["@daily", "--at", "soon"], "'soon' is not a time.\n  → Write --at 2026-01-31T12:00:00Z."),
        (["nothing.yaml"], "The file nothing.yaml cannot be read"),
        (["nothing"], "There is no workflow 'nothing'."),
    ],
)
def test_mistakes(arguments: list[str], expected: str, run: Commands) -> None:
    done = run("trigger", "test", *arguments)
    assert (done.code, done.out) == (2, "")
    assert expected in done.err


def test_a_file_with_problems(run: Commands) -> None:
    (run.folder / "clock.yaml").write_text(WORKFLOW.replace("rule: all", "rule: some"))
    done = run("trigger", "test", "clock.yaml")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("clock.yaml:4:22: 'rule' cannot be 'some'")


WATCHING = """\
Trigger: {incremental: {tables: [db.t], max_wait: 1h, min_rows: 15}}
Workflow:
  id: when.changed
  jobs:
    - job: {id: a, type: IpCapture, ip_capture: {source_tables: [db.t]}}
    - job: {id: b, type: IpCommit, ip_commit: {capture_step: a}}
  dag: sequential
"""


def test_what_incremental_triggers_would_have_done(run: Commands, table: Table) -> None:
    (run.folder / "changed.yaml").write_text(WATCHING)
    for rows in (7, 4):
        append(table, 2, rows)
    line = run("trigger", "test", "changed.yaml").out
    assert line == "when.changed watches db.t; --simulate shows when that would have started it.\n"
    asked = ("trigger", "test", "changed.yaml", "--simulate", "--at", "2099-01-01", "--json")
    found = run(*asked).json()
    assert (found["workflow_id"], found["is_enabled"]) == ("when.changed", True)
    [trigger] = found["triggers"]
    assert (trigger["tables"], trigger["commits"], trigger["starts"]) == (["lake.db.t"], 3, 2)
    told = [
        [(each["consumer"], each["snapshots"], each["rows"]) for each in s["unprocessed"]] for s in trigger["latest"]
    ]
    assert told == [[("when.changed", 2, 17)], [("when.changed", 1, 4)]]
    text = run(*asked[:-1], "--count", "1").out.splitlines()
    assert text[0] == "watches lake.db.t; min_rows 15; max_wait 1h"
    assert text[1].endswith("3 commits to process, 2 runs would have been started; the last 1:")
    assert "lake.db.t: 1 snapshot, 4 rows" in text[2]
    # What was not committed by then did not happen.
    early = run("trigger", "test", "changed.yaml", "--simulate", "--at", "2020-01-01").out
    assert early == "watches lake.db.t; min_rows 15; max_wait 1h\n  nothing was committed\n"
    # And of what is pushed.
    assert run("push", "changed.yaml").code == 0
    assert run("trigger", "test", "when.changed", *asked[3:]).json()["triggers"] == [trigger]


def test_what_has_no_history(run: Commands) -> None:
    done = run("trigger", "test", "@daily", "--simulate")
    assert (done.code, done.out) == (2, "")
    assert "watches no tables" in done.err
    (run.folder / "clock.yaml").write_text(WORKFLOW)
    assert run("trigger", "test", "clock.yaml", "--simulate").out == "by.clock has no trigger that watches tables.\n"
