"""What is found out when a workflow is pushed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dalsegno.model.params import ParamDefinition, ParamType
from dalsegno.spec.params.checks import problems_of
from dalsegno.spec.params.sel import Sel

NOW = datetime(2024, 1, 31, tzinfo=UTC)
S, L, M = ParamType.STRING, ParamType.LONG, ParamType.MAP


@pytest.mark.parametrize(
    ("definition", "path", "message"),
    [
        (ParamDefinition(L, "x"), ("p",), "'x' is not a LONG"),
        (ParamDefinition(S, expression="1 +"), ("p",), "line 1"),
        (ParamDefinition(S, "", validator="@NotEmpty"), ("p",), "breaks its rule: @NotEmpty"),
        (ParamDefinition(S, "$x", validator="@Nonsense"), ("p",), "'@Nonsense' is not a validator"),
        (ParamDefinition(S, "$x", validator="@Min(a)"), ("p",), "is not a validator"),
        (ParamDefinition(S, "$x", validator="param >"), ("p",), "line 1"),
        (ParamDefinition(S, "$x", validator="other > 2"), ("p",), "knows the value as 'param' and nothing else"),
        (ParamDefinition(L, 1, validator="param + 1"), ("p",), "must be true or false; it is 2"),
        (ParamDefinition(M, {}, validator="@NotEmpty"), ("p",), "breaks its rule: @NotEmpty"),
        (ParamDefinition(M, {"a": ParamDefinition(L, "x")}, validator="@NotEmpty"), ("p", "a"), "'x' is not a LONG"),
    ],
)
def test_problems(definition: ParamDefinition, path: tuple[str, ...], message: str) -> None:
    (found,) = problems_of({"p": definition}, Sel(), NOW)
    assert found.path == path
    assert message in found.message


@pytest.mark.parametrize(
    "definition",
    [
        ParamDefinition(S, "${later}", validator="@NotEmpty"),
        ParamDefinition(S, "$$", validator="param.length() == 1"),
        ParamDefinition(L, "${later}"),
        ParamDefinition(S, secret="s", validator="@NotEmpty"),
        ParamDefinition(M, {"a": ParamDefinition(S, "$x")}, validator="@Size(min=5)"),
        ParamDefinition(L, expression="whatever + 1"),
    ],
)
def test_what_only_a_run_can_tell(definition: ParamDefinition) -> None:
    assert list(problems_of({"p": definition}, Sel(), NOW)) == []


def test_entries_of_loops_are_warned_about() -> None:
    entry = ParamDefinition(ParamType.STRING_ARRAY, ["a", "b"], validator="param!=null && param.size() > 2")
    (found,) = problems_of({"loop_params": ParamDefinition(M, {"j": entry}, validator="@NotEmpty")}, Sel(), NOW)
    assert found.is_warning
    assert found.path == ("loop_params", "j")
