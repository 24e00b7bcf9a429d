"""No text raises anything but our own error, and every definition reads back as it was written."""

from __future__ import annotations

import json
import string
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dalsegno.errors import InvalidWorkflow, UserError
from dalsegno.model.params import (
    InternalMode,
    ParamDefinition,
    ParamMode,
    ParamSource,
    ParamType,
    Tag,
)
from dalsegno.model.workflow import (
    Backoff,
    Criticality,
    Definition,
    FailureMode,
    ForeachStep,
    JobStep,
    Operator,
    Properties,
    RetryPolicy,
    RunRule,
    RunStrategy,
    SignalDependency,
    SignalMatch,
    SignalOutput,
    Step,
    SubworkflowStep,
    WhileStep,
    Workflow,
)
from dalsegno.spec.canonical import to_json
from dalsegno.spec.formatting import formatted
from dalsegno.spec.reading.context import AnyStepType
from dalsegno.spec.reading.tags import Namespace
from dalsegno.spec.workflows import from_json, read
from dalsegno.triggers import TRIGGERS
from dalsegno.triggers.signal_triggers.model import SignalTrigger
from dalsegno.triggers.table_triggers.model import IncrementalTrigger, Quorum
from dalsegno.triggers.time_triggers.model import CatchUp, CatchUpRule, TimeTrigger
from tests.spec.texts import SAMPLES

# Texts.

WORDS = st.sampled_from(
    [
        *(
            "Workflow",
            "workflow",
            "id",
            "jobs",
            "steps",
            "job",
            "step",
            "foreach",
            "while",
            "subworkflow",
            "dag",
            "type",
        ),
        *("NoOp", "transition", "params", "value", "IF x THEN", "OTHERWISE", "sequential", "loop_params"),
        *("ranges", "${x}", "$S3{y}"),
        *(
            "condition",
            "Trigger",
            "cron",
            "@daily",
            "signal",
            "incremental",
            "retry_policy",
            "tags",
            "timeout",
            "null",
            "true",
            "1.5",
        ),
        *(
            "->",
            ":",
            "-",
            "[",
            "]",
            "{",
            "}",
            "'",
            '"',
            "#",
            "&",
            "*",
            "!",
            "|",
            ">",
            "<",
            ",",
            "\n",
            "\t",
            "${x}",
            "$S3{y}",
        ),
    ]
)
MASHED = st.lists(st.one_of(WORDS, st.text(max_size=5)), max_size=40).map(" ".join)


@settings(deadline=None)
@given(st.one_of(st.text(), MASHED, st.binary()))
@example("Workflow: {id: w, jobs: [{job: {id: a, type: NoOp, transition: {successors: 5}}}]}")
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    try:
        read(text)
    except InvalidWorkflow as error:
        assert all(problem.line >= 1 and problem.column >= 1 for problem in error.problems)


PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), WORDS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(WORDS, st.text(max_size=5)), inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def broken_samples(draw: st.DrawFn) -> str:
    """A sample with some of its values replaced by anything."""
    data = json.loads(SAMPLES_AS_JSON[draw(st.integers(0, len(SAMPLES_AS_JSON) - 1))])
    for _ in range(draw(st.integers(1, 3))):
        node: Any = data
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(node[key], dict | list) and node[key] and draw(st.integers(0, 3)):
                node = node[key]
                continue
            node[key] = draw(PLAIN)
            break
    return json.dumps(data)


SAMPLES_AS_JSON = [json.dumps(to_json(read(file.read_bytes()).definition)) for file in SAMPLES]


@settings(max_examples=80, deadline=None)
@given(broken_samples())
def test_a_spoilt_workflow_is_read_or_refused(text: str) -> None:
    try:
        found = read(text).definition
    except InvalidWorkflow as error:
        assert error.problems
        return
    assert from_json(json.loads(json.dumps(to_json(found)))) == found


@st.composite
def spoilt_lines(draw: st.DrawFn) -> str:
    """A sample in YAML with a line taken out, doubled, cut, or moved to the side."""
    lines = draw(st.sampled_from([file for file in SAMPLES if file.suffix == ".yaml"])).read_text("utf-8").splitlines()
    for _ in range(draw(st.integers(1, 3))):
        number = draw(st.integers(0, len(lines) - 1))
        line = lines[number]
        lines[number] = draw(
            st.sampled_from(
                ["", f"{line}\n{line}", line[: len(line) // 2], f"  {line}", line[1:], f"{line} # note", f"# {line}"]
            )
        )
    return "\n".join(lines)


@settings(max_examples=80, deadline=None)
@given(spoilt_lines())
def test_formatting_keeps_the_meaning_and_the_comments(text: str) -> None:
    try:
        once = formatted(text)
    except UserError:
        return
    assert read(once, types=AnyStepType()).definition == read(text, types=AnyStepType()).definition
    assert formatted(once) == once
    assert once.count("# note") == text.count("# note")


# Definitions.

IDS = st.text(string.ascii_letters + string.digits, min_size=1, max_size=6).map(lambda text: f"n{text}")
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12)
LONGS = st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False, max_value=1e307, min_value=-1e307)
LITERALS: dict[ParamType, st.SearchStrategy[Any]] = {
    ParamType.STRING: st.text(max_size=12),
    ParamType.LONG: LONGS,
    ParamType.DOUBLE: DOUBLES,
    ParamType.BOOLEAN: st.booleans(),
    ParamType.STRING_MAP: st.dictionaries(TEXTS, st.text(max_size=5), max_size=3),
    ParamType.STRING_ARRAY: st.lists(st.text(max_size=5), max_size=3),
    ParamType.LONG_ARRAY: st.lists(LONGS, max_size=3),
    ParamType.DOUBLE_ARRAY: st.lists(DOUBLES, max_size=3),
    ParamType.BOOLEAN_ARRAY: st.lists(st.booleans(), max_size=3),
}
TAGS = st.lists(
    st.builds(Tag, IDS, st.one_of(st.none(), st.sampled_from([*map(str, Namespace)])), st.just({})),
    max_size=2,
    unique_by=lambda tag: tag.name,
).map(tuple)


@st.composite
def params(draw: st.DrawFn, kinds: tuple[ParamType, ...] = tuple(ParamType), depth: int = 0) -> ParamDefinition:
    kind = draw(st.sampled_from([each for each in kinds if each is not ParamType.MAP or depth < 2]))
    shared: dict[str, Any] = {
        "mode": draw(st.one_of(st.none(), st.sampled_from(ParamMode))),
        "internal_mode": draw(st.one_of(st.none(), st.sampled_from(InternalMode))),
        "source": draw(st.sampled_from(ParamSource)),
        "tags": draw(TAGS),
        "validator": draw(st.one_of(st.none(), TEXTS)),
        "meta": draw(st.dictionaries(IDS, st.one_of(st.none(), TEXTS, LONGS), max_size=1)),
    }
    form = draw(st.sampled_from(["value", "expression", "secret"]))
    if form != "value":
        content: dict[str, Any] = {form: draw(TEXTS)}
        return ParamDefinition(kind, **content, **shared)
    if kind is ParamType.MAP:
        return ParamDefinition(kind, draw(st.dictionaries(TEXTS, params(depth=depth + 1), max_size=2)), **shared)
    return ParamDefinition(kind, draw(LITERALS[kind]), **shared)


PARAMS = st.dictionaries(IDS, params(), max_size=3)
MATCHES = st.dictionaries(IDS, st.builds(SignalMatch, params((ParamType.STRING, ParamType.LONG))), max_size=2)
AMOUNTS = st.one_of(st.integers(0, 99), st.just("${n}"), st.just("$n"))
WAITS = st.one_of(st.integers(0, 86_400), st.just("${wait}"), st.just("5min"))
RETRIES = st.builds(
    RetryPolicy,
    AMOUNTS,
    AMOUNTS,
    AMOUNTS,
    st.builds(Backoff, WAITS, AMOUNTS, WAITS, WAITS, AMOUNTS, WAITS, WAITS, AMOUNTS, WAITS),
)
SHARED: dict[str, st.SearchStrategy[Any]] = {
    "name": st.one_of(st.none(), TEXTS),
    "description": st.one_of(st.none(), TEXTS),
    "failure_mode": st.sampled_from(FailureMode),
    "tags": TAGS,
    "timeout": st.one_of(st.none(), st.sampled_from(["90", "2h", "${t}"])),
    "signal_dependencies": st.lists(st.builds(SignalDependency, IDS, MATCHES), max_size=2).map(tuple),
    "signal_outputs": st.lists(
        st.builds(
            SignalOutput,
            IDS,
            st.dictionaries(IDS, params((ParamType.STRING, ParamType.LONG)), max_size=2),
            st.dictionaries(IDS, st.one_of(TEXTS, st.none(), LONGS), max_size=2),
        ),
        max_size=1,
    ).map(tuple),
}


@st.composite
def some_steps(draw: st.DrawFn, prefix: str = "s", depth: int = 0) -> tuple[Step, ...]:
    """Steps that only lead to later ones."""
    ids = [f"{prefix}{number}" for number in range(draw(st.integers(1, 3)))]
    found: list[Step] = []
    for number, step_id in enumerate(ids):
        later = ids[number + 1 :]
        following = st.dictionaries(st.sampled_from(later), st.sampled_from([None, "x > 1"])) if later else st.just({})
        shared: dict[str, Any] = {name: draw(values) for name, values in SHARED.items()}
        shared |= {
            "id": step_id,
            "params": draw(PARAMS),
            "successors": draw(following),
        }
        kind = draw(st.sampled_from(["job", "sub", "foreach", "while"] if depth < 2 else ["job", "sub"]))
        if kind == "job":
            found.append(
                JobStep(
                    **shared,
                    type=draw(st.sampled_from(["NoOp", "Spark", "SQL"])),
                    sub_type=draw(st.one_of(st.none(), IDS)),
                    sub_type_version=draw(st.one_of(st.none(), IDS)),
                    retry_policy=draw(RETRIES),
                )
            )
        elif kind == "sub":
            shared["params"] = shared["params"] | {"subworkflow_id": ParamDefinition(ParamType.STRING, "w")}
            found.append(
                SubworkflowStep(**shared, is_sync=draw(st.booleans()), has_explicit_params=draw(st.booleans()))
            )
        else:
            looped = ParamType.LONG_ARRAY if kind == "foreach" else ParamType.LONG
            loop = {f"i{depth}{step_id}": draw(params((looped,)))}
            shared["params"] = shared["params"] | {"loop_params": ParamDefinition(ParamType.MAP, loop)}
            shared["steps"] = draw(some_steps(f"{step_id}x", depth + 1))
            if kind == "foreach":
                concurrency = draw(st.one_of(st.none(), st.integers(1, 500)))
                found.append(ForeachStep(**shared, concurrency=concurrency, has_strict_ordering=draw(st.booleans())))
            else:
                found.append(WhileStep(**shared, condition="x < 1"))
    return tuple(found)


TIMES = st.builds(
    TimeTrigger,
    st.sampled_from(["@daily", "0 5 * * *", "0 0 12 1/1 * ? *"]),
    st.one_of(st.none(), st.just("UTC")),
    st.one_of(st.none(), st.just("5min")),
    st.one_of(
        st.sampled_from([CatchUp(), CatchUp(CatchUpRule.NONE)]),
        st.builds(CatchUp, st.just(CatchUpRule.ALL), st.integers(1, 1000)),
    ),
)


@st.composite
def signal_triggers(draw: st.DrawFn) -> SignalTrigger:
    names = draw(st.lists(IDS, min_size=1, max_size=3, unique=True))
    keys = draw(st.integers(0, 2))
    matches = st.dictionaries(
        IDS,
        st.builds(SignalMatch, params((ParamType.STRING, ParamType.LONG)), st.just(Operator.EQUAL)),
        max_size=2,
    )
    return SignalTrigger(
        {name: SignalDependency(name, draw(matches)) for name in names},
        {name: tuple(f"_key{number}" for number in range(keys)) for name in names} if keys else {},
        draw(PARAMS),
        draw(st.one_of(st.none(), st.just("1 < 2"))),
        draw(st.one_of(st.none(), st.just("x"))),
    )


WATCHED = st.builds(
    IncrementalTrigger,
    st.lists(IDS, max_size=2, unique=True).map(tuple),
    st.sampled_from(Quorum),
    st.one_of(st.none(), st.just("30s")),
    st.one_of(st.none(), st.just("10m")),
    st.one_of(st.none(), st.just("1h")),
    *[st.one_of(st.none(), st.integers(1, 10**15))] * 4,
    st.one_of(st.none(), st.just("audit")),
)
STRATEGIES = st.one_of(
    st.builds(RunStrategy, st.sampled_from([rule for rule in RunRule if rule is not RunRule.PARALLEL])),
    st.builds(RunStrategy, st.just(RunRule.PARALLEL), st.integers(1, 1000)),
)
DEFINITIONS = st.builds(
    Definition,
    st.builds(
        Workflow,
        IDS,
        some_steps(),
        st.one_of(st.none(), TEXTS),
        st.one_of(st.none(), TEXTS),
        TAGS,
        SHARED["timeout"],
        st.one_of(st.none(), st.sampled_from(Criticality)),
        st.one_of(st.none(), st.integers(1, 999)),
        PARAMS,
        st.tuples(*(st.lists(kind, max_size=2) for kind in (TIMES, signal_triggers(), WATCHED))).map(
            lambda kinds: tuple(trigger for kind in kinds for trigger in kind)
        ),
    ),
    st.builds(
        Properties,
        st.one_of(st.none(), TEXTS),
        STRATEGIES,
        st.integers(1, 1000),
        st.one_of(st.none(), TEXTS),
        st.dictionaries(IDS, st.lists(TEXTS, max_size=1), max_size=1),
        st.frozensets(st.sampled_from(list(TRIGGERS))),
    ),
    st.booleans(),
    st.dictionaries(IDS, TEXTS, max_size=2),
)


@settings(max_examples=80, deadline=None)
@given(DEFINITIONS)
def test_definitions_read_back_equal(definition: Definition) -> None:
    assert from_json(json.loads(json.dumps(to_json(definition)))) == definition
