"""Mistakes that a run would stumble over, found in the text; and what looks like one and is none."""

from __future__ import annotations

import time

import pytest

from dalsegno.errors import InvalidWorkflow
from dalsegno.spec.reading.context import StepTypes
from dalsegno.spec.step_types import STEP_TYPES, blocks
from dalsegno.spec.templates import read as read_template
from dalsegno.spec.workflows import read
from tests.spec.texts import jobs, problem, problems, steps


def warnings(text: str) -> list[str]:
    return [f"{each.line}:{each.column}: {each}" for each in read(text).warnings]


CAPTURE = "id: capture, type: IpCapture, ip_capture: {source_tables: [lake.shop.orders]%s}"
SEVERAL = "id: capture, type: IpCapture, ip_capture: {source_tables: [lake.shop.orders, lake.shop.customers]}"
COMMIT = "id: commit, type: IpCommit, ip_commit: {capture_step: capture}"


def loads(text: str, capture: str = CAPTURE % "") -> str:
    """A workflow that captures, runs this SQL, and commits; the SQL is in line 5, column 52."""
    return jobs(capture, f"id: load, type: Spark, spark: {{script: {text!r}}}", COMMIT, dag="sequential")


# Blocks.


def test_every_type_with_a_block_is_declared() -> None:
    undeclared = {each.name for each in STEP_TYPES.values() if each.has_block and each.fields is None}
    assert undeclared == {"Kubernetes", "Titus"}


@pytest.mark.parametrize("block", blocks())
def test_a_misspelt_field_of_every_type(block: str) -> None:
    step_type = next(each.name for each in STEP_TYPES.values() if each.block == block)
    field = max(blocks()[block], key=len)
    wrong = f"{field[:-2]}{field[-1]}{field[-2]}x"
    text = f"Workflow:\n  id: w\n  jobs:\n    - job:\n        id: a\n        type: {step_type}\n        {block}:\n"
    found = problem_about(f"{text}          {wrong}: x\n", "has no field")
    assert found == f"8:11: {block} has no field {wrong!r}; did you mean {field!r}?"


def problem_about(text: str, words: str) -> str:
    """The problem with these words in it; a capture that nobody commits is another."""
    (found,) = [each for each in problems(text) if words in each.message]
    return f"{found.line}:{found.column}: {found}"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("type: Shell, shell: {scirpt: x}", "4:41: shell has no field 'scirpt'; did you mean 'script'?"),
        ("type: HTTP, http: {url: u, poll: {evry: 5}}", "4:54: http.poll has no field 'evry'; did you mean 'every'?"),
        (
            "type: HTTP, http: {url: u, poll: {cancel: {methd: PUT}}}",
            "4:63: http.poll.cancel has no field 'methd'; did you mean 'method'?",
        ),
        (
            "type: HTTP, http: {url: u, poll: {cancel: {method: PUTT}}}",
            "4:71: http.poll.cancel.method cannot be 'PUTT'; did you mean 'PUT'?",
        ),
        ("type: HTTP, http: {url: u, method: GTE}", "4:55: http.method cannot be 'GTE'; did you mean 'GET'?"),
        (
            "type: HTTP, http: {url: u, timeout: soon}",
            "4:56: http.timeout cannot be 'soon'; expected a number of seconds above 0",
        ),
        (
            "type: HTTP, http: {url: u, follow_redirects: maybe}",
            "4:65: http.follow_redirects cannot be 'maybe'; expected true or false",
        ),
        ("type: Spark, spark: {jar: j, deploy_mode: clutser}", "4:62: spark.deploy_mode cannot be 'clutser'; did you"),
        ("type: Spark, spark: {script: s, submit: yes}", "4:60: spark.submit cannot be 'yes'; expected true or false"),
        ("type: Container, container: {image: i, engine: dokcer}", "4:67: container.engine cannot be 'dokcer'; did"),
        ("type: Shell, shell: echo", "4:33: 'shell' must hold fields, found 'echo'; known are args"),
        (
            "type: Shell, shell: {script: x, timeout: 5min}",
            "4:52: shell has no field 'timeout'; 'timeout' is a field of the step: move it out of 'shell'",
        ),
    ],
)
def test_fields_and_options(fields: str, expected: str) -> None:
    assert problem(jobs(f"id: a, {fields}")).startswith(expected)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("when_nothing_new: skipp", "ip_capture.when_nothing_new cannot be 'skipp'; did you mean 'skip'?"),
        ("changes: befor_after", "ip_capture.changes cannot be 'befor_after'; did you mean 'before_after'?"),
        ("capture_mode: veiw", "ip_capture.capture_mode cannot be 'veiw'; did you mean 'view'?"),
        ("data_operations: [append, overwrit]", "ip_capture.data_operations cannot be 'overwrit'; did you mean"),
        ("max_snapshots: 0", "ip_capture.max_snapshots cannot be 0; expected a whole number above 0"),
        ("source_table: t", "ip_capture has no field 'source_table'; did you mean 'source_tables'?"),
    ],
)
def test_options_of_captures(options: str, expected: str) -> None:
    assert expected in problem(jobs(CAPTURE % f", {options}", COMMIT, dag="sequential"))


@pytest.mark.parametrize(
    "fields",
    [
        "type: Shell, '!shell<pmap>': 'params[\"x\"]'",
        "type: HTTP, http: {url: u, method: '${m}', '!timeout<long>': 1 + 1, body: {any: thing}, headers: {any: x}}",
        "type: HTTP, http: {url: u, method: get, poll: {url: p}}",
        "type: HTTP, http: {url: u, 'method(MUTABLE)': FILL_IN}",
        "type: Spark, spark: {script: s, submit: 'TRUE', env: {any: x}, conf: {any.thing: 1}}",
        "type: Kubernetes, kubernetes: {any: thing}",
        "type: my.template, shell: {any: thing}",
        "type: NoOp, any: {thing: 1}",
    ],
)
def test_what_a_run_decides_is_not_judged(fields: str) -> None:
    types = StepTypes(templates={"my.template": "template"})
    assert read(jobs(f"id: a, {fields}"), types=types).warnings == ()


def test_options_in_any_case_where_runs_take_them() -> None:
    read(jobs(CAPTURE % ", capture_mode: ICDC, data_operations: [APPEND]", COMMIT, dag="sequential"))


def test_blocks_in_json_and_in_flat_steps_and_in_templates() -> None:
    json = '{"id": "w", "steps": [{"step": {"id": "a", "type": "shell", "params": {"shell": {"value": {"scirpt": '
    json += '{"value": "x", "type": "STRING"}}, "type": "MAP"}}}}]}'
    assert problem(json) == "1:92: shell has no field 'scirpt'; did you mean 'script'?"
    flat = "workflow:\n  name: w\n  steps:\n    - {name: a, type: shell, script: x, retries: 3}\n"
    assert problem(flat).startswith("4:41: shell has no field 'retries'; did you mean retry_policy: {error_retry_limit")
    with pytest.raises(InvalidWorkflow, match=r"shell has no field 'scirpt'; did you mean 'script'"):
        read_template("definition: {job_type: t, step_type: shell, params: {shell: {value: {scirpt: x}, type: MAP}}}")
    made_from = jobs("id: a, type: t, shell: {scirpt: x}")
    with pytest.raises(InvalidWorkflow, match="has no field 'scirpt'"):
        read(made_from, types=StepTypes(templates={"t": "Shell"}))


# What other steps have.


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT * FROM ${capture.chnage_table}",
            "'capture' has no output 'chnage_table'; did you mean 'change_table'?",
        ),
        (
            "SELECT * FROM ${capture__chnage_table}",
            "'capture' has no output 'chnage_table'; did you mean 'change_table'",
        ),
        (
            "SELECT * FROM ${captur.change_table}",
            "there is no step 'captur', which 'captur.change_table' refers to; did",
        ),
        (
            "SELECT * FROM ${capture.before_table}",
            "'capture' has no output 'before_table'; add to the capture: changes:",
        ),
        ("DELETE FROM t WHERE ${capture.partition_fliter('t')}", "'capture' has no output 'partition_fliter'; did you"),
        ("SELECT ${commit.capture_id}", "'load' refers to 'commit', which runs after it; swap their order"),
    ],
)
def test_references_that_mean_nothing(sql: str, expected: str) -> None:
    found = problem(loads(sql))
    assert found.startswith(f"5:52: {expected}")


def test_outputs_of_several_sources() -> None:
    assert "'capture' has no output 'change_table'; there are several sources: write change_table_orders" in problem(
        loads("SELECT * FROM ${capture.change_table}", SEVERAL)
    )
    assert "did you mean 'change_table_orders'?" in problem(loads("${capture.change_table_ordres}", SEVERAL))
    assert warnings(loads("${capture.change_table_orders} ${capture.partition_filter_customers}", SEVERAL)) == []


@pytest.mark.parametrize(
    ("sql", "options"),
    [
        ("${capture.before_table} ${capture.changes_view}", "changes: before_after, keys: [id]"),
        ("${capture.before_table}", "data_operations: [append, overwrite]"),
        ("${capture.before_table}", "changes: '${kind}'"),
        ("${capture.min_day} ${capture.range_filter_a_b}", "range_columns: [day, a.b]"),
        ("${capture.max_any}", "range_columns: ['${column}']"),
        ("${capture.bytes} ${capture.new_partitions} ${capture.is_resumed} ${capture.upto_snapshot}", "branch: main"),
        ("${capture.ip_capture} ${capture.step_id}", "branch: main"),
        ("$${capture.nothing} $$x", "branch: main"),
    ],
)
def test_references_that_mean_something(sql: str, options: str) -> None:
    assert warnings(loads(sql, CAPTURE % f", {options}")) == []


def test_sources_that_a_run_decides_about() -> None:
    capture = CAPTURE.replace("[lake.shop.orders]", "['${a}', lake.shop.b]") % ""
    assert warnings(loads("${capture.change_table_anything} ${capture.source_table}", capture)) == []
    assert "did you mean 'change_table'?" in problem(loads("${capture.chnage_table}", capture))


def test_what_a_run_may_be_given_is_a_warning() -> None:
    (found,) = warnings(loads("SELECT '${capture.wildly_different}'"))
    assert "'capture' has no output 'wildly_different'; it has after_snapshot, bytes, capture_id," in found
    (found,) = warnings(loads("SELECT '${elsewhere.x}'"))
    assert "there is no step 'elsewhere', which 'elsewhere.x' refers to; write ${STEP.OUTPUT}" in found


@pytest.mark.parametrize(
    "step",
    [
        # Outputs of these are free.
        "id: b, type: Shell, shell: {script: 'echo ${a.anything}'}",
        "id: b, type: NoOp, x: '${a.anything} ${a__more}'",
        # Texts that are no references, or that nobody fills in.
        "id: b, type: Python, python: {script: 'print(\"${capture.chnage_table} ${b.c}\")'}",
        """id: b, type: Shell, shell: {script: "echo '${x.y} ${capture.no}' # ${captur.no}"}""",
        """id: b, type: Shell, shell: {script: "cat <<'END'\\n${any.thing}\\nEND"}""",
        # A parameter with a dot in its name comes first.
        "id: b, type: NoOp, capture.odd: x, y: '${capture.odd}'",
    ],
)
def test_free_outputs_and_other_languages(step: str) -> None:
    text = jobs("id: a, type: Python, python: {script: x}", step, CAPTURE % "", COMMIT, dag="sequential")
    assert warnings(text) == []


def test_a_shell_script_refers_as_well() -> None:
    text = jobs(CAPTURE % "", "id: b, type: Shell, shell: {script: 'echo ${capture.rosw}'}", COMMIT, dag="sequential")
    assert problem(text) == "5:49: 'capture' has no output 'rosw'; did you mean 'rows'?"


def test_a_workflows_own_parameter_cannot_refer_to_a_step() -> None:
    text = "Workflow:\n  id: w\n  n: ${a.rows}\n  jobs: [{job: {id: a, type: NoOp, rows: 1}}]\n"
    assert "a workflow's own parameter cannot refer to 'a.rows'" in problem(text)


def test_references_across_loops() -> None:
    loop = "- foreach: {id: each, params: {i: [1]}, jobs: [{job: {id: inner, type: NoOp, x: '%s'}}]}"
    text = "Workflow:\n  id: w\n  dag: %s\n  jobs:\n    - job: {id: a, type: NoOp, y: '%s'}\n    " + loop
    assert warnings(text % ("a -> each", "1", "${a.y} ${i} ${each.z}")) == []
    assert "'inner' refers to 'a', which runs after it" in problem(text % ("each -> a", "1", "${a.y}"))
    assert "'a' cannot refer to 'inner.x': 'inner' runs inside of the loop 'each'; write an expression" in problem(
        text % ("each -> a", "${inner.x}", "1")
    )


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("capture__has_chnages", "'capture' has no output 'has_chnages'; did you mean 'has_changes'?"),
        ("has_chnages", "'capture' has no output 'has_chnages'; did you mean 'has_changes'?"),
        ("capture__has_changes && rows > 0", ""),
    ],
)
def test_conditions(condition: str, expected: str) -> None:
    text = jobs(CAPTURE % "", COMMIT, dag=f"{{capture: ['IF {condition} THEN commit']}}")
    try:
        found = "".join(warnings(text))
    except InvalidWorkflow as error:
        found = str(error)
    assert expected in found
    assert bool(expected) == bool(found)


# The order of steps.


def order(text: str) -> set[str]:
    return {f"{step.id} -> {after}" for step in steps(text).values() for after in step.successors}


def test_references_give_an_order() -> None:
    text = jobs(COMMIT, "id: load, type: Spark, spark: {script: 'SELECT * FROM ${capture.change_table}'}", CAPTURE % "")
    assert order(text) == {"capture -> load", "load -> commit"}
    expected = "the order of these steps follows from their references: capture -> load, load -> commit"
    assert warnings(text) == [f"4:41: {expected}; write it: dag: [capture -> load, load -> commit]"]
    assert order(text + "  dag: parallel\n") == order(text)
    assert order(text + "  dag: [capture -> load]\n") == order(text)


def test_a_commit_waits_for_steps_that_do_not_say_what_they_process() -> None:
    text = jobs(CAPTURE % "", "id: load, type: Python, python: {module: m}", COMMIT)
    assert order(text) == {"capture -> commit", "load -> commit"}


def test_an_order_that_is_written_stays() -> None:
    text = jobs(CAPTURE % "", "id: a, type: NoOp", "id: b, type: NoOp, x: '${a.y}'", COMMIT, dag="sequential")
    assert order(text) == {"capture -> a", "a -> b", "b -> commit"}
    assert warnings(text) == []


def test_nothing_is_inferred_behind_a_condition() -> None:
    lines = ("id: a, type: NoOp", "id: b, type: NoOp", "id: c, type: NoOp, x: '${b.y}'")
    # Another way in would make the step run though its condition does not hold.
    found = problem(jobs(*lines, dag="{a: [IF true == false THEN c]}"))
    assert found.endswith("'c' refers to 'b', but does not wait for it; let 'c' follow it: add 'b -> c' to dag")


def test_a_circle_of_references() -> None:
    text = jobs("id: a, type: NoOp, x: '${b.y}'", "id: b, type: NoOp, y: '${a.x}'")
    assert "the steps refer to each other in a circle: a -> b -> a; remove one" in problem(text)


def test_json_keeps_its_order() -> None:
    step = '{"step": {"id": "%s", "type": "NoOp", "params": {"x": {"value": "%s"}}}}'
    text = f'{{"id": "w", "steps": [{step % ("a", "1")}, {step % ("b", "${a.x}")}]}}'
    assert order(text) == set()
    (found,) = warnings(text)
    assert "'b' refers to 'a', but does not wait for it" in found


def test_no_dag_at_all() -> None:
    text = jobs("id: a, type: NoOp", "id: b, type: NoOp")
    expected = "there is no 'dag', so the 2 steps run in parallel; write dag: sequential, dag: [a -> b] or, if that is"
    (found,) = warnings(text)
    assert found.startswith(f"3:3: {expected}")
    assert order(text) == set()
    assert warnings(jobs("id: a, type: NoOp")) == []
    assert warnings(jobs("id: a, type: NoOp", "id: b, type: NoOp", dag="parallel")) == []
    assert warnings(jobs("id: a, type: NoOp", "id: b, type: NoOp, depends_on: a")) == []


def test_many_steps_are_ordered_in_good_time() -> None:
    lines = [f"id: s{number}, type: NoOp, x: '${{s{number - 1}.x}}'" for number in range(1, 1500)]
    began = time.process_time()
    assert len(order(jobs("id: s0, type: NoOp, x: 1", *lines))) == 1499
    assert time.process_time() - began < 10


# Parameters that look like fields.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            jobs("id: a, type: NoOp, retries: 3"),
            "'retries' isn't a field, so it becomes a parameter; did you mean retry_p",
        ),
        (jobs("id: a, type: NoOp, timeout_seconds: 3"), "did you mean timeout: 30min?"),
        (jobs("id: a, type: NoOp, needs: b"), "did you mean depends_on: [STEP]?"),
        (jobs("id: a, type: Shell, script: x"), "did you mean shell: {script: ...}?"),
        (jobs("id: a, type: Shell, shel: {script: x}"), "did you mean 'shell'?"),
        (jobs("id: a, type: Shell, python: {script: x}"), "the type of the step has the block 'shell'"),
        (
            "schedule: '@daily'\n" + "id: w\njobs: [{job: {id: a, type: NoOp}}]",
            "did you mean Trigger: {cron: '@daily'}",
        ),
        ("owners: me\n" + "id: w\njobs: [{job: {id: a, type: NoOp}}]", "did you mean owner: NAME?"),
    ],
)
def test_parameters_that_look_like_fields(text: str, expected: str) -> None:
    (found,) = warnings(text)
    assert expected in found


def test_parameters_that_are_used_are_meant() -> None:
    assert warnings(jobs("id: a, type: NoOp, retries: 3, x: '${retries}'")) == []
    assert warnings(jobs("id: a, type: NoOp, params: {retries: 3}")) == []


# YAML.


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    id: w\n  jobs: []", "3:3: wrong indentation or a missing ':': expected the next line of a mapping"),
        (
            "  id: w\n   timeout: 5",
            "3:11: a ':' isn't expected here; indent this line like line 2, or end the key there",
        ),
        (
            "  id: w\n  dag: [a -> b\n  jobs: []",
            "4:7: a bracket that opens in line 3 isn't closed before this: expected",
        ),
        ("  id: 'w\n  jobs: []", "4:1: the quote that opens in line 2 isn't closed"),
    ],
)
def test_yaml_in_peoples_words(body: str, expected: str) -> None:
    assert problem(f"Workflow:\n{body}\n").startswith(expected)
