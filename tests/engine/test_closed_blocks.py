"""What a step executes is the author's: whoever starts or restarts a run may set it only where the author opens it."""

from __future__ import annotations

from typing import Any

import pytest

from dalsegno.engine.given_names import refuse_hiding
from dalsegno.errors import ParamError
from dalsegno.model.runs import RestartFrom
from dalsegno.spec.step_types import STEP_TYPES, block_of
from tests.engine.support import FAILED, SUCCEEDED, Json, Place, foreach, noop, shell, step, subworkflow

EVIL = "echo evil >> out"


def text(value: str, mode: str | None = None) -> Json:
    return {"type": "STRING", "value": value, **({"mode": mode} if mode else {})}


def block(script: Json, mode: str | None = None, **more: Json) -> Json:
    return {"type": "MAP", "value": {"script": script, **more}, **({"mode": mode} if mode else {})}


def echo(place: Place, word: str) -> str:
    return f"echo {word} >> {place.folder}/out"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"shell": {"script": EVIL}}, "shell.script"),
        ({"shell": {"interpreter": "python3"}}, "shell.interpreter"),
        ({"shell": {"env": {"BASH_ENV": "/tmp/x"}}}, "shell.env"),
        ({"shell": {"env": {"X": "other"}}}, "shell.env"),
        ({"shell": {"args": ["x"]}}, "shell.args"),
        ({"shell": f'{{"script": "{EVIL}"}}'}, "shell"),
        ({"x": 1, "shell": {"script": EVIL}}, "shell.script"),
    ],
)
def test_a_block_is_closed_at_start_and_restart(place: Place, given: Json, named: str) -> None:
    env: dict[str, Any] = {"env": {"type": "STRING_MAP", "value": {"X": "1"}}} if "env" in str(given) else {}
    place.push("w", step("a", "Shell", params={"shell": block(text("exit 0"), **env)}))
    with pytest.raises(
        ParamError, match=rf"^Parameter '{named}[^']*' decides what step 'a' executes; a start"
    ) as refused:
        place.start("w", a=given)
    assert "(mutable_on_start_restart): " in str(refused.value.hint)
    place.run("w")
    with pytest.raises(ParamError, match="a restart cannot set it"):
        place.operations.runs.restart("w/1", restart=RestartFrom.BEGINNING, params={"a": given})
    assert place.lines() == []


#: A field of each type that says what is executed.
FIELDS = {
    "sql": "query",
    "notebook": "input_path",
    "java": "main_class",
    "container": "image",
    "http": "url",
    "ipcapture": "source_tables",
    "ipcommit": "capture_step",
    "icdc": "source_table",
    "incremental": "keys",
}


@pytest.mark.parametrize("kind", [each.name for each in STEP_TYPES.values() if each.has_block])
def test_the_block_of_every_type_is_closed(place: Place, kind: str) -> None:
    name, field = block_of(kind) or "", FIELDS.get(kind.lower(), "script")
    (place.folder / "1").write_text("{}")
    block = {field: text("c" if kind == "IpCommit" else "1")}
    source = {"ip_capture": {"type": "MAP", "value": {"source_tables": text("a.b")}}}
    around = [step("c", "IpCapture", params=source)] * (kind == "IpCommit")
    commit = {"ip_commit": {"type": "MAP", "value": {"capture_step": text("a")}}}
    around += [step("d", "IpCommit", params=commit)] * (kind == "IpCapture")
    place.push("w", step("a", kind, params={name: {"type": "MAP", "value": block}}), *around)
    for given in ({field: "2"}, {"y": "2"}, {field: {"y": 2}}, "{}"):
        with pytest.raises(ParamError, match="decides what step 'a' executes"):
            place.start("w", a={name: given})


def test_what_an_http_step_takes_for_success_is_closed(place: Place) -> None:
    url = {"http": {"type": "MAP", "value": {"url": text("https://example.org")}}}
    place.push("w", step("a", "HTTP", params={**url, "state_expr": text("'STOPPED'")}))
    with pytest.raises(ParamError, match="'state_expr' decides"):
        place.start("w", a={"state_expr": "'DONE'"})


def test_an_author_opens_an_entry_or_the_whole_block(place: Place) -> None:
    place.push("w", step("a", "Shell", params={"shell": block(text("exit 1", "MUTABLE_ON_START"))}))
    assert place.run("w", a={"shell": {"script": echo(place, "opened")}}).status is SUCCEEDED
    with pytest.raises(ParamError, match=r"'shell\.env' decides"):
        place.start("w", a={"shell": {"env": {"X": "1"}}})
    with pytest.raises(ParamError, match=r"'shell\.script' is MUTABLE_ON_START"):
        place.operations.runs.restart("w/1", restart=RestartFrom.BEGINNING, params={"a": {"shell": {"script": EVIL}}})

    place.push("v", step("a", "Shell", params={"shell": block(text("exit 1"), "MUTABLE")}))
    given = {"shell": {"script": f'echo "$X" >> {place.folder}/out', "env": {"X": "whole"}}}
    assert place.run("v", a=given).status is SUCCEEDED

    place.push("u", step("a", "Shell", params={"shell": block(text("exit 1", "CONSTANT"), "MUTABLE")}))
    with pytest.raises(ParamError, match="CONSTANT"):
        place.start("u", a=given)
    assert place.lines() == ["opened", "whole"]


@pytest.mark.parametrize(
    "written",
    [
        "jobs: [{job: {id: a, type: Shell, shell: {'script(mutable)': exit 1}}}]",
        "jobs: [{job: {id: a, type: Shell, 'shell(mutable)': {script: exit 1}}}]",
        "steps: [{name: a, type: shell, 'script(mutable)': exit 1}]",
        "steps: [{name: a, type: shell, 'shell(mutable)': {script: exit 1}}]",
        "steps: [{name: a, type: shell, script: exit 1, 'shell(mutable)': {args: [x]}}]",
    ],
)
def test_modes_in_yaml(place: Place, written: str) -> None:
    place.operations.workflows.push(f"Workflow: {{id: w, {written}}}")
    assert place.run("w", a={"shell": {"script": echo(place, "opened")}}).status is SUCCEEDED
    assert place.lines() == ["opened"]


@pytest.mark.parametrize("name", ["PIPELINE", "GIT_BRANCH", "INPUT_PATH", "SPARK_VERSION", "proxy", "PGDAY"])
def test_other_names_stay_free(place: Place, name: str) -> None:
    refuse_hiding(name, place.operations.settings, "the workflow 'w'")


def test_parameters_stay_settable(place: Place) -> None:
    """Those that the author refers to, those that a step declares, and new ones."""
    script = f'echo "$word $n $new" >> {place.folder}/out'
    place.push("w", shell("a", script, params={"n": {"type": "LONG", "value": 1}}), params={"word": text("one")})
    assert place.run("w", word="two; $(touch evil)", a={"n": 7, "new": "x"}).status is SUCCEEDED
    assert place.lines() == ["two; $(touch evil) 7 x"]


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "BASH_ENV", "LD_PRELOAD", "PYTHONPATH", "CLASSPATH", "https_proxy", "b.table"]
)
def test_names_that_would_hide_what_the_author_means(place: Place, name: str) -> None:
    place.push("w", shell("a", f'echo "$PATH" >> {place.folder}/out', "b"), noop("b"))
    with pytest.raises(ParamError, match=f"'{name}' (would|could) hide .*the workflow 'w' does not declare it"):
        place.start("w", **{name: "/tmp/evil"})
    with pytest.raises(ParamError, match=f"'{name}' (would|could) hide .*the step 'a' does not declare it"):
        place.start("w", a={name: "/tmp/evil"})
    place.push("v", noop("a"), params={name: text("x")})
    assert place.start("v", **{name: "y"}).params[name]["value"] == "y"  # type: ignore[index]


# Ways around.


def test_a_subworkflow_is_chosen_by_its_author(place: Place) -> None:
    place.push("child", noop("x"))
    place.push("other", shell("x", echo(place, "evil")))
    place.push("w", subworkflow("call", "child"))
    for given in ({"subworkflow_id": "other"}, {"subworkflow_version": "7"}):
        with pytest.raises(ParamError, match="decides what step 'call' executes"):
            place.start("w", call=given)


@pytest.mark.parametrize("way", ["run", "step", "loop", "twice"])
def test_a_start_cannot_reach_a_subworkflow(place: Place, way: str) -> None:
    """What a run only hands down is not its author's."""
    place.push("child", shell("deep", "exit 0"))
    call = subworkflow("call", "child")
    if way == "twice":
        place.push("middle", subworkflow("call", "child"))
        call = subworkflow("call", "middle")
    place.push("w", foreach("each", [1], [call]) if way == "loop" else call)
    evil: Any = {"shell": {"script": echo(place, "evil")}}
    given = {"run": {"deep": evil}, "twice": {"deep": evil}, "step": {"call": {"deep": evil}}}
    run = place.run("w", **given.get(way, {"each": {"deep": evil}}))
    assert run.status is FAILED
    assert place.lines() == []
    failure = place.steps("middle" if way == "twice" else "w")
    if way != "loop":
        assert "'shell.script' decides what step 'deep' executes" in str(failure["call"].failure)


@pytest.mark.parametrize("name", ["PATH", "b.table", "job_template_version"])
def test_nor_hide_what_a_subworkflow_refers_to(place: Place, name: str) -> None:
    place.push("child", shell("deep", f'echo "$PATH" >> {place.folder}/out'))
    place.push("middle", subworkflow("call", "child"))
    place.push("w", subworkflow("call", "middle"))
    # Of one number, it is not taken for a map of texts.
    evil = {name: "/tmp/evil", "n": 1}
    for given in ({"deep": evil}, {"call": {"deep": evil}}):
        assert place.run("w", **given).status is FAILED
        assert f"'{name}' " in str(place.steps("middle")["call"].failure)
    assert place.lines() == []


def test_a_calling_workflow_is_an_author(place: Place) -> None:
    place.push("child", shell("deep", "exit 1"))
    deep = {"type": "MAP", "value": {"shell": block(text(echo(place, "${word}")))}}
    place.push("w", subworkflow("call", "child", params={"deep": deep}), params={"word": text("mine")})
    assert place.run("w", word="yours").status is SUCCEEDED
    assert place.lines() == ["yours"]
    with pytest.raises(ParamError, match="a restart cannot set it"):
        place.operations.runs.restart(
            "child", restart=RestartFrom.BEGINNING, params={"deep": {"shell": {"script": EVIL}}}
        )


def test_loops_take_values_and_no_new_names(place: Place) -> None:
    place.push("w", foreach("each", [1, 2], [shell("a", f"echo $i >> {place.folder}/out")]))
    assert place.run("w", each={"loop_params": {"i": [7]}}).status is SUCCEEDED
    assert place.lines() == ["7"]
    with pytest.raises(ParamError, match=r"'loop_params\.shell' of step 'each' is not declared; a start cannot add it"):
        place.start("w", each={"loop_params": {"shell": ["x"]}})
    with pytest.raises(ParamError, match="is a MAP; a start gave something else"):
        place.start("w", each={"loop_params": '{"shell": ["x"]}'})


TEMPLATE = """
definition:
  job_type: greet
  step_type: Shell
  version: default
  params:
    word: {type: STRING, value: hello}
    shell: {type: MAP%s, value: {script: {type: STRING, value: 'echo "$word" >> %s/out'}}}
"""


@pytest.mark.parametrize("given", [{"script": EVIL}, f'{{"script": "{EVIL}"}}'])
def test_parameters_of_a_run_do_not_flow_into_the_block_of_a_template(place: Place, given: Any) -> None:
    place.operations.templates.push(TEMPLATE % ("", place.folder))
    place.operations.workflows.push("Workflow: {id: w, jobs: [{job: {id: a, type: greet}}]}")
    with pytest.raises(ParamError, match="decides what step 'a' executes; a start cannot set it"):
        place.start("w", shell=given)
    with pytest.raises(ParamError, match="decides what step 'a' executes; a start cannot set it"):
        place.start("w", a={"shell": given})
    assert place.run("w", word="hi").status is SUCCEEDED
    ours = f"shell: {{script: 'echo ours >> {place.folder}/out'}}"
    place.operations.workflows.push(f"Workflow: {{id: w, {ours}, jobs: [{{job: {{id: a, type: greet}}}}]}}")
    assert place.run("w").status is SUCCEEDED
    assert place.lines() == ["hi", "ours"]


def test_a_template_can_open_its_block(place: Place) -> None:
    place.operations.templates.push(TEMPLATE % (", mode: MUTABLE_ON_START", place.folder))
    place.operations.workflows.push("Workflow: {id: w, jobs: [{job: {id: a, type: greet}}]}")
    assert place.run("w", a={"shell": {"script": echo(place, "opened")}}).status is SUCCEEDED
    assert place.lines() == ["opened"]


def test_nor_do_those_of_a_loop(place: Place) -> None:
    place.operations.templates.push(TEMPLATE % ("", place.folder))
    loop = "foreach: {id: each, loop_params: {i: [1]}, jobs: [{job: {id: a, type: greet}}]}"
    place.operations.workflows.push(f"Workflow: {{id: w, jobs: [{{{loop}}}]}}")
    assert place.run("w", each={"word": "ours"}).status is SUCCEEDED
    assert place.run("w", each={"shell": {"script": echo(place, "evil")}}).status is FAILED
    assert place.lines() == ["ours"]


def test_the_version_of_a_template_is_chosen_by_its_author(place: Place) -> None:
    place.operations.templates.push(TEMPLATE % ("", place.folder))
    other = TEMPLATE.replace("version: default", "version: other").replace('"$word"', "other")
    place.operations.templates.push(other % ("", place.folder))
    loop = "foreach: {id: each, loop_params: {i: [1]}, jobs: [{job: {id: b, type: greet}}]}"
    place.operations.workflows.push(f"Workflow: {{id: w, jobs: [{{job: {{id: a, type: greet}}}}, {{{loop}}}]}}")
    for given in ({"job_template_version": "other"}, {"each": {"job_template_version": "other"}}):
        with pytest.raises(ParamError, match="'job_template_version' decides which job template a step is made from"):
            place.start("w", **given)
    declared = "job_template_version: default, jobs: [{job: {id: a, type: greet}}]"
    place.operations.workflows.push(f"Workflow: {{id: v, {declared}}}")
    assert place.run("v", job_template_version="other").status is SUCCEEDED
    assert place.lines() == ["other"]
