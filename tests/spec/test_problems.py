"""What is refused: where, in which words, and with which hint."""

from __future__ import annotations

import textwrap
from datetime import UTC, datetime

import pytest

from dalsegno.errors import InvalidWorkflow
from dalsegno.spec import checks
from dalsegno.spec.problems import LISTED
from dalsegno.spec.workflows import read
from tests.spec.texts import definition, jobs, problem, problems


def in_workflow(line: str) -> str:
    """A workflow with this line as its third."""
    return f"Workflow:\n  id: w\n  {line}\n  jobs: [{{job: {{id: a, type: NoOp}}}}]\n"


def in_job(fields: str) -> str:
    """A workflow whose only job has these fields, from column 29 of line 4 on."""
    return jobs(f"id: a, type: NoOp, {fields}")


def in_step(fields: str) -> str:
    """The same in JSON's form, from column 30 of line 3 on."""
    return f"id: w\nsteps:\n- step: {{id: a, type: NoOp, {fields}}}\n"


#: A workflow that captures a table.
CAPTURES = jobs(
    "id: a, type: IpCapture, ip_capture: {source_tables: [lake.db.plays]}",
    "id: b, type: IpCommit, ip_commit: {capture_step: a}",
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The document.
        ("[1]", "1:1: a workflow must be a mapping, found a list"),
        ("Workflo: {id: x}", "1:1: there is no workflow; did you mean 'Workflow'?"),
        ("Workflow: x", "1:11: 'Workflow' must be a mapping, found 'x'"),
        (
            "Triger: {cron: '@daily'}\n" + in_workflow("x: 1"),
            "1:1: the document has no field 'Triger'; did you mean 'Trigger'?",
        ),
        ("Workflow: {id: w, jobs: []}", "1:19: there must be at least one step"),
        ("Workflow: {id: w}", "1:11: there must be at least one step"),
        ("Workflow: {jobs: [{job: {id: a, type: NoOp}}]}", "1:11: a workflow needs an id"),
        (
            "id: w\nsteps: [{step: {id: a, type: NoOp}}]\nstepz: 1",
            "3:1: a workflow has no field 'stepz'; did you mean 'steps'?",
        ),
        ("id: w\njobs: [{jub: {id: a}}]", "2:9: there is no kind of step 'jub'; did you mean 'job'?"),
        ("id: w\njobs: [x]", "2:8: a step must be a mapping, found 'x'; write '- job: {id: …, type: …}'"),
        # The workflow.
        (
            in_workflow("timeout: 5 parsecs"),
            "3:12: the timeout '5 parsecs' is not a duration; write for instance 90s, 30min, 2h or 1 day",
        ),
        (in_workflow("timeout: 121 days"), "3:12: the timeout '121 days' must be above 0 and at most 120 days"),
        (in_workflow("timeout: 0"), "3:12: the timeout '0' must be above 0 and at most 120 days"),
        (
            in_workflow("alerting: {on_failure: [a b]}"),
            "3:27: 'a b' cannot be the name of a channel; write the NAME of a [notifications.NAME] in dalsegno.toml",
        ),
        (
            in_workflow("alerting: {on_failure: {ops: 1}}"),
            "3:26: 'on_failure' must be a list, found a mapping",
        ),
        (
            in_workflow("alerting: {on_late: ops}"),
            "3:23: 'on_late' needs 'complete_within'; write for instance complete_within: 2h",
        ),
        (
            in_workflow("alerting: {max_lag: 1h}"),
            "3:23: 'max_lag' does not name a channel; write for instance on_lag: [ops]",
        ),
        (
            in_workflow("alerting: {on_failure: ops, complete_within: soon}"),
            "3:48: 'soon' is not a duration; write for instance 30min, 2h or 1 day",
        ),
        (
            in_workflow("alerting: {on_failure: ops, max_lag: 0s}"),
            "3:40: 'max_lag' must be above 0 and at most 120 days, found '0s'",
        ),
        (
            in_workflow("oracle: {shop.totals: }"),
            "3:12: the oracle of 'shop.totals' must be a table's name and a SELECT; write for instance lake.shop.totals: "
            "SELECT day, sum(amount) AS amount FROM lake.shop.orders GROUP BY day",
        ),
        (in_workflow("oracle: SELECT 1"), "3:11: 'oracle' must be a mapping, found 'SELECT 1'"),
        (
            in_workflow("oracle: {shop.totals: [SELECT 1]}"),
            "3:25: 'shop.totals' must be a text, found a list",
        ),
        (in_workflow("criticality: hihg"), "3:16: 'criticality' cannot be 'hihg'; did you mean 'HIGH'?"),
        (
            in_workflow("instance_step_concurrency: 1000"),
            "3:30: 'instance_step_concurrency' must be a whole number from 1 to 999, found 1000",
        ),
        (
            in_workflow("step_concurrency: many"),
            "3:21: 'step_concurrency' must be a whole number from 1 to 1000, found 'many'",
        ),
        (
            in_workflow("run_strategy: sequental"),
            "3:17: 'run_strategy' cannot be 'sequental'; did you mean 'SEQUENTIAL'?",
        ),
        (
            in_workflow("run_strategy: {rule: first_only, workflow_concurrency: 2}"),
            "3:17: only PARALLEL allows more than one run at once; FIRST_ONLY does not",
        ),
        (in_workflow("workflow_concurrency: 2"), "3:25: 'workflow_concurrency' needs a run_strategy of PARALLEL"),
        (in_workflow("tags: [a, a]"), "3:13: the tag 'a' is given twice"),
        (
            in_workflow("tags: ['!']"),
            "3:10: '!' cannot be a tag: a name is made of letters, digits, spaces and any of . , : @ & = ' ( ) { } $ + [ ] - / \\",
        ),
        # Triggers.
        (
            "Trigger: {cron: '* * * * *'}\n" + in_workflow("x: 1"),
            "1:17: '* * * * *' is not a schedule: two starts would be less than 2 minutes apart",
        ),
        (
            "Trigger: {cron: '@dayly'}\n" + in_workflow("x: 1"),
            "1:17: '@dayly' is not a schedule: there is no schedule '@dayly'; known are @hourly, @daily, @weekly, @monthly, @yearly",
        ),
        (
            "Trigger: {cron: '@daily', timezone: Europe/Berln}\n" + in_workflow("x: 1"),
            "1:37: there is no time zone 'Europe/Berln'; did you mean 'Europe/Berlin'?",
        ),
        (
            "Trigger: {cron: '@daily', fuzzy_max_delay: soon}\n" + in_workflow("x: 1"),
            "1:44: 'soon' is not a duration; write for instance 30s or 5min",
        ),
        (
            "Trigger: {cron: '0 0 30 2 *'}\n" + in_workflow("x: 1"),
            "1:17: '0 0 30 2 *' is not a schedule: it never comes due, because none of its months has such a day",
        ),
        (
            "Trigger: {cron: '@daily', catch_up: lates}\n" + in_workflow("x: 1"),
            "1:37: 'catch_up' cannot be 'lates'; did you mean 'LATEST'?",
        ),
        (
            "Trigger: {cron: '@daily', catch_up: [all]}\n" + in_workflow("x: 1"),
            "1:37: 'catch_up' cannot be 'a list'; expected one of NONE, LATEST, ALL",
        ),
        (
            "Trigger: {cron: '@daily', catch_up: {most: 5}}\n" + in_workflow("x: 1"),
            "1:37: 'catch_up' needs a rule; expected one of NONE, LATEST, ALL",
        ),
        (
            "Trigger: {cron: '@daily', catch_up: {rule: all, most: 0}}\n" + in_workflow("x: 1"),
            "1:55: 'most' must be a whole number from 1 to 1000, found 0",
        ),
        (
            "Trigger: {cron: '@daily', catch_up: {rule: latest, most: 5}}\n" + in_workflow("x: 1"),
            "1:58: only ALL starts more than one run; LATEST does not",
        ),
        (
            "Trigger: {cron: '@daily', catch_up: {rule: all, mots: 5}}\n" + in_workflow("x: 1"),
            "1:49: 'catch_up' has no field 'mots'; did you mean 'most'?",
        ),
        (
            "Trigger: {corn: '@daily'}\n" + in_workflow("x: 1"),
            "1:11: a time trigger has no field 'corn'; did you mean 'cron'?",
        ),
        (
            "Trigger: {incremental: {tables: [db.t]}}\n" + in_workflow("x: 1"),
            "1:34: no step captures 'db.t', so no run would process its changes; add a step: type: IpCapture, "
            "ip_capture: {source_tables: [db.t]}",
        ),
        (
            "Trigger: {incremental: {}}\n" + in_workflow("x: 1"),
            "1:11: there is no table to watch: no step says which it captures; name them in 'tables', or add a step: "
            "type: IpCapture, ip_capture: {source_tables: [...]}",
        ),
        (
            "Trigger: {incremental: [db.playz]}\n" + CAPTURES,
            "1:25: no step captures 'db.playz', so no run would process its changes; did you mean 'lake.db.plays'?",
        ),
        (
            "Trigger: {incremental: {branch: audit, tables: db.plays}}\n" + CAPTURES,
            "1:48: no step captures 'db.plays' on branch 'audit', so no run would process its changes; 'a' captures it "
            "on branch 'main'",
        ),
        (
            "Trigger: [{incremental: db.plays}, {incremental: {tables: db.plays, quiet: 5s}}]\n" + CAPTURES,
            "1:37: another trigger watches the same tables; say all of it in one",
        ),
        (
            "Trigger: {incremental: {tables: ['${x}']}}\n" + CAPTURES.replace("[lake.db.plays]", "['${y}']"),
            "1:34: '${x}' is not a table that can be watched; write its name: it is watched before there is a run with "
            "parameters",
        ),
        (
            "Trigger: {incremental: {quiet: soon}}\n" + CAPTURES,
            "1:32: 'soon' is not a duration; write for instance 30s or 10min",
        ),
        (
            "Trigger: {incremental: {quiet: 2h, max_wait: 1h}}\n" + CAPTURES,
            "1:32: 'quiet' is 2h, which is longer than 'max_wait', 1h; a run is started after max_wait, whatever else "
            "is said: give it more time",
        ),
        (
            "Trigger: {incremental: {min_rows: 0}}\n" + CAPTURES,
            "1:35: 'min_rows' must be a whole number from 1 to 1000000000000000, found 0",
        ),
        (
            "Trigger: {incremental: {when: most}}\n" + CAPTURES,
            "1:31: 'when' cannot be 'most'; expected one of ANY, ALL",
        ),
        (
            "Trigger: {incremental: {quite: 5s}}\n" + CAPTURES,
            "1:25: an incremental trigger has no field 'quite'; did you mean 'quiet'?",
        ),
        (
            "Trigger: {incremental: 5}\n" + CAPTURES,
            "1:24: 'incremental' must be a mapping or a list of tables, found 5",
        ),
        (
            "Trigger: {incremental: db.plays, cron: '@daily'}\n" + CAPTURES,
            "1:34: an incremental trigger has no field 'cron'; known are incremental",
        ),
        (
            "Trigger: {signals: {a: {join_keys: [x]}, b: {}}}\n" + in_workflow("x: 1"),
            "1:10: all signals of a trigger need as many join_keys",
        ),
        (
            "Trigger: {signals: {a: {join_keys: [x], match: {x: 1}}}}\n" + in_workflow("x: 1"),
            "1:25: 'x' is both matched and joined: give one",
        ),
        (
            "Trigger: {signals: [a, b, c, d, e, f, g, h, i]}\n" + in_workflow("x: 1"),
            "1:10: a trigger has 9 signals; 8 are the limit",
        ),
        # Steps.
        (jobs("type: NoOp"), "4:12: a step needs an id"),
        (
            jobs("id: 1a, type: NoOp"),
            "4:17: '1a' cannot be the id: a name is made of letters, digits, '.', '-' and '_', and begins with a letter or '_'",
        ),
        (
            jobs("id: a__b, type: NoOp"),
            "4:17: 'a__b' cannot be the id: '__' may not be in it: it stands between a step and its parameter",
        ),
        (
            jobs("id: maestro_a, type: NoOp"),
            "4:17: 'maestro_a' cannot be the id: names that begin with 'maestro_' are reserved",
        ),
        (
            jobs(f"id: {'a' * 129}, type: NoOp"),
            f"4:17: '{'a' * 129}' cannot be the id: it has 129 characters; 128 are the limit",
        ),
        (
            jobs("id: a, type: NoOp", "id: a, type: NoOp"),
            "5:17: the step id 'a' is given twice; the first one is in line 4",
        ),
        (jobs("id: a, type: Sprak"), "4:26: there is no step type or job template 'Sprak'; did you mean 'Spark'?"),
        (
            in_job("failure_mode: IGNORE"),
            "4:46: 'failure_mode' cannot be 'IGNORE'; did you mean 'IGNORE_FAILURE'?",
        ),
        (in_step("retries: 1"), "3:29: a step has no field 'retries'; known are description, failure_mode, id"),
        (
            in_job("retry_policy: {error_retry_limt: 3}"),
            "4:47: a retry policy has no field 'error_retry_limt'; did you mean 'error_retry_limit'?",
        ),
        (
            in_job("retry_policy: {error_retry_limit: 100}"),
            "4:66: 'error_retry_limit' must be a number from 0 to 99, found 100",
        ),
        (
            in_job("retry_policy: {backoff: {error_retry_backoff_in_secs: 25h}}"),
            "4:86: 'error_retry_backoff_in_secs' must be seconds or a duration of at most 24 hours, found '25h'",
        ),
        (in_job("signal_dependencies: [{match: {}}]"), "4:54: a signal needs a name"),
        (
            in_job(
                "signal_dependencies: [{name: s, match: {a: {value: 1, operator: '>'}, b: {value: 1, operator: '<'}}}]"
            ),
            "4:71: only one parameter may be matched by a range; found 'a', 'b'",
        ),
        (
            in_job("signal_outputs: [{name: s, params: {a: [1]}}]"),
            "4:49: a signal's 'a' must be a STRING or a LONG, found LONG_ARRAY",
        ),
        # Parameters.
        (in_job("x: "), "4:35: 'x' has no value; give it one, or leave it out"),
        (in_job("params: {Maestro: 1}"), "4:41: 'Maestro' cannot be the name of a parameter: this name is reserved"),
        (in_job("'x<lng>': 1"), "4:32: there is no type 'lng'; did you mean 'long'?"),
        (in_job("'x<long>': y"), "4:43: 'x' is a LONG and needs a whole number of 64 bits, found 'y'"),
        (
            in_job("'x<long>': '${y}'"),
            "4:43: 'x' is a LONG and needs a whole number of 64 bits, found '${y}'; only texts may hold ${…}; write an expression: '!x<long>'",
        ),
        (
            in_job("x: 9223372036854775808"),
            "4:35: 'x' is a LONG and needs a whole number of 64 bits, found 9223372036854775808",
        ),
        (in_job("x: .nan"), "4:35: 'x' is a DOUBLE and needs a number, found nan"),
        (in_job("'x(constnt)': 1"), "4:32: 'mode' cannot be 'constnt'; did you mean 'CONSTANT'?"),
        (
            in_job("x: [1, a]"),
            "4:35: 'x' mixes types in one list; write a list of texts, of numbers or of truth values",
        ),
        (in_job("x: 1, '!x': 2"), "4:38: the parameter 'x' is given twice"),
        (
            in_step("params: {x: {value: 1, expression: y, type: LONG}}"),
            "3:41: 'x' needs one of 'value', 'expression' and 'secret', found several",
        ),
        (in_step("params: {x: {type: LONG}}"), "3:41: 'x' needs one of 'value', 'expression' and 'secret', found none"),
        (
            in_step("params: {x: {value: 1, type: LONG, source: SYSTEM}}"),
            "3:72: the source of 'x' is set by the system: leave it out",
        ),
        # Expressions.
        (in_job("'!x<long>': 1 + * 2"), "4:48: the expression cannot be read: expected an expression, found '*'"),
    ],
)
def test_one_problem(text: str, expected: str) -> None:
    assert problem(text).startswith(expected)


def loop(body: str) -> str:
    return "Workflow:\n  id: w\n  jobs:\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "- foreach: {id: f, jobs: [{job: {id: a, type: NoOp}}]}",
            "4:16: a foreach needs loop_params: lists to go through",
        ),
        (
            "- foreach: {id: f, loop_params: {i: 1}, jobs: [{job: {id: a, type: NoOp}}]}",
            "4:24: the loop parameter 'i' must be a list, found a LONG",
        ),
        (
            "- foreach: {id: f, loop_params: {i: '${names}'}, jobs: [{job: {id: a, type: NoOp}}]}",
            "4:24: the loop parameter 'i' must be a list, found a STRING; "
            "write it as an expression: '!i<array<string>>': names",
        ),
        (
            "- while: {id: f, condition: i < 1, params: {i: [1]}, jobs: [{job: {id: a, type: NoOp}}]}",
            "4:40: the loop parameter 'i' must be a single value, found a LONG_ARRAY",
        ),
        (
            "- while: {id: f, params: {i: 1}, jobs: [{job: {id: a, type: NoOp}}]}",
            "4:14: a while loop needs a condition",
        ),
        (
            "- foreach: {id: f, concurrency: 501, params: {i: [1]}, jobs: [{job: {id: a, type: NoOp}}]}",
            "4:37: 'concurrency' must be a whole number from 1 to 500, found 501",
        ),
        (
            "- foreach: {id: f, ranges: {i: {from: 1}}, jobs: [{job: {id: a, type: NoOp}}]}",
            "4:36: the range 'i' needs 'to', which is not part of it",
        ),
        (
            "- foreach: {id: f, ranges: {i: {to: 1, increment: 0}}, jobs: [{job: {id: a, type: NoOp}}]}",
            "4:55: the range 'i' would never end",
        ),
        (
            """
            - foreach:
                id: f
                params: {i: [1]}
                jobs:
                  - foreach: {id: g, params: {i: [1]}, jobs: [{job: {id: a, type: NoOp}}]}
            """,
            "8:27: the loop parameter 'i' of 'g' is one of an outer loop",
        ),
        ("- subworkflow: {id: s, sync: maybe}", "4:34: 'sync' must be true or false, found 'maybe'"),
        (
            "- job: {id: c, type: IpCapture, ip_capture: {source_tables: [t]}}\n"
            "- job: {id: d, type: IpCommit, ip_commit: {capture_step: x}}",
            "5:36: there is no step 'x' to commit",
        ),
        (
            "- job: {id: c, type: IpCapture, ip_capture: {source_tables: [t]}}",
            "4:17: nobody commits what 'c' captures, so every run would process it again; "
            "add a last step: type: IpCommit, ip_commit: {capture_step: c}",
        ),
    ],
)
def test_loops_and_calls(body: str, expected: str) -> None:
    assert problem(loop(body)) == expected


def test_the_ids_of_a_subworkflow_in_json() -> None:
    assert problem("id: w\nsteps: [{subworkflow: {id: s, params: {}}}]") == (
        "2:23: a subworkflow needs the parameter 'subworkflow_id': which workflow to run"
    )


def test_depth() -> None:
    inner = "job: {id: a, type: NoOp}"
    for level in range(10):
        inner = f"foreach: {{id: f{level}, params: {{i{level}: [1]}}, jobs: [{{{inner}}}]}}"
    definition(f"Workflow: {{id: w, jobs: [{{{inner}}}]}}")
    inner = f"foreach: {{id: f10, params: {{i10: [1]}}, jobs: [{{{inner}}}]}}"
    assert "loops are nested more than 10 deep" in problem(f"Workflow: {{id: w, jobs: [{{{inner}}}]}}")


def test_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.STEPS == 10_000
    monkeypatch.setattr(checks, "STEPS", 20)
    each = "foreach: {id: f, params: {i: [1]}, jobs: [{job: {id: inner, type: NoOp}}]}"
    lines = [f"job: {{id: s{number}, type: NoOp}}" for number in range(18)]
    definition(f"Workflow: {{id: w, jobs: [{{{each}}}, {', '.join(f'{{{line}}}' for line in lines)}]}}")
    lines.append("job: {id: last, type: NoOp}")
    text = f"Workflow: {{id: w, jobs: [{{{each}}}, {', '.join(f'{{{line}}}' for line in lines)}]}}"
    assert "the workflow has 21 steps; 20 are the limit" in problem(text)


def test_all_at_once_in_order_and_nothing_else() -> None:
    text = """
Trigger: {cron: x}
Workflow:
  id: 'a b'
  timeout: never
  jobs:
    - job: {id: one, type: Nop}
    - job: {id: one, type: NoOp, transition: [two]}
"""
    assert [each.line for each in problems(text)] == [2, 4, 5, 7, 8, 8]


def test_the_error_reads_like_a_compiler_s() -> None:
    with pytest.raises(InvalidWorkflow) as refused:
        read("jobs: 1\nid: a\nid: b", file="my.yaml")
    assert str(refused.value) == (
        "my.yaml:1:7: 'jobs' must be a list, found 1\n"
        "my.yaml:3:1: the key 'id' is given twice; the first one is in line 2"
    )
    assert refused.value.file == "my.yaml"


def test_a_flood_is_cut() -> None:
    text = jobs(*(f"id: a{number}, type: x" for number in range(LISTED + 50)))
    with pytest.raises(InvalidWorkflow) as refused:
        read(text)
    assert len(refused.value.problems) == LISTED
    assert str(refused.value).endswith("50 more problems are not listed")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            in_workflow("run_stratgy: sequential"),
            "3:3: 'run_stratgy' isn't a field, so it becomes a parameter; did you mean 'run_strategy'?",
        ),
        (
            jobs("id: a, type: NoOp, query: x", "id: b, type: Spark, spark: {script: '${qeury}'}", dag="a -> b"),
            "5:33: no parameter 'qeury' is in sight; did you mean 'query'?",
        ),
        (
            jobs("id: a, type: NoOp, transition: [c]", "id: b, type: NoOp", "id: c, type: NoOp", dag="{a: b}"),
            "7:12: 'a' has a transition of its own, which counts; what dag says of it does not",
        ),
        (
            "Workflow: {id: w, jobs: [{subworkflow: {id: s, workflow_id: w}}]}",
            "1:45: 's' runs its own workflow: that ends only by a condition, or when it is too deep",
        ),
        (
            '{"workflow": {"id": "w", "steps": [{"step": {"id": "a", "type": "NoOp"}}]}, "propertis": {}}',
            "1:77: 'propertis' is kept, but has no meaning; did you mean 'properties'?",
        ),
    ],
)
def test_warnings(text: str, expected: str) -> None:
    (found,) = read(text).warnings
    assert f"{found.line}:{found.column}: {found}" == expected


SHELL, CONTAINER = "id: a, type: Shell, shell: {%s}", "id: a, type: Container, container: {image: i, %s}"


@pytest.mark.parametrize(
    "step",
    [
        SHELL % """command: [bash, -c, 'echo "${x}"']""",
        SHELL % """command: [/bin/sh, -euxc, 'echo ${x}']""",
        SHELL % """command: [bash, -o, pipefail, -c, 'echo $x']""",
        SHELL % """command: [env, A=1, bash, -c], args: ['echo ${x}']""",
        SHELL % """command: [python3.11, -Ic, 'print(${x})']""",
        SHELL % """command: [perl, -ne, 'print ${x}']""",
        SHELL % """command: [node, '--eval=f(${x})']""",
        SHELL % """command: [node, --eval, 'f(${x})']""",
        SHELL % """command: [python, '-cprint(${x})']""",
        CONTAINER % """command: [sh, -c, 'echo ${x}']""",
        CONTAINER % """args: [-c, 'echo ${x}']""",
    ],
)
def test_values_pasted_into_code(step: str) -> None:
    (found,) = read(jobs(step)).warnings
    assert found.message == "the command of 'a' pastes the value of 'x' into code"
    assert found.hint is not None
    assert ("shell.script" if "Shell" in step else "as an argument") in found.hint


@pytest.mark.parametrize(
    "step",
    [
        SHELL % """command: [bash, -c, 'echo "$1"', bash, '${x}']""",
        SHELL % """command: [bash, -c, 'echo "$$x"'], env: {x: '${x}'}""",
        SHELL % """command: [cp, -c, '${x}']""",
        SHELL % """command: [python, '${x}', -c, '3']""",
        SHELL % """script: 'echo "${x}"'""",
        CONTAINER % """command: [echo, '${x}']""",
    ],
)
def test_values_that_are_arguments(step: str) -> None:
    assert read(jobs(step)).warnings == ()


def test_what_runs_may_be_given_is_no_warning() -> None:
    text = jobs("id: a, type: Spark, spark: {script: 'SELECT ${COLUMNS} FROM ${a__t} JOIN ${a.t}'}")
    assert read(text).warnings == ()


def test_values_that_break_their_rules_already() -> None:
    text = "workflow:\n  id: w\n  params: {n: {type: LONG, value: 3, validator: param > 5}}\n  steps: []\n"
    text = text.replace("steps: []", "steps: [{step: {id: a, type: NoOp}}]")
    with pytest.raises(InvalidWorkflow) as refused:
        read(text, now=datetime(2026, 11, 16, tzinfo=UTC))
    (found,) = refused.value.problems
    assert (found.line, found.path) == (3, "n")
    assert "param > 5" in found.message
    # Whoever only wants to know what is written does not ask.
    assert read(text).definition.workflow.params["n"].value == 3
