"""Layers of definitions: what Maestro's own tests expect, and where we are stricter."""

from __future__ import annotations

from typing import Any

import pytest

from dalsegno.errors import ParamError
from dalsegno.model.params import (
    InternalMode,
    Param,
    ParamDefinition,
    ParamMode,
    ParamSource,
    ParamType,
    Tag,
)
from dalsegno.spec.params.layers import (
    handed_down,
    made_anew,
    step_definitions,
    workflow_definitions,
)
from dalsegno.spec.params.merging import Layer, merge, settled
from dalsegno.spec.params.sel import Sel

S, L, M = ParamType.STRING, ParamType.LONG, ParamType.MAP
Definitions = dict[str, ParamDefinition]


def text(value: str = "hello", **more: Any) -> ParamDefinition:
    return ParamDefinition(S, value, **more)


def onto(
    old: ParamDefinition,
    new: ParamDefinition,
    source: ParamSource = ParamSource.DEFINITION,
    *,
    is_from_parent: bool = False,
    is_restart: bool = False,
) -> ParamDefinition:
    base = Layer({"p": old}, ParamSource.SYSTEM)
    return merge(base, Layer({"p": new}, source, is_from_parent, is_restart))["p"]


def test_later_layers_overwrite() -> None:
    merged = onto(text(), text("goodbye"))
    assert (merged.value, merged.mode, merged.source) == ("goodbye", ParamMode.MUTABLE, ParamSource.DEFINITION)


def test_order_is_that_of_first_occurrence() -> None:
    base = {f"old{i}": text() for i in range(3)}
    merged = merge(
        Layer(base, ParamSource.SYSTEM_DEFAULT), Layer({"new": text(), "old1": text("x")}, ParamSource.DEFINITION)
    )
    assert list(merged) == ["old0", "old1", "old2", "new"]
    assert (merged["old0"].source, merged["new"].source) == (ParamSource.SYSTEM_DEFAULT, ParamSource.DEFINITION)


def test_maps_are_merged_deeply() -> None:
    old = ParamDefinition(M, {"a": text(), "b": text("b"), "inner": ParamDefinition(M, {"x": text("x")})})
    new = ParamDefinition(M, {"a": text("bye"), "c": text("c"), "inner": ParamDefinition(M, {"y": text("y")})})
    merged = onto(old, new)
    assert [(key, item.value) for key, item in merged.value.items() if key != "inner"] == [
        ("a", "bye"),
        ("b", "b"),
        ("c", "c"),
    ]
    assert sorted(merged.value["inner"].value) == ["x", "y"]


def test_string_maps_are_put_together() -> None:
    old, new = ({"a": "1", "b": "2"}, {"b": "3", "c": "4"})
    merged = onto(ParamDefinition(ParamType.STRING_MAP, old), ParamDefinition(ParamType.STRING_MAP, new))
    assert merged.value == {"a": "1", "b": "3", "c": "4"}
    assert old == {"a": "1", "b": "2"}


def test_kinds_of_maps_become_each_other() -> None:
    of_texts = ParamDefinition(ParamType.STRING_MAP, {"url": "u"})
    merged = onto(ParamDefinition(M, {"method": text("GET")}), of_texts)
    assert merged.type is M
    assert {key: item.value for key, item in merged.value.items()} == {"method": "GET", "url": "u"}
    merged = onto(of_texts, ParamDefinition(M, {"n": ParamDefinition(L, 1)}))
    assert merged.value == {"url": "u", "n": "1"}


def test_expressions_replace_each_other() -> None:
    merged = onto(ParamDefinition(L, expression="5 * 10"), ParamDefinition(S, expression="20 * 10"))
    assert (merged.type, merged.expression) == (L, "20 * 10")


@pytest.mark.parametrize("type_", [M, ParamType.STRING_MAP])
def test_nothing_is_merged_into_a_map_that_is_an_expression(type_: ParamType) -> None:
    with pytest.raises(ParamError, match=r"'p' .* an expression"):
        onto(ParamDefinition(type_, expression="new HashMap()"), ParamDefinition(type_, {}))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (S, ParamDefinition(L, 234), "234"),
        (S, ParamDefinition(ParamType.BOOLEAN, True), "true"),
        (S, ParamDefinition(ParamType.DOUBLE, 122.12), "122.12"),
        (ParamType.DOUBLE, ParamDefinition(L, 122), 122.0),
        (ParamType.DOUBLE, text("122"), 122.0),
        (L, text("234"), 234),
        (ParamType.BOOLEAN, text("trUe"), True),
        (ParamType.STRING_ARRAY, ParamDefinition(ParamType.LONG_ARRAY, [1, 2]), ["1", "2"]),
        (ParamType.LONG_ARRAY, text("[1, 2]"), [1, 2]),
        (L, text("${other}"), "${other}"),
    ],
)
def test_values_are_cast(old: ParamType, new: ParamDefinition, expected: Any) -> None:
    merged = onto(ParamDefinition(old, None), new)
    assert (merged.type, merged.value) == (old, expected)


def test_what_cannot_be_cast() -> None:
    with pytest.raises(ParamError, match="'p' is a LONG; STRING 'goodbye' cannot become one"):
        onto(ParamDefinition(L, 123), text("goodbye"))
    with pytest.raises(ParamError, match="'p' is a STRING; MAP"):
        onto(text(), ParamDefinition(M, {"a": text()}))


MAY: dict[ParamSource, set[str]] = {
    ParamSource.DEFINITION: {"MUTABLE", "MUTABLE_ON_START_RESTART", "MUTABLE_ON_START"},
    ParamSource.LAUNCH: {"MUTABLE", "MUTABLE_ON_START_RESTART", "MUTABLE_ON_START"},
    ParamSource.RESTART: {"MUTABLE", "MUTABLE_ON_START_RESTART"},
    ParamSource.OUTPUT_PARAMETER: {"MUTABLE"},
    ParamSource.SYSTEM: set(ParamMode),
}


@pytest.mark.parametrize("source", MAY)
@pytest.mark.parametrize("mode", ParamMode)
def test_who_may_overwrite_what(mode: ParamMode, source: ParamSource) -> None:
    if mode in MAY[source]:
        assert onto(text(mode=mode), text("bye"), source).value == "bye"
    else:
        with pytest.raises(ParamError, match=f"'p' is {mode}: only .* may set it. {source} tried to."):
            onto(text(mode=mode), text("bye"), source)
        assert onto(text(mode=mode), text(), source).value == "hello", "the same value again is no change"


def test_a_restart_of_a_parent_is_a_restart() -> None:
    with pytest.raises(ParamError, match="MUTABLE_ON_START: only the definition and a start"):
        onto(
            text(mode=ParamMode.MUTABLE_ON_START),
            text("bye"),
            ParamSource.SUBWORKFLOW,
            is_from_parent=True,
            is_restart=True,
        )


def test_modes_get_stricter_never_looser() -> None:
    strict = text(mode=ParamMode.MUTABLE_ON_START)
    assert onto(text(), strict).mode is ParamMode.MUTABLE_ON_START
    assert onto(text(), text("x", mode=ParamMode.CONSTANT)).mode is ParamMode.CONSTANT
    with pytest.raises(ParamError, match="'p' is MUTABLE_ON_START; DEFINITION cannot loosen it to MUTABLE"):
        onto(strict, text("bye", mode=ParamMode.MUTABLE))
    merged = onto(strict, text("bye", mode=ParamMode.MUTABLE), ParamSource.SUBWORKFLOW, is_from_parent=True)
    assert (merged.value, merged.mode, merged.source) == ("bye", ParamMode.MUTABLE_ON_START, ParamSource.SUBWORKFLOW)


def test_the_mode_of_a_map_is_that_of_its_entries() -> None:
    constant = ParamDefinition(M, {"a": text()}, mode=ParamMode.CONSTANT)
    assert merge(Layer({"p": constant}, ParamSource.DEFINITION))["p"].value["a"].mode is ParamMode.CONSTANT
    for entries in ({"a": text("bye")}, {"b": text("added")}):
        with pytest.raises(ParamError, match="is CONSTANT"):
            onto(constant, ParamDefinition(M, entries), ParamSource.LAUNCH)
    of_texts = ParamDefinition(ParamType.STRING_MAP, {"a": "1"}, mode=ParamMode.CONSTANT)
    with pytest.raises(ParamError, match="is CONSTANT"):
        onto(of_texts, ParamDefinition(ParamType.STRING_MAP, {"a": "2"}), ParamSource.LAUNCH)


def test_reserved_parameters_are_the_systems() -> None:
    reserved = text(internal_mode=InternalMode.RESERVED)
    with pytest.raises(ParamError, match="'p' is set by dalsegno alone; LAUNCH cannot"):
        onto(reserved, text("bye"), ParamSource.LAUNCH)
    merged = onto(reserved, text("bye"), ParamSource.SYSTEM_INJECTED)
    assert (merged.value, merged.mode) == ("bye", ParamMode.CONSTANT)
    handed = text("bye", source=ParamSource.SYSTEM_INJECTED)
    assert onto(reserved, handed, ParamSource.SUBWORKFLOW, is_from_parent=True).value == "bye"


def test_users_do_not_play_the_system() -> None:
    with pytest.raises(ParamError, match="cannot give it the internal mode OPTIONAL"):
        onto(text(), text("bye", internal_mode=InternalMode.OPTIONAL), ParamSource.LAUNCH)
    with pytest.raises(ParamError, match="LAUNCH cannot say that it comes from SYSTEM"):
        onto(text(), text("bye", source=ParamSource.SYSTEM), ParamSource.LAUNCH)


def test_secrets_are_replaced_by_secrets_only() -> None:
    secret = ParamDefinition(S, secret="db-password")
    with pytest.raises(ParamError, match="'p' is a secret") as refused:
        onto(secret, text("hunter2"), ParamSource.LAUNCH)
    assert "hunter2" not in str(refused.value)
    assert onto(secret, ParamDefinition(S, secret="other"), ParamSource.LAUNCH).secret == "other"


def test_tags_and_validators() -> None:
    merged = onto(text(tags=(Tag("a"), Tag("b")), validator="@NotEmpty"), text("bye", tags=(Tag("b"), Tag("c"))))
    assert [tag.name for tag in merged.tags] == ["a", "b", "c"]
    assert merged.validator == "@NotEmpty"
    assert onto(text(validator="@NotEmpty"), text("x", validator="param != null")).validator == "param != null"


def test_optional_ones_without_a_value_are_left_out() -> None:
    optional = ParamDefinition(S, internal_mode=InternalMode.OPTIONAL)
    nested = ParamDefinition(M, {"o": optional}, internal_mode=InternalMode.OPTIONAL)
    found = settled({"o": optional, "m": ParamDefinition(M, {"o": optional, "n": nested}), "p": text()})
    assert list(found) == ["m", "p"]
    assert found["m"].value == {}


def test_required_ones_need_a_value() -> None:
    required = ParamDefinition(S, internal_mode=InternalMode.REQUIRED)
    with pytest.raises(ParamError, match=r"'http.url' \(STRING\) is required"):
        settled({"http": ParamDefinition(M, {"url": required})})


def test_layers_of_a_run() -> None:
    workflow = {"RUN_DATE": ParamDefinition(L, 20240131), "own": text()}
    launched = Layer({"own": text("launched")}, ParamSource.LAUNCH)
    found = workflow_definitions(workflow, launched)
    assert list(found) == ["RUN_DATE", "own"], "defaults that nobody overwrites are made when they are used"
    assert (found["RUN_DATE"].type, found["RUN_DATE"].value) == (S, "20240131")
    assert found["RUN_DATE"].mode is ParamMode.MUTABLE_ON_START
    assert found["own"].value == "launched"
    with pytest.raises(ParamError, match="'workflow_id' is set by dalsegno alone"):
        workflow_definitions({"workflow_id": text("x")})


def test_layers_of_a_step() -> None:
    found = step_definitions(
        {"own": text("${extra}"), "kept": text()},
        Layer({"extra": text("more"), "own": text("launched")}, ParamSource.LAUNCH),
        Layer({"kept": text("again")}, ParamSource.RESTART, is_restart=True),
        type_defaults={"typed": text("default")},
        template={"typed": text("of template"), "own": text("template")},
    )
    assert {name: item.value for name, item in found.items()} == {
        "typed": "of template",
        "own": "launched",
        "extra": "more",
        "kept": "again",
    }
    assert list(found).index("extra") < list(found).index("kept")
    with pytest.raises(ParamError, match="'step_id' is set by dalsegno alone"):
        step_definitions({"step_id": text("x")})


def test_workflow_parameters_flow_into_templates() -> None:
    workflow = {"a": Param(S, "$x"), "b": Param(S, "hidden", is_secret=True), "c": Param(S, "unused")}
    found = step_definitions({"own": text()}, template={"a": text(), "b": text("t")}, workflow=workflow)
    assert {name: item.value for name, item in found.items()} == {"a": "$$x", "b": "${b}", "own": "hello"}
    assert found["a"].source is ParamSource.WORKFLOW_PARAMETER


def test_handed_down_to_a_subworkflow() -> None:
    params = {
        "a": Param(S, "$x"),
        "s": Param(S, "hidden", is_secret=True),
        "made": Param(S, "of hidden", is_secret=True),
        "workflow_id": Param(S, "parent", ParamMode.CONSTANT, ParamSource.SYSTEM_DEFAULT),
    }
    definitions = {"s": ParamDefinition(S, secret="n"), "made": ParamDefinition(S, "of ${s}")}
    found = handed_down(params, definitions)
    assert found["a"].value == "$$x"
    assert found["s"].secret == "n"
    assert set(found) == {"a", "s"}


@pytest.mark.parametrize(
    ("given", "new", "expected"),
    [
        ((), {}, {"fixed"}),
        (("a",), {}, {"a", "of_a", "of_that", "fixed"}),
        ((), {"of_a": text("other")}, {"of_a", "of_that", "fixed"}),
        # One that the new version does not have any longer, and one that it adds.
        ((), {"b": None}, {"b", "fixed"}),
        ((), {"added": text("${b}")}, {"added", "fixed"}),
        (("elsewhere",), {}, {"elsewhere", "fixed"}),
    ],
)
def test_what_a_restart_makes_anew(given: Any, new: dict[str, ParamDefinition | None], expected: set[str]) -> None:
    old = {
        "a": text("1"),
        "of_a": text("${a}!"),
        "of_that": ParamDefinition(S, expression="of_a + '?'"),
        "b": text("2"),
        "fixed": text("3", mode=ParamMode.IMMUTABLE),
    }
    now = {name: each for name, each in {**old, **new}.items() if each is not None}
    assert made_anew(now, (old, now), given, Sel()) == expected
