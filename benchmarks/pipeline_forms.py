"""The forms of the pipeline that are compared: each runs both stages for one day, on targets of its own.

Lookback and the incremental form are the workflows of examples/playback. The alternatives are workflows as well, with
the same SQL; where dalsegno captures, they find out by themselves what is new, and remember it in a table.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from examples.playback.place import EXAMPLE, Place

if TYPE_CHECKING:
    from benchmarks.pipeline_flink import ProcessMeter

STAGES = ("daily", "agg")
#: Workflows of the example.
WORKFLOWS = ("setup", "arrive", "lookback_daily", "lookback_agg")


@dataclass(frozen=True)
class Tables:
    """The tables of one lake among several: a source, and targets for each form."""

    prefix: str

    @property
    def source(self) -> str:
        return f"lake.media.{self.prefix}_playback"

    @property
    def marks(self) -> str:
        """Where the alternatives remember how far they are."""
        return f"lake.media.{self.prefix}_marks"

    def target(self, form: str, stage: str) -> str:
        return f"lake.media.{self.prefix}_{form}_{stage}"

    def of(self, form: str) -> dict[str, str]:
        """As parameters of the example's workflows."""
        return {"source": self.source, **{stage: self.target(form, stage) for stage in STAGES}}

    def read_by(self, form: str, stage: str) -> str:
        return self.source if stage == "daily" else self.target(form, "daily")


@dataclass(frozen=True)
class Form:
    name: str
    #: stage, day → runs it.
    run: Callable[[str, date], object]
    stages: tuple[str, ...] = STAGES
    #: Where it does not run in the Spark of the others.
    meter: ProcessMeter | None = None


def lookback(place: Place, tables: Tables) -> Form:
    return Form("lookback", lambda stage, day: _recompute(place, tables, "lookback", stage, day, 14))


def full(place: Place, tables: Tables) -> Form:
    """All days anew."""
    return Form("full", lambda stage, day: _recompute(place, tables, "full", stage, day, 100_000))


def _recompute(place: Place, tables: Tables, form: str, stage: str, day: date, days: int) -> object:
    read, written = tables.read_by(form, stage), tables.target(form, stage)
    return place.run(f"playback.lookback_{stage}", day=str(day), lookback=days, source=read, **{stage: written})


def incremental(place: Place, tables: Tables) -> Form:
    """By hand, as workflows of their own for each lake: their runs tell one story, which can be audited."""
    for stage in STAGES:
        _push_copy(
            place, yaml.safe_load((EXAMPLE / f"by_hand_{stage}.yaml").read_text()), incremental_id(tables, stage)
        )
    return Form(
        "incremental",
        lambda stage, _: place.run(incremental_id(tables, stage), **_used(tables, "incremental", stage)),
    )


def incremental_id(tables: Tables, stage: str) -> str:
    return f"{tables.prefix}.incremental.{stage}"


def declared(place: Place, tables: Tables) -> Form:
    """By the plain SELECTs, each stage as a workflow of its own."""
    example = yaml.safe_load((EXAMPLE / "daily.yaml").read_text())
    for stage, job in zip(STAGES, example["Workflow"]["jobs"], strict=True):
        workflow = {**example["Workflow"], "jobs": [job]}
        _push_copy(place, {"Workflow": workflow}, declared_id(tables, stage))
    return Form("declared", lambda stage, _: place.run(declared_id(tables, stage), **_used(tables, "declared", stage)))


def declared_id(tables: Tables, stage: str) -> str:
    return f"{tables.prefix}.declared.{stage}"


def _push_copy(place: Place, example: dict[str, Any], workflow_id: str) -> None:
    """Publish a workflow of the example under another name."""
    folder = place.settings.root / "workflows"
    folder.mkdir(exist_ok=True)
    for file in EXAMPLE.glob("*.sql"):
        shutil.copy(file, folder)
    file = folder / f"{workflow_id}.yaml"
    file.write_text(yaml.safe_dump({"Workflow": {**example["Workflow"], "id": workflow_id}}, sort_keys=False))
    place.operations.workflows.push_file(file)


def _used(tables: Tables, form: str, stage: str) -> dict[str, str]:
    """The tables of a stage, as parameters of the workflows that process what is new."""
    daily = tables.target(form, "daily")
    return (
        {"playback": tables.source, "daily": daily}
        if stage == "daily"
        else {"daily": daily, "agg": tables.target(form, "agg")}
    )


def plain_read(place: Place, tables: Tables) -> Form:
    """Iceberg's incremental read between two snapshots."""
    view = (
        "CREATE TEMPORARY VIEW changes AS SELECT * FROM ${source} "
        "WITH ('start-snapshot-id' = '${range.after}', 'end-snapshot-id' = '${range.upto}')"
    )
    return _by_hand(place, tables, "plain_read", view, days_from=view)


def changelog_view(place: Place, tables: Tables) -> Form:
    """Iceberg's ``create_changelog_view``."""
    days = (
        "CREATE TEMPORARY VIEW changes AS SELECT event_day FROM ${source} "
        "WITH ('start-snapshot-id' = '${range.after}', 'end-snapshot-id' = '${range.upto}')"
    )
    view = (
        "CALL lake.system.create_changelog_view(table => '${source}', changelog_view => 'changelog', "
        "options => map('start-snapshot-id', '${range.after}', 'end-snapshot-id', '${range.upto}'));\n"
        "CREATE TEMPORARY VIEW changes AS SELECT * FROM changelog WHERE _change_type = 'INSERT'"
    )
    return _by_hand(place, tables, "changelog_view", view, days_from=days)


def streaming(place: Place, tables: Tables, checkpoints: Path, since: int) -> Form:
    """Structured Streaming with the available-now trigger: a batch each time it is run."""
    from benchmarks.pipeline_streaming import run_available  # noqa: PLC0415 - slow

    def run(stage: str, _: date) -> None:
        source, into = tables.read_by("streaming", stage), tables.target("streaming", stage)
        script = _example_sql(stage, "").replace(" VERSION AS OF ${range.upto}", "")
        conf = _example_spark(stage).get("conf", {})
        for name, table in tables.of("streaming").items():
            script = script.replace(f"${{{name}}}", table)
        run_available(place.server.address, source, into, script, conf, checkpoints / stage, since)

    return Form("streaming", run)


def _by_hand(place: Place, tables: Tables, name: str, view: str, *, days_from: str) -> Form:
    for stage in STAGES:
        place.operations.workflows.push(_by_hand_workflow(tables, name, stage, view, days_from))
    return Form(name, lambda stage, _: place.run(_by_hand_id(tables, name, stage)))


def _by_hand_id(tables: Tables, name: str, stage: str) -> str:
    return f"{tables.prefix}.{name}.{stage}"


def touched_days(into: str, alias: str, *, only_known: bool) -> str:
    """A query for the predicate of the days of view ``changes``; of those alone that the target has, if it is asked."""
    known = f"WHERE event_day IN (SELECT partition.event_day FROM {into}.partitions)" if only_known else ""
    return (
        f"SELECT CONCAT('{alias}.event_day IN (DATE''1970-01-01''', "
        "ARRAY_JOIN(COLLECT_LIST(CONCAT(', DATE''', event_day, '''')), ''), ')') "
        f"FROM (SELECT DISTINCT event_day FROM changes) {known}"
    )


def _by_hand_workflow(tables: Tables, name: str, stage: str, view: str, days_from: str) -> str:
    source, into = tables.read_by(name, stage), tables.target(name, stage)
    marks = f"form = '{name}' AND stage = '{stage}'"
    scripts = {
        "range": f"SELECT (SELECT MAX_BY(snapshot_id, at) FROM {tables.marks} WHERE {marks}) AS after, "
        f"(SELECT MAX_BY(snapshot_id, committed_at) FROM {source}.snapshots) AS upto",
        "days": f"{days_from};\nSELECT ({touched_days(into, 'd', only_known=True)}) AS reopened, "
        f"({touched_days(into, 'c', only_known=True)}) AS late, "
        f"({touched_days(into, 't', only_known=False)}) AS touched",
        "write": _example_sql(stage, view),
        "remember": f"INSERT INTO {tables.marks} VALUES ('{name}', '{stage}', ${{range.upto}}, CURRENT_TIMESTAMP())",
    }
    jobs = [
        {"job": {"id": step, "type": "Spark", "spark": {**_example_spark(stage), "script": script}}}
        for step, script in scripts.items()
    ]
    params = {**tables.of(name), "source": source}
    definition = {"id": _by_hand_id(tables, name, stage), **params, "jobs": jobs, "dag": "sequential"}
    text: str = yaml.safe_dump({"Workflow": definition}, sort_keys=False)
    return text


def _example_sql(stage: str, view: str) -> str:
    """The SQL of the example's incremental form, which reads view ``changes`` instead of a change table."""
    script = str(_example_spark(stage)["script"])
    replacements = {
        "${capture.change_table}": "changes",
        "${capture.reopened_partition_filter('c')}": "${days.late}",
        "${capture.reopened_partition_filter('d')}": "${days.reopened}",
        "${capture.partition_filter('t')}": "${days.touched}",
        "${capture.upto_snapshot}": "${range.upto}",
    }
    for theirs, ours in replacements.items():
        script = script.replace(theirs, ours)
    assert "capture." not in script, script
    return f"{view};\n{script}" if view else script


def _example_spark(stage: str) -> Mapping[str, Any]:
    """What the example's incremental form gives to Spark."""
    workflow: Mapping[str, Any] = yaml.safe_load((EXAMPLE / f"by_hand_{stage}.yaml").read_text())["Workflow"]
    [spark] = [each["job"]["spark"] for each in workflow["jobs"] if each["job"]["type"] == "Spark"]
    return dict(spark)
