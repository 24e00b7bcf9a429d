"""One model, whichever way it is written."""

from __future__ import annotations

import json

import pytest

from dalsegno.model.params import ParamDefinition, ParamMode, ParamType, Tag
from dalsegno.model.workflow import (
    Backoff,
    Criticality,
    FailureMode,
    ForeachStep,
    JobStep,
    Operator,
    RetryPolicy,
    RunRule,
    RunStrategy,
    SignalDependency,
    SignalMatch,
    SubworkflowStep,
    WhileStep,
)
from dalsegno.spec.reading.context import StepTypes
from dalsegno.spec.workflows import read
from dalsegno.triggers.signal_triggers.model import SignalTrigger
from dalsegno.triggers.table_triggers.model import IncrementalTrigger, Quorum
from dalsegno.triggers.time_triggers.model import CatchUp, CatchUpRule, TimeTrigger
from tests.spec.texts import definition, jobs, problem, sample, steps

TEXT, LONG = ParamType.STRING, ParamType.LONG


def test_the_front_door() -> None:
    found = definition(sample("front-door.yaml"))
    workflow, properties = found.workflow, found.properties
    assert workflow.id == "watch.time"
    assert workflow.description is not None
    assert workflow.description.startswith("Sums up")
    assert workflow.criticality is Criticality.HIGH
    assert (workflow.timeout, workflow.instance_step_concurrency) == ("6h", 10)
    assert (properties.owner, properties.step_concurrency) == ("media", 40)
    assert properties.run_strategy == RunStrategy(RunRule.PARALLEL, 3)
    assert workflow.oracle == {
        "${TARGET_TABLE}": "SELECT day, sum(seconds) AS seconds FROM ${SOURCE_TABLE} GROUP BY day",
        "lake.media.other": "$FILE{other.sql}",
    }
    assert properties.alerting == {"emails": ["media@example.com"]}
    assert workflow.triggers_of(TimeTrigger) == (
        TimeTrigger("30 2 * * *", "Europe/Berlin", "5min", CatchUp(CatchUpRule.ALL, 10)),
        TimeTrigger("@hourly", catch_up=CatchUp(CatchUpRule.NONE)),
    )
    single, joined = workflow.triggers_of(SignalTrigger)
    assert single.definitions["plays/complete"].match == {
        "country": SignalMatch(ParamDefinition(TEXT, "DE")),
        "watermark": SignalMatch(ParamDefinition(LONG, 20260101), Operator.GREATER_OR_EQUAL),
    }
    assert joined.join_keys == {"plays/complete": ("day",), "prices/complete": ("date",)}
    assert joined.params == {"reason": ParamDefinition(TEXT, "prices")}
    assert workflow.triggers_of(IncrementalTrigger) == (
        IncrementalTrigger(
            ("lake.media.plays",),
            quiet="30s",
            min_interval="10m",
            max_wait="1h",
            min_rows=100_000,
            min_bytes=1_000_000_000,
        ),
    )


def test_parameters_by_their_keys() -> None:
    params = definition(sample("front-door.yaml")).workflow.params
    assert params["my_query"].value == (
        "INSERT INTO ${TARGET_TABLE} SELECT day, sum(seconds) FROM ${SOURCE_TABLE} WHERE seconds > 0 GROUP BY day"
    )
    assert params["yesterday"] == ParamDefinition(LONG, expression="Util.incrementDateInt(20260102, -1)")
    assert params["factor"] == ParamDefinition(ParamType.DOUBLE, 2.0, mode=ParamMode.CONSTANT)
    assert params["empty"] == ParamDefinition(ParamType.STRING_ARRAY, [])
    assert params["countries"] == ParamDefinition(ParamType.STRING_ARRAY, ["DE", "FR"])
    assert params["labels"] == ParamDefinition(ParamType.STRING_MAP, {"team": "media"})
    assert params["limits"].type is ParamType.MAP
    assert params["limits"].value["DE"] == ParamDefinition(LONG, 5)
    assert "params" not in params


def test_jobs_of_the_front_door() -> None:
    found = steps(sample("front-door.yaml"))
    check, write = found["check"], found["write"]
    assert isinstance(check, JobStep)
    assert isinstance(write, JobStep)
    assert (check.type, write.type) == ("HTTP", "Spark")
    assert check.failure_mode is FailureMode.IGNORE_FAILURE
    assert check.params["http"].value["headers"].value["Authorization"] == ParamDefinition(TEXT, secret="READY_TOKEN")
    assert write.params["spark"] == ParamDefinition(ParamType.MAP, {"script": ParamDefinition(TEXT, "${my_query}")})
    assert write.tags == (Tag("heavy"), Tag("cluster", "PLATFORM", {"size": "big"}))
    assert write.retry_policy == RetryPolicy(
        error_limit=3,
        timeout_limit="${retries}",
        backoff=Backoff("5min", 1, "5min", 60, 1, 60, 60, 1, 60),
    )
    assert write.signal_dependencies == (
        SignalDependency("prices/complete"),
        SignalDependency("plays/complete", {"country": SignalMatch(ParamDefinition(TEXT, "${country}"))}),
    )
    assert write.signal_outputs[0].params == {"day": ParamDefinition(LONG, 20260101)}
    assert check.successors == {"tell": None, "write": None}
    assert write.successors == {"tell": None, "end": None}


def test_incremental_steps() -> None:
    found = steps(sample("incremental.yaml"))
    assert [type(step).__name__ for step in found.values()] == ["JobStep", "SubworkflowStep", "JobStep"]
    assert found["changes"].params["ip_capture"].value["source_tables"].value == ["members"]
    called = found["members.with.recovery"].params
    assert called["subworkflow_id"].value == "members.with.recovery"
    assert called["my_query"].value == "$S3{members.sql}"
    assert found["changes"].successors == {"members.with.recovery": None}
    assert found["checkpoint"].params["ip_commit"].value["capture_step"].value == "changes"


def test_flat_steps() -> None:
    found = definition(sample("flat.yaml")).workflow
    assert (found.id, found.name) == ("plays_daily", None)
    capture, merge, pause = found.steps
    assert isinstance(capture, JobStep)
    assert (capture.id, capture.type) == ("capture", "ICDC")
    assert {name: each.value for name, each in capture.params["icdc"].value.items()} == {
        "sourceTable": "media.plays",
        "targetTable": "media.plays_changes",
    }
    assert set(merge.params) == {"spark"}
    assert merge.params["spark"].value["script"].value == "merge_plays.py"
    assert merge.timeout == "2h"
    assert pause.params == {"sleep_seconds": ParamDefinition(LONG, 1)}
    assert [dict(step.successors) for step in found.steps] == [{"merge": None}, {"pause": None}, {}]


def test_loops() -> None:
    found = steps(sample("loops.yaml"))
    each, until, inspect = found["each_day"], found["until_complete"], found["inspect"]
    assert isinstance(each, ForeachStep)
    assert isinstance(until, WhileStep)
    assert isinstance(inspect, SubworkflowStep)
    assert (each.concurrency, each.has_strict_ordering) == (4, True)
    loop = each.params["loop_params"].value
    assert list(loop) == ["day", "hour", "minute"]
    assert loop["day"].value == [20260101, 20260102]
    assert loop["hour"].expression == "Util.intsBetween(0, 24, 6);"
    assert loop["minute"].expression == "Util.intsBetween(0, last_minute, 1);"
    assert each.params["last_minute"].value == 60
    assert until.condition == "attempt < 10"
    assert until.params["loop_params"].value == {"attempt": ParamDefinition(LONG, 1)}
    assert found["load"].successors == {"inspect": "attempt > 5"}
    assert inspect.has_explicit_params
    assert {name: param.value for name, param in inspect.params.items()} == {
        "subworkflow_id": "inspect",
        "subworkflow_version": "default",
        "reason": "slow",
    }
    assert found["list_days"].successors == {"each_day": "month == 'September'", "close": "!((month == 'September'))"}
    assert found["list_days"].sub_type_version == "v1"  # type: ignore[union-attr]


def test_json() -> None:
    found = definition(sample("canonical.json"))
    assert not found.is_active
    assert found.git_info["branch"] == "main"
    assert found.extra == {"source": "s3://code/plays.jar"}
    assert found.properties.owner == "media"
    assert found.properties.run_strategy == RunStrategy(RunRule.PARALLEL, 7)
    assert found.properties.disabled_triggers == {"time"}
    assert found.properties.extra == {"owner": {"team": "plays"}, "alerting_disabled": False}
    workflow = found.workflow
    assert workflow.name == "Plays 🎬"
    assert workflow.triggers_of(TimeTrigger) == (
        TimeTrigger("0 0 12 1/1 * ? *", "US/Pacific"),
        TimeTrigger("@daily"),
        TimeTrigger("*/2 * * * *", None, "500ms"),
    )
    rate = workflow.params["rate"]
    assert (rate.value, rate.tags, rate.validator, rate.meta) == (10.5, (Tag("money"),), "@NotEmpty", {"unit": "EUR"})
    assert workflow.params["token"].secret == "PLAYS_TOKEN"
    first = workflow.steps[0]
    assert isinstance(first, JobStep)
    assert first.successors == {"loop": "days.length > 0", "sub": None}
    assert (first.retry_policy.error_limit, first.retry_policy.platform_limit) == (4, "$n")
    assert first.retry_policy.backoff.error_exponent == 3


def test_json_written_as_yaml_and_without_its_frame() -> None:
    data = json.loads(sample("canonical.json"))
    assert definition(json.dumps(data["workflow"])).workflow == definition(sample("canonical.json")).workflow
    bare = "id: w\nsteps:\n  - step: {id: a, type: NoOp, params: {x: {value: 1, type: LONG}}}\n"
    assert steps(bare)["a"].params == {"x": ParamDefinition(LONG, 1)}


def test_jobs_that_were_not_indented() -> None:
    job = "    - job:\n      id: {}\n      type: NoOp\n"
    assert list(steps(f"Workflow:\n  id: w\n  jobs:\n{job.format('a')}{job.format('b')}")) == ["a", "b"]


def test_templates_are_types() -> None:
    text = jobs("id: a, type: papermill, type_version: v2")
    found = read(text, types=StepTypes(templates={"papermill": "Notebook"})).definition.workflow.steps[0]
    assert isinstance(found, JobStep)
    assert (found.type, found.sub_type, found.sub_type_version) == ("Notebook", "papermill", "v2")


@pytest.mark.parametrize("written", ["noop", "NOOP", "NoOp"])
def test_types_in_any_case(written: str) -> None:
    assert steps(jobs(f"id: a, type: {written}"))["a"].type == "NoOp"  # type: ignore[union-attr]


CAPTURED = jobs(
    "id: a, type: IpCapture, ip_capture: {source_tables: [lake.db.plays]}",
    "id: b, type: IpCommit, ip_commit: {capture_step: a}",
)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("incremental: {}", IncrementalTrigger()),
        ("incremental: null", IncrementalTrigger()),
        ("incremental: db.plays", IncrementalTrigger(("db.plays",))),
        ("incremental: [db.plays, lake.db.plays]", IncrementalTrigger(("db.plays", "lake.db.plays"))),
        ("incremental: {tables: db.plays, when: all}", IncrementalTrigger(("db.plays",), Quorum.ALL)),
        ("incremental: {branch: main, min_files: 7}", IncrementalTrigger(branch="main", min_files=7)),
    ],
)
def test_incremental_triggers(written: str, expected: IncrementalTrigger) -> None:
    assert definition(f"Trigger: {{{written}}}\n{CAPTURED}").workflow.triggers_of(IncrementalTrigger) == (expected,)


def test_incremental_triggers_of_flat_steps() -> None:
    found = definition(
        """
        trigger: {incremental: {quiet: 1 min}}
        workflow:
          name: w
          steps:
            - {name: a, type: ICDC, sourceTable: db.plays, targetTable: db.plays_icdc}
        """
    )
    assert found.workflow.triggers_of(IncrementalTrigger) == (IncrementalTrigger(quiet="1 min"),)


def test_sources_that_a_run_decides_about() -> None:
    """What is captured then may be what is watched; but it must be said what that is."""
    text = CAPTURED.replace("[lake.db.plays]", "['${table}']")
    assert definition(f"Trigger: {{incremental: db.plays}}\n{text}").workflow.triggers_of(IncrementalTrigger)
    assert problem(f"Trigger: {{incremental: {{}}}}\n{text}").startswith("1:11: there is no table to watch")


def test_sources_of_a_declared_table_are_watched() -> None:
    """They are found in its SELECT when it is pushed, unless a run decides about it."""
    step = "{id: a, type: Incremental, incremental: {target: db.t, query: QUERY}}"
    text = f"Trigger: {{incremental: {{}}}}\nWorkflow: {{id: w, jobs: [{{job: {step}}}]}}"
    for query in ("SELECT id FROM db.plays", "$FILE{plays.sql}"):
        found = definition(text.replace("QUERY", f"'{query}'"))
        assert found.workflow.triggers_of(IncrementalTrigger) == (IncrementalTrigger(),)
    said = problem(text.replace("QUERY", "'SELECT id FROM ${table}'"))
    assert said.startswith("1:11: there is no table to watch")
