"""Values of parameters: what Maestro's own tests expect, and what is ours."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from traceback import format_exception
from typing import Any

import pytest

from dalsegno.errors import ParamError
from dalsegno.model.params import Param, ParamDefinition, ParamMode, ParamSource, ParamType, Value
from dalsegno.spec.params.context import Context, Evaluated
from dalsegno.spec.params.evaluation import Scope
from dalsegno.spec.params.facts import NothingThere, RunFacts, StepFacts
from dalsegno.spec.params.literals import as_definition
from dalsegno.spec.params.secrets import MASK
from dalsegno.spec.params.sel import Sel
from dalsegno.spec.params.stored import from_stored, to_stored

NOW = datetime(2024, 1, 31, 12, 30, tzinfo=UTC)
RUN = RunFacts("wf", 7, 1, planned=NOW, owner="tester", environment="test", runner="ann")
SECRETS = {"db-password": "hunter2!", "number": "42"}


@dataclass
class Left(NothingThere):
    """What other steps left behind, and what was asked for."""

    steps: Mapping[tuple[str, str], Param] = field(default_factory=dict)
    signals: Mapping[tuple[str, str], Value] = field(default_factory=dict)
    iterations: Mapping[tuple[str, str, str], Sequence[Param | None]] = field(default_factory=dict)
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def step_param(self, step_id: str, name: str) -> Param | None:
        self.asked.append((step_id, name))
        return self.steps.get((step_id, name))

    def step_status(self, step_id: str) -> str | None:
        return "SUCCEEDED"

    def signal_param(self, signal: str, name: str) -> Value | None:
        return self.signals.get((signal, name))

    def foreach_params(self, foreach_id: str, step_id: str, name: str) -> Sequence[Param | None]:
        return self.iterations[(foreach_id, step_id, name)]

    def dependency_param(self, step_id: str, index: int, name: str) -> Value | None:
        return 20240131 if (index, name) == (0, "day") else None

    def next_unique_id(self) -> int:
        return 99


def context(lookup: NothingThere | None = None, run: RunFacts = RUN) -> Context:
    return Context(run, NOW, Sel(), lookup or NothingThere(), SECRETS.__getitem__)


def evaluated_run(definitions: Mapping[str, ParamDefinition]) -> Evaluated:
    return Scope(definitions, context()).evaluate()


def evaluated_step(
    definitions: Mapping[str, ParamDefinition], step: StepFacts, around: Scope, raw: frozenset[str] = frozenset()
) -> Evaluated:
    return Scope(definitions, around.context, {}, around, step, raw).evaluate()


def sel(expression: str, type_: ParamType = ParamType.STRING, **more: Any) -> ParamDefinition:
    return ParamDefinition(type_, expression=expression, **more)


def text(value: str, **more: Any) -> ParamDefinition:
    return ParamDefinition(ParamType.STRING, value, **more)


def long(expression: str) -> ParamDefinition:
    return sel(expression, ParamType.LONG)


def of_workflow(**definitions: ParamDefinition) -> dict[str, Value]:
    found = evaluated_run(definitions).params
    return {name: found[name].value for name in definitions}


def of_step(
    definitions: Mapping[str, ParamDefinition],
    workflow: Mapping[str, Param] | None = None,
    *,
    lookup: NothingThere | None = None,
    step: StepFacts | None = None,
) -> dict[str, Value]:
    around = Scope({}, context(lookup), workflow or {})
    found = evaluated_step(definitions, step or StepFacts("step1"), around).params
    return {name: param.value for name, param in found.items()}


# Types.


@pytest.mark.parametrize(
    ("foo", "bar", "expected"),
    [
        (long("1+2+3;"), sel("foo + '-1';"), "6-1"),
        (long("1+2+3;"), sel("foo - 1;"), "5"),
        (sel("1+2+3;"), long("foo + 1;"), 61),
        (sel("'trU'"), sel("foo + 'e';", ParamType.BOOLEAN), True),
        (
            sel("return new long[]{1, 2,3};", ParamType.LONG_ARRAY),
            sel("foo;", ParamType.STRING_ARRAY),
            ["1", "2", "3"],
        ),
        (long("1+2+3;"), text("test $foo-1"), "test 6-1"),
        (long("5"), sel("foo", ParamType.DOUBLE), 5.0),
        (ParamDefinition(ParamType.DOUBLE, 1), text("$foo"), "1.0"),
        (text("3"), ParamDefinition(ParamType.LONG, "${foo}"), 3),
        (
            sel("m = new HashMap(); m.put('a', 1); return m;", ParamType.MAP),
            text("${foo}"),
            '{"a":1}',
        ),
    ],
)
def test_results_have_the_declared_type(foo: ParamDefinition, bar: ParamDefinition, expected: Value) -> None:
    found = of_workflow(bar=bar, foo=foo)["bar"]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        (long("0.01;"), "'bar': 0.01 is not a LONG"),
        (long("'foo';"), "'bar': 'foo' is not a LONG"),
        (sel("0.01;", ParamType.BOOLEAN), "'bar': 0.01 is not a BOOLEAN"),
        (sel("1 +"), "'bar': line 1"),
        (sel("null"), "'bar': .*yields nothing"),
        (sel("new DateTime(0)"), "'bar': .*yields DATETIME"),
        (sel("throw 'no'"), "'bar': .*no"),
        (text("$nme"), "no parameter 'nme', which 'bar' refers to. Did you mean 'name'"),
        (sel("nme + 1"), "no parameter 'nme', which 'bar' refers to. Did you mean 'name'"),
        (sel("params.getFromStep('step_id')"), "about the current step, and here is none"),
        (sel("params.getFromMoon('x')"), "getFromMoon with 1 arguments is not a function"),
        (sel("params.getFromInstance('x')"), r"getFromInstance\('x'\) is not known"),
    ],
)
def test_what_has_no_value(definition: ParamDefinition, message: str) -> None:
    with pytest.raises(ParamError, match=message):
        of_workflow(name=text("x"), bar=definition)


def test_maps_are_evaluated_inside() -> None:
    inner = {"j": sel("param1;", ParamType.STRING_ARRAY), "t": text("$n!"), "n": ParamDefinition(ParamType.LONG, 1)}
    found = of_workflow(
        param1=ParamDefinition(ParamType.LONG_ARRAY, [1, 2]), n=long("2"), loop=ParamDefinition(ParamType.MAP, inner)
    )
    assert found["loop"] == {"j": ["1", "2"], "t": "2!", "n": 1}


def test_string_maps_and_arrays() -> None:
    found = of_workflow(
        a=text("x"),
        m=ParamDefinition(ParamType.STRING_MAP, {"$a": "${a}$$"}),
        l=ParamDefinition(ParamType.STRING_ARRAY, ["$a", "b"]),
    )
    assert (found["m"], found["l"]) == ({"x": "x$"}, ["x", "b"])


# Names.


@pytest.mark.parametrize(
    ("definitions", "cycle"),
    [
        ({"bar": sel("bar + '-1'")}, "bar → bar"),
        ({"a": text("$b"), "b": text("${c}"), "c": sel("a")}, "a → b → c → a"),
        ({"start": text("$a"), "a": text("$b"), "b": text("$a")}, "a → b → a"),
    ],
)
def test_circles_are_shown(definitions: dict[str, ParamDefinition], cycle: str) -> None:
    with pytest.raises(ParamError, match=f"circle: {cycle}"):
        evaluated_run(definitions)
    with pytest.raises(ParamError, match=f"in step 'step1' .*circle: {cycle}"):
        of_step(definitions)


def test_long_chains_are_written_in_order() -> None:
    chain = {f"p{n}": text(f"${{p{n - 1}}}" if n else "x") for n in range(200)}
    assert of_workflow(**chain)["p199"] == "x"
    with pytest.raises(ParamError, match=r"More than 32 parameters wait for each other, .* Write those first"):
        of_workflow(**dict(reversed(chain.items())))
    in_sel = {f"p{n}": sel(f"params.get('p{n - 1}')" if n else "'x'") for n in range(200)}
    with pytest.raises(ParamError, match=r"wait for each other|nested too deeply"):
        of_workflow(**dict(reversed(in_sel.items())))


def test_parameters_do_not_grow_beyond_bounds() -> None:
    laughs = {"p0": text("ha" * 100)} | {f"p{n}": text(f"${{p{n - 1}}}" * 100) for n in range(1, 10)}
    with pytest.raises(ParamError, match="take more than 750,000 characters"):
        of_workflow(**laughs)
    with pytest.raises(ParamError, match="take more than 750,000 characters"):
        of_workflow(p=text("x" * 400_000), q=text("x" * 400_000))


def test_too_large_a_text_is_refused_before_it_is_made() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ParamError, match="take more than 750,000 characters"):
            of_workflow(p=text("x" * 300_000), q=text("${p}" * 100))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_step_goes_on_from_the_value_around_it() -> None:
    around = {"i": Param(ParamType.LONG, 5)}
    assert of_step({"i": long("i + 1")}, around) == {"i": 6}


def test_the_order_of_definitions_matters_as_in_maestro() -> None:
    around = {"foo": Param(ParamType.LONG, 1), "bar": Param(ParamType.LONG, 6)}
    assert of_step({"foo": long("bar + 1"), "bar": long("foo + 1")}, around) == {"foo": 7, "bar": 8}
    assert of_step({"bar": long("foo + 1"), "foo": long("bar + 1")}, around) == {"foo": 3, "bar": 2}


@pytest.mark.parametrize(
    ("step_id", "name", "written"),
    [
        ("step1", "foo", "step1__foo"),
        ("_step1", "_foo", "_step1___foo"),
        ("_step1_", "_foo", "_step1____foo"),
    ],
)
def test_a_step_may_name_itself(step_id: str, name: str, written: str) -> None:
    definitions = {"bar": sel(f"{written} + '-1'"), name: text("123")}
    assert of_step(definitions, step=StepFacts(step_id))["bar"] == "123-1"


BEFORE = StepFacts("here", ancestors=frozenset({"job1", "job.1", "job.1.a", "capture"}))
STEPS = {
    ("job1", "sleep_seconds"): Param(ParamType.LONG, 15),
    ("job.1", "x"): Param(ParamType.STRING, "of job.1"),
    ("job.1", "a.y"): Param(ParamType.STRING, "a.y of job.1"),
    ("job.1.a", "x"): Param(ParamType.STRING, "of job.1.a"),
    ("capture", "change_table"): Param(ParamType.STRING, "icdc.t"),
    ("later", "x"): Param(ParamType.STRING, "not yet"),
}


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (text("${job1__sleep_seconds} + 1"), "15 + 1"),
        (text("$job1__sleep_seconds + 1"), "15 + 1"),
        (sel("job1__sleep_seconds + 1"), "16"),
        (text("FROM ${capture.change_table}"), "FROM icdc.t"),
        (text("${job.1.x}"), "of job.1"),
        (text("${job.1.a.x}"), "of job.1.a"),
        (text("${job.1.a.y}"), "a.y of job.1"),
        (text("${job.1__x}"), "of job.1"),
        (sel("params.getFromStep('job.1', 'x')"), "of job.1"),
        (sel("params.get('job1__sleep_seconds')"), "15"),
    ],
)
def test_parameters_of_other_steps(definition: ParamDefinition, expected: str) -> None:
    assert of_step({"p": definition}, lookup=Left(STEPS), step=BEFORE)["p"] == expected


@pytest.mark.parametrize("written", ["${later.x}", "${later__x}"])
def test_only_steps_before(written: str) -> None:
    with pytest.raises(ParamError, match=r"'later' is not a step before this one; those are: 'capture', 'job.1'"):
        of_step({"p": text(written)}, lookup=Left(STEPS), step=BEFORE)
    with pytest.raises(ParamError, match="'later' is not a step before this one"):
        of_step({"p": sel("params.getFromStep('later', 'x')")}, lookup=Left(STEPS), step=BEFORE)


def test_a_step_before_without_the_parameter() -> None:
    with pytest.raises(ParamError, match=r"no parameter 'capture.tabel'.* Step 'capture' has not set 'tabel'"):
        of_step({"p": text("${capture.tabel}")}, lookup=Left(STEPS), step=BEFORE)


def test_a_parameter_with_dots_goes_before_a_step() -> None:
    around = {"job.1.x": Param(ParamType.STRING, "a parameter")}
    assert of_step({"p": text("${job.1.x}")}, around, lookup=Left(STEPS), step=BEFORE)["p"] == "a parameter"


def test_other_steps_are_asked_once_and_only_for_what_is_named() -> None:
    lookup = Left(STEPS)
    definitions = {"a": text("${job1__sleep_seconds} ${job1.sleep_seconds}"), "b": sel("job1__sleep_seconds")}
    of_step({**definitions, "c": text("nothing")}, lookup=lookup, step=BEFORE)
    assert lookup.asked == [("job1", "sleep_seconds"), ("job1", "sleep_seconds")]


def test_signals() -> None:
    lookup = Left(signals={("signal_a", "watermark"): 5})
    definitions = {
        "a": sel("params.getFromSignal('signal_a', 'watermark')"),
        "b": text("${signal_a__watermark}"),
        "c": sel("params.getFromSignalOrDefault('signal_a', 'none', 'd')"),
        "d": sel("params.getFromSignalDependency('0', 'day')"),
    }
    assert of_step(definitions, lookup=lookup) == {"a": "5", "b": "5", "c": "d", "d": "20240131"}
    with pytest.raises(ParamError, match="no signal 'signal_a' with a parameter 'none' began this run"):
        of_step({"a": sel("params.getFromSignal('signal_a', 'none')")}, lookup=lookup)


def test_functions_of_runs_and_steps() -> None:
    lookup = Left(iterations={("loop", "inner", "n"): [Param(ParamType.LONG, 1), Param(ParamType.LONG, 2)]})
    step = StepFacts("here", "Shell", 3, "u-u", 2, 1, frozenset({"loop"}))
    definitions = {
        "a": sel("params.getFromInstance('workflow_id') + params.getFromInstance('INITIATOR_TYPE')"),
        "b": sel("params.getFromStep('step_id') + params.getFromStep('step_attempt_id')"),
        "c": sel("params.getFromForeach('loop', 'inner', 'n')", ParamType.LONG_ARRAY),
        "d": sel("params.nextUniqueId() + params.getExecutionEnvironment()"),
        "e": sel("params.getFromStep('loop', 'MAESTRO_STEP_STATUS')"),
        "f": sel("params.getFromStep('MAESTRO_STEP_ERROR_RETRIES')", ParamType.LONG),
        "g": sel("params.getFromInstance('INITIATOR_TIMEZONE')"),
    }
    assert of_step(definitions, lookup=lookup, step=step) == {
        "a": "wfMANUAL",
        "b": "here2",
        "c": [1, 2],
        "d": "99test",
        "e": "SUCCEEDED",
        "f": 1,
        "g": "",
    }


def test_params_sees_what_is_around() -> None:
    around = {"foo": Param(ParamType.STRING, "123")}
    definitions = {
        "a": sel("params.get('foo') + '-1'"),
        "b": sel("params['foo'] + '-1'"),
        "c": sel("params.get('none') == null", ParamType.BOOLEAN),
        "d": sel("params.containsKey('RUN_DATE')", ParamType.BOOLEAN),
        "e": sel("params.get('RUN_DATE')"),
    }
    assert of_step(definitions, around) == {"a": "123-1", "b": "123-1", "c": True, "d": True, "e": "20240131"}


# Defaults.


def test_dates_of_a_run() -> None:
    found = Scope({}, context()).with_defaults()
    assert found["RUN_TS"].value == 1706704200000
    assert found["RUN_DATE"].value == "20240131"
    assert found["RUN_DATE_MINUS_7"].value == "20240124"
    assert found["TARGET_RUN_HOUR"].value == "12"
    assert found["DERIVED_RUN_TS"].value == 1706702400000
    assert found["DERIVED_RUN_HOUR_US_PACIFIC"].value == "04"
    assert found["DERIVED_RUN_DATE_UTC_PLUS_ONE"].value == "20240201"
    assert found["owner"] == Param(ParamType.STRING, "tester", ParamMode.CONSTANT, ParamSource.SYSTEM_DEFAULT)


def test_dates_follow_the_time_zone_of_the_trigger() -> None:
    run = RunFacts("wf", 1, 1, datetime(2024, 1, 31, 20, tzinfo=UTC), initiator_timezone="Asia/Tokyo")
    found = Scope({}, context(run=run)).with_defaults()
    assert (found["TARGET_RUN_DATE"].value, found["TARGET_RUN_HOUR"].value) == ("20240201", "05")
    assert (found["RUN_DATE"].value, found["LOCAL_RUN_DATE"].value) == ("20240131", "20240201")
    assert found["DERIVED_RUN_DATE_UTC"].value == "20240131"


def test_dates_follow_what_is_overwritten() -> None:
    scope = Scope({"TARGET_RUN_DATE": text("20200315"), "TARGET_RUN_HOUR": text("00")}, context())
    assert scope.text("${DERIVED_RUN_DATE_UTC} ${DERIVED_RUN_DATE_US_PACIFIC}") == "20200315 20200314"


def test_all_steps_of_a_run_see_the_same_dates() -> None:
    stored = to_stored(evaluated_run({}).params)
    assert list(stored) == ["RUN_TS"]
    later = Context(RunFacts("wf", 7, 1, datetime(2024, 2, 2, tzinfo=UTC)), NOW, Sel(), NothingThere(), str)
    around = Scope({}, later, from_stored(stored))
    assert evaluated_step({"d": text("$RUN_DATE")}, StepFacts("s"), around).params["d"].value == "20240131"


def test_what_nobody_uses_is_not_made() -> None:
    found = evaluated_step({"d": text("${step_id}")}, StepFacts("s"), Scope({}, context())).params
    assert set(found) == {"d", "step_id"}


def test_an_unknown_time_zone() -> None:
    with pytest.raises(ParamError, match="'Mars' is not a time zone"):
        Scope({"WORKFLOW_CRON_TIMEZONE": text("Mars")}, context()).text("$TARGET_RUN_DATE")


# Conditions and texts.


def test_conditions() -> None:
    scope = Scope({}, context(), {"x": Param(ParamType.LONG, 15)})
    assert scope.is_true("x > 0")
    assert not scope.is_true("x <= 0")
    assert scope.is_true("true")
    with pytest.raises(ParamError, match='A condition is true or false; "x" is 15'):
        scope.is_true("x")
    with pytest.raises(ParamError, match='The condition "x >": line 1'):
        scope.is_true("x >")


# Raw texts.


@pytest.mark.parametrize(
    "shell",
    [
        ParamDefinition(
            ParamType.MAP, {"script": text("echo ${name} $HOME ${capture.change_table}"), "n": text("$name")}
        ),
        ParamDefinition(ParamType.STRING_MAP, {"script": "echo ${name} $HOME ${capture.change_table}", "n": "$name"}),
    ],
)
def test_raw_texts_stay_and_their_values_are_given_aside(shell: ParamDefinition) -> None:
    around = Scope({}, context(Left(STEPS)), {"name": Param(ParamType.STRING, "; rm -rf /")})
    found = evaluated_step({"shell": shell}, BEFORE, around, raw=frozenset({"shell.script"}))
    assert found.params["shell"].value == {
        "script": "echo ${name} $HOME ${capture.change_table}",
        "n": "; rm -rf /",
    }
    assert found.references == {"name": "; rm -rf /", "capture.change_table": "icdc.t"}


def test_a_raw_text_may_use_its_own_name() -> None:
    definitions = {"script": text("script=1; echo $script $other"), "other": text("x")}
    found = evaluated_step(definitions, StepFacts("s"), Scope({}, context()), raw=frozenset({"script"}))
    assert found.references == {"other": "x"}


# Validators.


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ("@NotEmpty", "x", ""),
        ("@notEmpty", [1], []),
        ("@NotBlank", "x", "  "),
        ("@Min(0)", 0, -1),
        ("@Max(2.5)", 2.5, 3.0),
        ("@Min(1.0)", 1, 0),
        ("@Positive", 1, 0),
        ("@PositiveOrZero", 0, -1),
        ("@Negative", -0.5, 0.0),
        ("@NegativeOrZero", 0, 1),
        ('@OneOf("test", "prod")', "prod", "dev"),
        ('Maestro.enumCheck("0","1")', 1, 2),
        ("@Size(min=1, max=2)", ["a"], ["a", "b", "c"]),
        ("param != null && param > 2", 3, 2),
        ("param!=null && param.size() > 2", [1, 2, 3], [1, 2]),
        ("param != null && param.size() > 1", {"a": "1", "b": "2"}, {"a": "1"}),
        ("param == null || param.length() > 1", "ab", "a"),
        ("param.startsWith('s3:')", "s3://x", "file:/x"),
    ],
)
def test_validators_are_run(rule: str, good: Value, bad: Value) -> None:
    assert of_workflow(p=replace(as_definition(good), validator=rule))["p"] == good
    with pytest.raises(ParamError, match=r"Parameter 'p' is .*, which breaks its rule: ") as broken:
        of_workflow(p=replace(as_definition(bad), validator=rule))
    assert rule in broken.value.message


def test_validators_of_entries_and_of_secrets() -> None:
    entry = ParamDefinition(ParamType.MAP, {"i": sel("1", ParamType.LONG, validator="@Min(2)")})
    with pytest.raises(ParamError, match=r"Parameter 'map.i' is 1"):
        of_workflow(map=entry)
    found = evaluated_run({"loop_params": entry})
    assert found.warnings == ("Parameter 'loop_params.i' is 1, which breaks its rule: @Min(2)",)
    with pytest.raises(ParamError, match=r"Parameter 's' is \*+, which breaks its rule: param.length\(\) > 100"):
        of_workflow(s=ParamDefinition(ParamType.STRING, secret="db-password", validator="param.length() > 100"))
    with pytest.raises(ParamError) as broken:
        of_workflow(s=ParamDefinition(ParamType.STRING, secret="db-password", validator="param > 5"))
    assert "hunter2" not in str(broken.value)


# Secrets.

PASSWORD = ParamDefinition(ParamType.STRING, secret="db-password")


@pytest.mark.parametrize(
    "definition",
    [
        PASSWORD,
        text("user:${password}"),
        sel("'user:' + password"),
        sel("params.get('password')"),
        ParamDefinition(ParamType.MAP, {"auth": ParamDefinition(ParamType.MAP, {"p": text("$password")})}),
        ParamDefinition(ParamType.STRING_ARRAY, ["a", "$password"]),
        text("${between}"),
    ],
)
def test_what_is_made_of_a_secret_is_secret(definition: ParamDefinition) -> None:
    found = evaluated_run({"between": text("<$password>"), "password": PASSWORD, "p": definition})
    assert found.params["p"].is_secret
    assert "hunter2!" in str(found.params["p"].value)
    assert "hunter2!" in found.secrets
    assert "hunter2" not in str(to_stored(found.params))
    assert not found.params["RUN_TS"].is_secret


def test_secrets_of_other_steps() -> None:
    lookup = Left({("job1", "token"): Param(ParamType.STRING, "t0ken", is_secret=True)})
    for definition in (text("$job1__token"), sel("params.getFromStep('job1', 'token') + '!'")):
        around = Scope({}, context(lookup))
        found = evaluated_step({"p": definition}, BEFORE, around)
        assert found.params["p"].is_secret
        assert "t0ken" in found.secrets
    with pytest.raises(ParamError) as broken:
        evaluated_step({"p": sel("throw params.getFromStep('job1', 'token')")}, BEFORE, Scope({}, context(lookup)))
    assert "t0ken" not in "".join(format_exception(broken.value))


def test_secrets_are_made_anew_for_a_step() -> None:
    definitions = {"password": PASSWORD, "url": text("db://u:${password}@h"), "plain": text("x")}
    stored = to_stored(evaluated_run(definitions).params)
    assert stored["url"]["value"] == MASK
    around = Scope(definitions, context(), from_stored(stored))
    found = evaluated_step({"u": text("$url/$plain")}, StepFacts("s"), around)
    assert found.params["u"].value == "db://u:hunter2!@h/x"
    assert found.params["u"].is_secret
    assert "hunter2!" in found.secrets


def test_a_secret_is_not_in_messages() -> None:
    definitions = {"password": PASSWORD, "n": long("password")}
    with pytest.raises(ParamError) as broken:
        evaluated_run(definitions)
    assert "hunter2" not in "".join(format_exception(broken.value))
    with pytest.raises(ParamError) as broken:
        evaluated_run({"password": PASSWORD, "n": sel("throw 'it is ' + password")})
    assert "hunter2" not in "".join(format_exception(broken.value))
    assert MASK in str(broken.value)


def test_a_secret_of_another_type() -> None:
    assert of_workflow(n=ParamDefinition(ParamType.LONG, secret="number"))["n"] == 42


def test_references_in_raw_texts_may_be_secret() -> None:
    around = Scope({"password": PASSWORD}, context())
    found = evaluated_step({"script": text("login $password")}, StepFacts("s"), around, raw=frozenset({"script"}))
    assert found.references == {"password": "hunter2!"}
    assert not found.params["script"].is_secret
    assert "hunter2!" in found.secrets


# Loops.


def test_scopes_of_nested_loops() -> None:
    run = Scope({}, context(), {"base": Param(ParamType.LONG, 100)})
    foreach = Scope({"day": text("d")}, run.context, {}, run, StepFacts("loop"))
    iteration = Scope({}, run.context, {"i": Param(ParamType.LONG, 3), "loop_index": Param(ParamType.LONG, 2)}, foreach)
    found = evaluated_step({"p": sel("base + i + loop_index + day + RUN_DATE")}, StepFacts("inner"), iteration)
    assert found.params["p"].value == "105d20240131"
