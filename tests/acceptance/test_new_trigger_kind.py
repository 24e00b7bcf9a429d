"""A kind of trigger that somebody adds: one package, ``tests/triggers/file_triggers``, and one line in the table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
from jsonschema import Draft7Validator

from dalsegno.errors import PlatformError
from dalsegno.operations.facade import Operations
from dalsegno.operations.service import Role, Service
from dalsegno.spec.documents import read
from dalsegno.spec.nodes import plain
from dalsegno.spec.problems import Problems
from dalsegno.store import triggers
from dalsegno.store.row_queries import Row
from dalsegno.triggers import TRIGGERS
from tests.acceptance.conftest import Commands
from tests.steps.support import until
from tests.triggers.file_triggers.engine import FileStarter, FileWatcher


@pytest.fixture(autouse=True)
def _line_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRIGGERS, "file", "tests.triggers.file_triggers")


def workflow(trigger: str) -> str:
    return f"Trigger: {trigger}\nWorkflow:\n  id: by.file\n  jobs:\n    - job: {{id: a, type: NoOp}}\n"


def pushed(run: Commands, trigger: str, *, properties: str = "{}") -> None:
    (run.folder / "by_file.yaml").write_text(f"properties: {properties}\n{workflow(trigger)}")
    done = run("push", "by_file.yaml")
    assert done.code == 0, done.err


@pytest.fixture
def file(run: Commands) -> Path:
    return run.folder / "it's new, ünd.csv"


@pytest.fixture
def operations(run: Commands) -> Iterator[Operations]:
    with Operations.open() as opened:
        yield opened


def registered(operations: Operations) -> list[Row]:
    with operations.store.database.reading() as connection:
        return triggers.of_workflow(connection, "by.file")


@contextmanager
def serving(operations: Operations, nodes: int = 1) -> Iterator[None]:
    services = [Service(operations.settings, operations.store, [Role.TRIGGERS]) for _ in range(nodes)]
    threads = [Thread(target=service.run) for service in services]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for service in services:
            service.stop()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        ("{file: 5}", "1:17: '5' isn't an absolute path; begin with /"),
        ("{file: /in, path: /out}", "1:22: a file trigger has no field 'path'; known are file"),
        ("{file: /in, cron: '@daily'}", "1:22: a file trigger has no field 'cron'"),
        ("[{file: /in}, {file: /in}]", "1:24: two triggers watch '/in'; delete one"),
        ("{often: 1}", "1:10: a trigger needs 'cron', 'signal', 'incremental' or 'file'"),
    ],
)
def test_it_is_validated(trigger: str, expected: str, run: Commands) -> None:
    (run.folder / "by_file.yaml").write_text(workflow(trigger))
    done = run("validate", "by_file.yaml")
    assert done.code == 2
    assert f"by_file.yaml:{expected}" in done.out + done.err


def test_it_is_written_back(run: Commands) -> None:
    pushed(run, "[{file: /in}, {cron: '@daily'}, {file: /other}]", properties="{file_trigger_disabled: true}")
    text = run("cat", "by.file").out
    stored = json.loads(text)
    assert stored["workflow"]["file_triggers"] == [{"path": "/in"}, {"path": "/other"}]
    assert stored["properties"]["file_trigger_disabled"] is True
    (run.folder / "again.json").write_text(text)
    assert "at version 1 already" in run("push", "again.json").out
    (run.folder / "by_file.yaml").write_text(workflow("{file:     /in}"))
    assert run("format", "by_file.yaml").code == 0
    assert "Trigger:\n  file: /in\n" in (run.folder / "by_file.yaml").read_text()


def test_editors_know_it(run: Commands) -> None:
    validator = Draft7Validator(json.loads(run("schema").out))

    def is_valid(text: str) -> bool:
        root = read(text, Problems())
        assert root is not None
        return bool(validator.is_valid(plain(root)))

    assert is_valid(workflow("[{file: /in}, {cron: '@daily'}]"))
    assert not is_valid(workflow("{file: 5}"))
    stored = {"id": "w", "steps": [{"step": {"id": "a", "type": "NoOp"}}], "file_triggers": [{"path": "/in"}]}
    assert is_valid(json.dumps({"properties": {"file_trigger_disabled": True}, "workflow": stored}))
    stored["file_triggers"] = [{"file": "/in"}]
    assert not is_valid(json.dumps({"workflow": stored}))


def test_it_is_shown(run: Commands) -> None:
    pushed(run, "[{file: /in}, {cron: '@daily'}]")
    assert "by.file watches the file /in.\n" in run("trigger", "test", "by.file").out
    shown = run.json("trigger", "test", "by.file")
    assert shown["is_enabled"]
    assert shown["triggers"][1:] == [{"kind": "file", "path": "/in"}]
    assert run.json("workflows")[0]["watches"] == ["/in"]
    pushed(run, "{file: /in}", properties="{file_trigger_disabled: true}")
    assert "not started by its triggers" in run("trigger", "test", "by.file").out
    assert run.json("workflows")[0]["watches"] == []


def test_it_is_registered(run: Commands, operations: Operations) -> None:
    pushed(run, "[{file: /in}, {file: /other}, {cron: '@daily'}]")
    assert [(row["kind"], row["name"]) for row in registered(operations)] == [
        ("file", "/in"),
        ("file", "/other"),
        ("time", "0 0 * * * UTC"),
    ]
    with operations.store.database.writing() as connection:
        triggers.change(connection, registered(operations)[0], state={"written_ns": 7})
    pushed(run, "[{file: /new}, {file: /in}]")
    found = {row["name"]: row["state"]["written_ns"] for row in registered(operations)}
    assert found == {"/in": 7, "/new": 0}
    run("versions", "by.file", "--deactivate")
    assert registered(operations) == []


def test_it_starts_runs(run: Commands, operations: Operations, file: Path) -> None:
    pushed(run, json.dumps([{"file": str(file)}, {"signal": "news"}]))
    with serving(operations, nodes=2):
        until(lambda: len(registered(operations)) == 2)
        for number in (1, 2):
            file.write_text("new")
            os.utime(file, ns=(number, number))
            until(lambda number=number: len(operations.runs.list("by.file")) == number)  # type: ignore[misc]
        # The other kinds are looked at as well.
        operations.signals.announce("news", {})
        until(lambda: len(operations.runs.list("by.file")) == 3)
    started = sorted(operations.runs.list("by.file"), key=lambda each: each.number)
    assert [each.initiator["type"] for each in started] == ["FILE", "FILE", "SIGNAL"]
    assert started[0].initiator["trigger"] == str(file)


def test_a_kind_that_fails_holds_up_no_other(
    run: Commands, operations: Operations, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also if it has no thread of its own, and is asked first."""

    def fail(*_: object) -> None:
        raise PlatformError("The disk is away.")

    monkeypatch.setattr(FileStarter, "has_own_thread", False)
    monkeypatch.setattr(FileWatcher, "look", fail)
    in_front = {"file": TRIGGERS["file"], **TRIGGERS}
    monkeypatch.setattr("dalsegno.triggers.engine.TRIGGERS", in_front)
    pushed(run, "[{file: /in}, {signal: news}]")
    with serving(operations):
        until(lambda: "file triggers could not be looked at, trying again: The disk is away." in caplog.text)
        operations.signals.announce("news", {})
        until(lambda: len(operations.runs.list("by.file")) == 1)
