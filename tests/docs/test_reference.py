"""The reference leaves nothing out, and names nothing that is not there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest
import typer.main
from starlette.routing import Route

import dalsegno
from dalsegno import Changes, Lake, errors
from dalsegno.audit.comparison import ColumnResult, Comparison, Difference, PartitionResult
from dalsegno.audit.results import Audit, Culprit, Source, TargetResult
from dalsegno.cli.app import app
from dalsegno.cli.output import EXIT_CODES
from dalsegno.clock import utc_now
from dalsegno.hints import COMMANDS, Action, Verb
from dalsegno.model.params import Param, ParamMode, ParamSource, ParamType
from dalsegno.model.refreshes import Considered, Cost, Refresh, SourceRead, TargetWrite
from dalsegno.model.runs import RunStatus, StepStatus
from dalsegno.operations.json_values import plain
from dalsegno.operations.metrics import Metrics, own_metrics
from dalsegno.operations.refresh_plans import RefreshPlan, SourceChange
from dalsegno.operations.run_views import RunView, StepView
from dalsegno.operations.service import Service
from dalsegno.operations.triggers import Outlook
from dalsegno.server.api import Api
from dalsegno.settings import (
    ENVIRONMENT_PREFIX,
    CatalogSettings,
    CatalogType,
    ChannelSettings,
    ChannelType,
    ConnectionSettings,
    Encryption,
    Settings,
    load,
)
from dalsegno.spec.params.defaults import STEP_DEFAULTS, WORKFLOW_DEFAULTS
from dalsegno.spec.params.expressions import FUNCTIONS
from dalsegno.spec.params.stored import param_to_json
from dalsegno.spec.params.validators import ANNOTATIONS
from dalsegno.steps.capture_file import captures_file
from dalsegno.store import Store
from dalsegno.triggers.signal_triggers.operations import SignalTriggerView
from dalsegno.triggers.table_triggers.operations import SimulatedTrigger, StartView, TableTriggerView, TableView
from dalsegno.triggers.time_triggers.operations import DueView, TimeTriggerView
from tests.docs.givens import GIVENS
from tests.docs.markdown import ROOT, section
from tests.steps.support import attempt

REFERENCE = ROOT / "docs" / "reference"


def read(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def rows(text: str) -> dict[str, str]:
    """The lines of tables, by each name in backticks in their first cell."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return {name: line for line in lines for name in re.findall(r"`([^`]+)`", line.split(" | ")[0])}


# Settings.


def test_general_settings() -> None:
    general = rows(section(read("settings.md"), "## General"))
    elsewhere = {"root", "settings_file", "catalogs", "connections", "notifications", "secrets"}
    expected = [item for item in fields(Settings) if item.name not in elsewhere and not item.name.startswith("spark_")]
    assert set(general) == {item.name for item in expected}
    for item in expected:
        default = list(item.default) if isinstance(item.default, tuple) else item.default
        assert ("\N{EN DASH}" if default is None else f"`{default}`") in general[item.name]
        assert f"`{ENVIRONMENT_PREFIX}{item.name.upper()}`" in general[item.name]


def test_spark_settings() -> None:
    listed = rows(section(read("settings.md"), "## Spark"))
    expected = {item.name.removeprefix("spark_"): item for item in fields(Settings) if item.name.startswith("spark_")}
    assert set(listed) == set(expected)
    for name, item in expected.items():
        if item.default is not MISSING:
            assert (f"`{item.default}`" if item.default else "\N{EN DASH}") in listed[name]
            assert f"`{ENVIRONMENT_PREFIX}{item.name.upper()}`" in listed[name]


def test_connection_settings() -> None:
    listed = rows(section(read("settings.md"), "## Connections"))
    assert set(listed) == {item.name for item in fields(ConnectionSettings) if item.name != "name"}


def test_notification_settings() -> None:
    listed = rows(section(read("settings.md"), "## Notifications"))
    names = {"from" if item.name == "sender" else item.name for item in fields(ChannelSettings) if item.name != "name"}
    assert set(listed) == names
    for word in (*ChannelType, *Encryption):
        assert f"`{word}`" in listed["type"] + listed["encryption"]


def test_catalog_settings() -> None:
    listed = rows(section(read("settings.md"), "## Catalogs"))
    expected = [item for item in fields(CatalogSettings) if item.name != "name"]
    assert set(listed) == {item.name for item in expected}
    for item in expected:
        if item.default not in (None, MISSING):
            assert f"`{str(item.default).lower()}`" in listed[item.name]
    for kind in CatalogType:
        assert f"`{kind}`" in listed["type"]


# Commands.


def all_commands() -> Iterator[tuple[str, Any]]:
    def below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        if hasattr(command, "commands"):
            if command.invoke_without_command and name != "dalsegno":
                yield name, command
            for word, inner in command.commands.items():
                yield from below(f"{name} {word}", inner)
        else:
            yield name, command

    return below("dalsegno", typer.main.get_command(app))


@pytest.mark.parametrize(("name", "command"), [pytest.param(*each, id=each[0]) for each in all_commands()])
def test_command(name: str, command: Any) -> None:
    described = section(read("commands.md"), f"## {name}")
    assert f"`{name}" in described, f"commands.md has no section '## {name}'"
    for parameter in command.params:
        words = [*parameter.opts, *parameter.secondary_opts]
        for word in words if parameter.param_type_name == "option" else ():
            assert re.search(rf"`{word}[` ]", described), f"{name} {word}"
    options = {word for parameter in command.params for word in (*parameter.opts, *parameter.secondary_opts)}
    named = set(re.findall(r"`(--[a-z-]+)", described))
    assert named <= options, f"commands.md describes {named - options}, which {name} does not have"


@pytest.mark.parametrize(
    "name", [name for name, command in all_commands() if any("--json" in each.opts for each in command.params)]
)
def test_json_of_command(name: str) -> None:
    text = read("json.md")
    named = {word.removesuffix(" --json") for word in re.findall(r"`([^`]+)`", text)}
    assert name.removeprefix("dalsegno ") in named | set(re.findall(r"^## (.+)$", text, re.MULTILINE))


def test_no_command_is_made_up() -> None:
    described = set(re.findall(r"^## (dalsegno .+)$", read("commands.md"), re.MULTILINE))
    assert described == {name for name, _ in all_commands()}


# Errors.


def test_errors() -> None:
    listed = rows(read("errors.md"))
    expected = {
        name: kind
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.DalsegnoError)
    }
    assert set(listed) == set(expected)
    for name, kind in expected.items():
        code = next((code for branch, code in EXIT_CODES if issubclass(kind, branch)), 1)
        assert f"| `{name}` | {code} |" in listed[name]


# Python.


def public(kind: type) -> set[str]:
    own = {name for name in (*vars(kind), *getattr(kind, "__annotations__", {})) if not name.startswith("_")}
    return own


def test_exports() -> None:
    text = read("python.md")
    for name in dalsegno.__all__:
        assert f"`{name}`" in text


@pytest.mark.parametrize("kind", [Lake, Changes])
def test_public_methods(kind: type) -> None:
    described = section(read("python.md"), f"## {kind.__name__}")
    named = {word.partition(".")[2] or word for word in re.findall(r"`([\w.]+)[`(]", described)}
    assert not public(kind) - named


# JSON.


def fields_of(value: Any) -> set[str]:
    """Every field of a JSON value; what stands under names that users choose is left out."""
    if isinstance(value, list):
        return set().union(*map(fields_of, value)) if value else set()
    if not isinstance(value, dict):
        return set()
    inner = (item for name, item in value.items() if name not in {"values", "snapshots"} or isinstance(item, list))
    return set(value) | set().union(*map(fields_of, inner))


def test_json_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    GIVENS["a playback table"]()
    GIVENS["a consumer that has processed it"]()
    GIVENS["a new day and late rows"]()
    text = read("json.md")
    position = set(rows(section(text, "## A position")))
    with Lake.open() as lake:
        planned = fields_of(plain(lake.plan("media.playback", consumer="daily")))
        captured = fields_of(lake.capture("media.playback", consumer="daily", ranges=["seconds"]).report())
        with lake.capture("media.playback", consumer="daily"):
            pass
        nothing = fields_of(lake.capture("media.playback", consumer="daily").report())
    for heading, found in (("## capture", captured | nothing), ("## plan", planned)):
        described = position | set(re.findall(r"`([a-z_]+)`", section(text, heading)))
        # What is told once under one command holds for the other.
        described |= {"spec_id", "values", "novelty", "files", "rows", "bytes", "seconds"}
        assert not found - described, heading


def test_captures_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    GIVENS["a playback table"]()
    with Lake.open() as lake:
        capture = lake.capture("media.playback", consumer="daily", ranges=["seconds"]).capture
    assert capture is not None
    [text] = captures_file(attempt(tmp_path, captures=(capture,), place="write")).values()
    told = json.loads(text)
    described = section(read("steps.md"), "### Captures")
    [known] = told["captures"]
    assert set(known) | set(known["tables"][0]) <= set(rows(described))
    named = set(re.findall(r"`([\w.]+)`", described))
    assert (fields_of(told["captures"]) - {"seconds"}) | set(told) | set(told["stamp"]) <= named
    [stamped] = json.loads(told["stamp"]["dalsegno.ranges"])
    spark_steps = (ROOT / "docs" / "how-to" / "run-spark-steps.md").read_text(encoding="utf-8")
    assert set(stamped) | set(told["stamp"]) <= set(re.findall(r"`([\w.]+)`", spark_steps))


def test_json_of_actions() -> None:
    described = section(read("json.md"), "## Actions")
    for verb, command in COMMANDS.items():
        assert f"| `{verb}` | `dalsegno {command}{' --from full' * (verb is Verb.REFRESH)}` |" in described
    for field in fields(Action):
        assert f"| `{field.name}` |" in described


def test_json_of_runs() -> None:
    described = section(read("json.md"), "## run")
    listed = set(rows(described))
    assert {item.name for item in (*fields(RunView), *fields(StepView))} <= listed
    assert set(StepStatus) <= listed
    for status in RunStatus:
        assert f"`{status}`" in described


def test_json_of_refreshes() -> None:
    text = read("json.md")
    described = set(re.findall(r"`([a-z_]+)`", section(text, "## refreshes")))
    kinds = (Refresh, SourceRead, TargetWrite, Cost, Considered)
    assert {item.name for kind in kinds for item in fields(kind)} | {"rows_written", "saved_bytes"} <= described
    planned = set(re.findall(r"`([a-z_]+)`", section(text, "### plan WORKFLOW")))
    assert {item.name for kind in (RefreshPlan, SourceChange, Considered) for item in fields(kind)} <= planned


def test_json_of_audits() -> None:
    described = set(re.findall(r"`([a-z_]+)`", section(read("json.md"), "## audit")))
    kinds = (Audit, Source, TargetResult, Culprit, Comparison, ColumnResult, PartitionResult, Difference)
    assert {item.name for kind in kinds for item in fields(kind)} <= described


def test_json_of_triggers() -> None:
    described = section(read("json.md"), "## trigger test")
    simulated = section(described, "### trigger test --simulate")
    listed = set(rows(described.replace(simulated, "")))
    shown = (Outlook, TimeTriggerView, DueView, SignalTriggerView, TableTriggerView)
    assert listed == {item.name for kind in shown for item in fields(kind)}
    kinds = (Outlook, SimulatedTrigger, StartView, TableView)
    assert {item.name for kind in kinds for item in fields(kind)} <= set(re.findall(r"`([a-z_]+)`", simulated))


# HTTP.


def test_routes_and_metrics(tmp_path: Path) -> None:
    settings = load(working_folder=tmp_path, environment={})
    with Store.open(settings.store) as store:
        service = Service(settings, store)
        routes = [route for route in Api(service).app().routes if isinstance(route, Route)]
        metrics = [*Metrics(store, utc_now()).read(utc_now()), *own_metrics(store, can_run_jobs=True)]
    text = read("http.md")
    listed = set(re.findall(r"^\| `((?:GET|POST) [^`]+)`", section(text, "## What there is"), re.MULTILINE))
    methods = ((route, method) for route in routes for method in (route.methods or set()) - {"HEAD"})
    shown = {f"{method} {route.path}".replace("{run:path}", "RUN") for route, method in methods}
    assert listed == {each.replace("{workflow}", "WORKFLOW") for each in shown}
    described = rows(section(text, "## Metrics"))
    expected = {f"{metric.name}{'_total' * metric.is_total}": metric for metric in metrics}
    assert described.keys() - {"dalsegno_store_up"} == expected.keys()
    for name, metric in expected.items():
        assert re.findall(r"`([^`]+)`", described[name].split(" | ")[1]) == list(metric.labels), name


# The change table.


def test_change_table_properties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    GIVENS["a playback table"]()
    GIVENS["a consumer that has processed it"]()
    GIVENS["a new day and late rows"]()
    with Lake.open() as lake:
        changes = lake.capture("media.playback", consumer="daily")
        properties = lake.catalog("lake").pyiceberg.load_table(changes.identifier).properties
    listed = set(rows(section(read("change-table.md"), "## Properties")))
    assert set(properties) <= listed
    assert listed - set(properties) <= {"schema.name-mapping.default"}


# Parameters.


def test_types_modes_and_validators() -> None:
    text = read("parameters.md")
    assert set(rows(section(text, "## Types"))) == set(ParamType)
    assert set(rows(section(text, "## Modes"))) == set(ParamMode)
    listed = re.findall(r"`@(\w+)", section(text, "## Validators"))
    assert {name.lower() for name in listed} == set(ANNOTATIONS)
    described = rows(section(text, "## As JSON"))
    secret = Param(ParamType.STRING, "s", is_secret=True)
    assert set(described) == set(param_to_json(secret))
    assert set(re.findall(r"`([A-Z_]+)`", described["source"])) == set(ParamSource)


def test_default_parameters() -> None:
    listed = rows(section(read("parameters.md"), "## Defaults"))
    expected = {**WORKFLOW_DEFAULTS, **STEP_DEFAULTS}
    assert set(listed) == set(expected)
    for name, default in expected.items():
        assert listed[name] == f"| `{name}` | `{default.type}` | {default.description} |"


def test_functions_of_params() -> None:
    listed = {
        (found[1], len(found[2].split(",")) if found[2] else 0)
        for found in re.finditer(r"^\| `params\.(\w+)\(([^)]*)\)`", read("parameters.md"), re.MULTILINE)
    }
    assert listed == set(FUNCTIONS)
