"""What a job may set."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from dalsegno.errors import ParamError
from dalsegno.model.params import Param, ParamDefinition, ParamMode, ParamSource, ParamType
from dalsegno.spec.params.context import Context
from dalsegno.spec.params.facts import NothingThere, RunFacts
from dalsegno.spec.params.outputs import apply_outputs
from dalsegno.spec.params.sel import Sel

NOW = datetime(2024, 1, 31, tzinfo=UTC)
CONTEXT = Context(RunFacts("wf", 1, 1, NOW), NOW, Sel(), NothingThere(), str)
PARAMS = {
    "n": Param(ParamType.LONG, 1),
    "map": Param(ParamType.MAP, {"a": 1, "deep": {"x": "1"}}),
    "texts": Param(ParamType.STRING_MAP, {"a": "1"}),
    "fixed": Param(ParamType.LONG, 1, ParamMode.MUTABLE_ON_START),
    "secret": Param(ParamType.STRING, "s", is_secret=True),
}


def after(outputs: dict[str, Any], **more: Any) -> dict[str, Param]:
    return apply_outputs(PARAMS, outputs, CONTEXT, **more)


def test_declared_ones_keep_their_type() -> None:
    found = after({"n": "5"})
    assert found["n"] == Param(ParamType.LONG, 5, source=ParamSource.OUTPUT_PARAMETER)
    assert found["fixed"] == PARAMS["fixed"]
    assert PARAMS["n"].value == 1


def test_maps_are_merged() -> None:
    found = after({"map": {"b": 2, "deep": {"y": "2"}}, "texts": {"b": 2}})
    assert found["map"].value == {"a": 1, "deep": {"x": "1", "y": "2"}, "b": 2}
    assert found["texts"].value == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (5, ParamType.LONG),
        (0.5, ParamType.DOUBLE),
        ("x", ParamType.STRING),
        (["x"], ParamType.STRING_ARRAY),
        ({"a": "b"}, ParamType.STRING_MAP),
        ({"a": {"b": [1]}}, ParamType.MAP),
    ],
)
def test_new_ones_have_the_type_of_their_value(value: Any, type_: ParamType) -> None:
    assert after({"new": value})["new"] == Param(type_, value, source=ParamSource.OUTPUT_PARAMETER)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({"n": "many"}, "Output 'n': 'many' is not a LONG"),
        ({"fixed": 2}, "Output 'fixed': the parameter is MUTABLE_ON_START, and a job can set MUTABLE ones only"),
        ({"secret": "x"}, "Output 'secret': a secret went into this parameter"),
        ({"step_id": "x"}, "Output 'step_id': this parameter is set by dalsegno alone"),
        ({"a__b": 1}, "Output 'a__b': a parameter's name begins with"),
        ({"1st": 1}, "Output '1st': a parameter's name begins with"),
        ({"none": None}, "Output 'none': null is of no type"),
        ({"mixed": [1, "a"]}, "Output 'mixed': A list holds"),
    ],
)
def test_what_a_job_cannot_set(outputs: dict[str, Any], message: str) -> None:
    with pytest.raises(ParamError, match=message):
        after(outputs)


def test_validators_hold_for_outputs() -> None:
    definitions = {"n": ParamDefinition(ParamType.LONG, 1, validator="@Max(5)")}
    assert after({"n": 5}, definitions=definitions)["n"].value == 5
    with pytest.raises(ParamError, match=r"'n' is 6, which breaks its rule: @Max\(5\)"):
        after({"n": 6}, definitions=definitions)


def test_secrets_are_cut_out() -> None:
    found = after({"log": ["user hunter2!"]}, secrets=("hunter2!",))
    assert found["log"].value == ["user ******"]
