"""Whatever is written in parameters: modes never loosen, texts stay what they are, secrets stay secret."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from datetime import UTC, datetime
from itertools import product
from traceback import format_exception
from typing import Any
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from dalsegno.errors import ParamError
from dalsegno.model.params import Param, ParamDefinition, ParamMode, ParamSource, ParamType
from dalsegno.spec.params.context import Context
from dalsegno.spec.params.evaluation import Scope
from dalsegno.spec.params.facts import NothingThere, RunFacts
from dalsegno.spec.params.literals import as_definition, escaped, interpolate, references
from dalsegno.spec.params.loops import iteration_count, iteration_params
from dalsegno.spec.params.merging import Layer, merge
from dalsegno.spec.params.secrets import mask
from dalsegno.spec.params.sel import Sel
from dalsegno.spec.params.stored import from_stored, to_stored

modes = st.none() | st.sampled_from(ParamMode)
leaves = st.builds(ParamDefinition, st.just(ParamType.LONG), st.integers(0, 3), mode=modes)
maps = st.builds(
    ParamDefinition, st.just(ParamType.MAP), st.dictionaries(st.sampled_from("xy"), leaves, max_size=2), mode=modes
)
layers = st.builds(
    Layer,
    st.dictionaries(st.sampled_from("ab"), leaves | maps, min_size=1, max_size=2),
    st.sampled_from(ParamSource),
    st.booleans(),
    st.booleans(),
)


def all_modes(definitions: dict[str, ParamDefinition], inside: str = "") -> dict[str, ParamMode]:
    found = {}
    for name, definition in definitions.items():
        assert definition.mode is not None
        found[f"{inside}{name}"] = definition.mode
        if definition.type is ParamType.MAP:
            found |= all_modes(definition.value, f"{inside}{name}.")
    return found


@given(st.lists(layers, min_size=1, max_size=4))
def test_merging_never_loosens_a_mode(given_layers: list[Layer]) -> None:
    accepted: list[Layer] = []
    before: dict[str, ParamMode] = {}
    for layer in given_layers:
        with suppress(ParamError):
            after = all_modes(merge(*accepted, layer))
            assert all(after[name].strictness >= mode.strictness for name, mode in before.items())
            accepted.append(layer)
            before = after


@given(st.lists(layers, min_size=2, max_size=4))
def test_who_may_not_overwrite_does_not(given_layers: list[Layer]) -> None:
    """After a user's layer was accepted, a strict parameter still has its value."""
    users = [layer for layer in given_layers if not layer.source.startswith(("SYSTEM", "TEMPLATE_SCHEMA"))]
    for split in range(1, len(users)):
        with suppress(ParamError):
            base, after = merge(*users[:split]), merge(*users[: split + 1])
            for name, definition in base.items():
                if definition.mode in {ParamMode.IMMUTABLE, ParamMode.CONSTANT}:
                    assert after[name].value == definition.value


@given(st.text().filter(lambda text: "$" not in text))
def test_text_without_dollars_is_itself(text: str) -> None:
    assert interpolate(text, str.upper) == text


@given(st.text(alphabet="ab$${}_. 1"))
def test_escaping_goes_there_and_back(text: str) -> None:
    assert interpolate(escaped(text), str.upper) == text
    assert references(escaped(text)) == []


@given(st.text(alphabet="ab$${}_. 1S3"))
def test_references_are_what_gets_replaced(text: str) -> None:
    asked: list[str] = []

    def value_of(name: str) -> str:
        asked.append(name)
        return ""

    interpolate(text, value_of)
    assert list(dict.fromkeys(asked)) == references(text)


secrets_ = st.text(alphabet=st.characters(exclude_characters="*", exclude_categories=["Cs"]), min_size=1)


@given(st.lists(secrets_, min_size=1, max_size=3), st.data())
def test_masking_removes_every_secret(secrets: list[str], data: st.DataObject) -> None:
    forms = [
        form
        for secret in secrets
        for form in (secret, json.dumps(secret)[1:-1], quote(secret, safe=""), shlex.quote(secret))
    ]
    text = "".join(data.draw(st.lists(st.sampled_from(forms) | st.text(max_size=3), max_size=8)))
    shown = mask(text, secrets)
    assert not any(secret in shown for secret in secrets)


NOW = datetime(2024, 1, 31, tzinfo=UTC)
SECRET = "s3cr3t"
CONTEXT = Context(RunFacts("wf", 1, 1, NOW), NOW, Sel(), NothingThere(), lambda name: SECRET)
NAMES = ["a", "b", "c", "d", "e"]


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, ParamDefinition]:
    """Parameters that use each other, of which some are secrets."""
    found: dict[str, ParamDefinition] = {}
    for at, name in enumerate(NAMES):
        used = draw(st.lists(st.sampled_from(NAMES[:at]), max_size=2)) if at else []
        text = " ".join(f"${{{each}}}" for each in used)
        found[name] = draw(
            st.sampled_from(
                [
                    ParamDefinition(ParamType.STRING, secret="s"),
                    ParamDefinition(ParamType.STRING, text),
                    ParamDefinition(ParamType.STRING, expression=" + ".join(["'x'", *used])),
                    ParamDefinition(
                        ParamType.STRING, expression=" + ".join(["'x'", *(f"params['{u}']" for u in used)])
                    ),
                    ParamDefinition(ParamType.STRING_ARRAY, [text]),
                    ParamDefinition(ParamType.MAP, {"inner": ParamDefinition(ParamType.STRING, text)}),
                ]
            )
        )
    order = draw(st.permutations(NAMES))
    return {name: found[name] for name in order}


@settings(deadline=None)
@given(definitions())
def test_whatever_a_secret_went_into_is_secret(written: dict[str, ParamDefinition]) -> None:
    try:
        found = Scope(written, CONTEXT).evaluate()
    except ParamError as refused:
        # Texts cannot be joined with maps by an expression, for one.
        assert SECRET not in "".join(format_exception(refused))
        return
    for param in found.params.values():
        assert param.is_secret or SECRET not in str(param.value)
    assert SECRET not in json.dumps(to_stored(found.params))
    around = Scope(written, CONTEXT, from_stored(to_stored(found.params)))
    assert {name: around.param(name) for name in NAMES} == {name: found.params[name] for name in NAMES}


plain = st.recursive(
    st.text(alphabet="ab$${}_. 1")
    | st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.lists(st.text("a$"), max_size=2),
    lambda inner: st.dictionaries(st.text("ab", min_size=1), inner, max_size=3),
)


@settings(deadline=None)
@given(plain)
def test_a_value_as_literal_evaluates_to_itself(value: Any) -> None:
    assert Scope({"p": as_definition(value)}, CONTEXT).evaluate().params["p"].value == value


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_iterations_are_all_combinations(sizes: list[int]) -> None:
    names = [f"p{at}" for at in range(len(sizes))]
    loop = Param(ParamType.MAP, {name: list(range(size)) for name, size in zip(names, sizes, strict=True)})
    iterations = [iteration_params(loop, index) for index in range(iteration_count(loop))]
    found = [tuple(params[name].value for name in reversed(names)) for params in iterations]
    assert found == list(product(*(range(size) for size in reversed(sizes))))
