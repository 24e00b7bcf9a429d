"""A service's log: one line per record, with what it is about, and without secrets."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from dalsegno.cli.log_lines import JsonLines, TextLines
from dalsegno.settings import CatalogSettings, ChannelSettings, ConnectionSettings, load
from dalsegno.steps.secret_values import secret_values


def record(message: str, *args: Any, error: BaseException | None = None, **extra: Any) -> logging.LogRecord:
    info = (type(error), error, error.__traceback__) if error else None
    made = logging.LogRecord("dalsegno.engine", logging.WARNING, __file__, 1, message, args, info)
    made.__dict__.update(extra)
    return made


def test_json() -> None:
    line = JsonLines([]).format(record("it is %s", "bad\nvery", run="w/1", step="a", attempt=2))
    assert "\n" not in line
    found = json.loads(line)
    assert found.pop("time").endswith("+00:00")
    assert found == {
        "level": "warning",
        "logger": "dalsegno.engine",
        "message": "it is bad\nvery",
        "run": "w/1",
        "step": "a",
        "attempt": 2,
    }


def test_text() -> None:
    line = TextLines([]).format(record("it is %s", "bad\nvery", run="w/1", step=None))
    assert line.partition(" ")[2] == "WARNING dalsegno.engine: it is bad very run=w/1"


def test_nothing_that_a_terminal_acts_on() -> None:
    hostile = record("it is %s", "\x1b[2J\x9b1m\x7f\r gone", error=ValueError("\x1b]0;x\x07"), run="w\x1b/1")
    for lines in (JsonLines, TextLines):
        text = lines([]).format(hostile)
        assert not any((ord(each) < 32 and each != "\n") or 0x7F <= ord(each) < 0xA0 for each in text)
        assert "\\u009b1m" in text
    found = json.loads(JsonLines([]).format(hostile))
    assert (found["message"], found["run"]) == ("it is \x1b[2J\x9b1m\x7f\r gone", "w\x1b/1")


def test_no_secret() -> None:
    found = record("with %s", "hunter2hunter2", error=ValueError("hunter2hunter2 was refused"))
    for lines in (JsonLines, TextLines):
        text = lines(["hunter2", "hunter2hunter2"]).format(found)
        assert "hunter2" not in text
        assert "with ***" in text
        assert "ValueError: *** was refused" in text


def test_what_is_secret(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("DALSEGNO_SECRET_API", "from-the-environment")
    settings = replace(
        load(working_folder=tmp_path, environment={}),
        store="postgresql://ada:store-password@db/x",
        secrets={"token": "a-secret", "short": "abc"},
        notifications={"ops": ChannelSettings("ops", url="https://hooks.example.com/T0", password="mail-password")},
        connections={"dwh": ConnectionSettings("dwh", "postgresql://ada:dwh-password@db/x")},
        catalogs={"lake": CatalogSettings("lake", properties={"token": "catalog-token", "s3.region": "eu-west-1"})},
    )
    assert set(secret_values(settings)) == {
        "from-the-environment",
        "store-password",
        "a-secret",
        "https://hooks.example.com/T0",
        "mail-password",
        "dwh-password",
        "catalog-token",
    }


def test_what_a_thread_works_on_is_told() -> None:
    from dalsegno.engine import log_context

    token = log_context._ABOUT.set({"run": "w/1", "step": "a", "attempt": 1})
    try:
        assert TextLines([]).format(record("x")).endswith("x run=w/1 step=a attempt=1")
    finally:
        log_context._ABOUT.reset(token)
