"""A step type is one registration: all that reads, checks, pushes and runs workflows knows it then."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from dalsegno.errors import InvalidWorkflow, ParamError
from dalsegno.model.outcomes import Succeeded
from dalsegno.model.params import Value
from dalsegno.operations.step_files import files_of_workflow
from dalsegno.spec.blocks import BlockField, Kind, block
from dalsegno.spec.problems import Problems
from dalsegno.spec.step_types import STEP_TYPES, StepType
from dalsegno.spec.workflows import read
from dalsegno.steps.contract import Finished, Started, Work
from dalsegno.steps.fields import Fields
from tests.engine.support import FAILED, SUCCEEDED, Place, step
from tests.steps.test_registry import installed  # noqa: F401 - a fixture


class RepeatRunner:
    """Says a text so many times, at once."""

    name: ClassVar[str] = "RepeatText"
    raw: ClassVar[frozenset[str]] = frozenset()

    def start(self, work: Work) -> Started | Finished:
        fields = Fields(work, "repeat_text")
        return Finished(Succeeded({"said": (fields.text("text") or "") * int(fields.text("times") or 1)}))

    def poll(self, work: Work, patience: float) -> Finished:
        raise AssertionError("it ends in start")

    def cancel(self, work: Work) -> None:
        del work


class PauseRunner:
    """Waits without a worker."""

    name: ClassVar[str] = "Pause"
    raw: ClassVar[frozenset[str]] = frozenset()

    def seconds_to_wait(self, params: Mapping[str, Value]) -> float | None:
        return float(str(params["seconds"]))


@pytest.fixture
def repeat_text(monkeypatch: pytest.MonkeyPatch) -> None:
    registered = StepType(
        "RepeatText",
        "says a text",
        f"{__name__}:RepeatRunner",
        fields=block("text", "file", times=BlockField(Kind.COUNT)),
        closed_params=frozenset({"loudness"}),
        outputs=frozenset({"said"}),
        files=frozenset({"file"}),
    )
    monkeypatch.setitem(STEP_TYPES, "repeattext", registered)


def workflow(*steps: str) -> str:
    return "Workflow:\n  id: w\n  jobs:\n" + "".join(f"    - job: {{{each}}}\n" for each in steps)


REPEAT = "id: a, type: repeattext, repeat_text: {text: ho, times: 3}"


@pytest.mark.usefixtures("repeat_text")
def test_one_registration_is_enough_to_run(place: Place) -> None:
    place.operations.workflows.push(workflow(REPEAT, 'id: b, type: NoOp, heard: "${a.said}"'))
    run = place.run("w")
    assert run.status is SUCCEEDED
    assert place.steps(run)["b"].params["heard"]["value"] == "hohoho"


@pytest.mark.usefixtures("repeat_text")
def test_one_registration_closes_what_it_executes(place: Place) -> None:
    place.operations.workflows.push(workflow(REPEAT))
    for given in ({"repeat_text": {"text": "boo"}}, {"loudness": 11}):
        with pytest.raises(ParamError, match="decides what step 'a' executes"):
            place.start("w", a=given)


@pytest.mark.usefixtures("repeat_text")
@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        (["id: a, type: RepeatTxt"], "there is no step type or job template 'RepeatTxt'; did you mean 'RepeatText'?"),
        (["id: a, type: RepeatText, repeat_text: {txet: ho}"], "repeat_text has no field 'txet'; did you mean 'text'?"),
        (["id: a, type: RepeatText, repeat_text: {times: no}"], "repeat_text.times cannot be 'no'; expected a whole"),
        (["id: a, type: RepeatText, text: ho"], "did you mean repeat_text: {text: ...}?"),
        ([REPEAT, "id: b, type: Shell, shell: {script: 'echo ${a.sayd}'}"], "'sayd'"),
    ],
)
def test_one_registration_is_enough_to_check(steps: list[str], problem: str) -> None:
    try:
        found = [str(each) for each in read(workflow(*steps)).warnings]
    except InvalidWorkflow as refused:
        found = [str(refused)]
    assert problem in "\n".join(found)


@pytest.mark.usefixtures("repeat_text")
def test_one_registration_names_the_files_of_a_version(place: Place) -> None:
    (place.folder / "song.txt").write_text("la")
    found = read(workflow("id: a, type: RepeatText, repeat_text: {file: song.txt}")).definition.workflow
    problems = Problems()
    files = files_of_workflow(found, {}, place.operations.settings, problems)
    assert [(each.field, each.name) for each in files.files] == [("repeat_text.file", "song.txt")]
    assert list(files.contents.values()) == ["la"]


def test_a_type_without_a_job_holds_no_worker_and_no_folder(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    pause = StepType("Pause", "waits", f"{__name__}:PauseRunner", has_block=False, has_job=False)
    monkeypatch.setitem(STEP_TYPES, "pause", pause)
    seconds = {"seconds": {"type": "DOUBLE", "value": 0.2}}
    run = place.do(step("a", "Pause", "b", params=seconds), step("b", "NoOp"))
    assert run.status is SUCCEEDED
    assert not list(Path(place.folder).rglob("log"))


@pytest.mark.parametrize("written", ["soon", "-1", "nan", "inf", "1e300", ""])
def test_a_sleep_that_has_no_end(place: Place, written: str) -> None:
    run = place.do(step("nap", "Sleep", params={"sleep_seconds": {"type": "STRING", "value": written}}))
    assert run.status is FAILED
    assert f"sleep_seconds is {written!r}, expected a number of seconds" in (run.reason or "")


@pytest.mark.usefixtures("installed")
def test_a_type_of_another_package_in_a_workflow(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.operations.workflows.push(workflow("id: a, type: echo, echo: {text: hello}"))
    assert place.run("w").status is SUCCEEDED
    with pytest.raises(InvalidWorkflow, match="did you mean 'Echo'"):
        read(workflow("id: a, type: ecko"))
    # Where the package is missing, the version can still be read, and the run says what is missing.
    monkeypatch.undo()
    run = Place.at(place.folder).run("w")
    assert run.status is FAILED
    assert "There is no step type 'Echo'" in (run.reason or "")
