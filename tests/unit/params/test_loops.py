"""Which values each iteration has."""

from __future__ import annotations

from itertools import product

import pytest

from dalsegno.errors import ParamError
from dalsegno.model.params import Param, ParamMode, ParamSource, ParamType
from dalsegno.spec.params.loops import first_loop_params, iteration_count, iteration_params, next_loop_params


def loop(**values: object) -> Param:
    return Param(ParamType.MAP, dict(values))


def test_the_first_changes_fastest() -> None:
    params = loop(i=[1, 2, 3], j=["a", "b"])
    assert iteration_count(params) == 6
    found = [iteration_params(params, index) for index in range(6)]
    assert [(each["i"].value, each["j"].value) for each in found] == [(i, j) for j, i in product("ab", (1, 2, 3))]
    assert [each["loop_index"].value for each in found] == list(range(6))
    assert (found[0]["i"].type, found[0]["j"].type) == (ParamType.LONG, ParamType.STRING)
    assert found[0]["i"].source is ParamSource.FOREACH
    assert found[0]["loop_index"].mode is ParamMode.CONSTANT


def test_an_empty_list_is_no_iteration() -> None:
    assert iteration_count(loop(i=[1, 2], j=[])) == 0
    with pytest.raises(IndexError):
        iteration_params(loop(i=[1, 2], j=[]), 0)


def test_bounds() -> None:
    with pytest.raises(IndexError):
        iteration_params(loop(i=[1]), 1)
    with pytest.raises(IndexError):
        iteration_params(loop(i=[1]), -1)
    with pytest.raises(ParamError, match=r"at most 25,000 iterations; its loop_params make 40,000"):
        iteration_count(loop(i=[0] * 200, j=[0] * 200))


@pytest.mark.parametrize("params", [loop(), loop(i=5), Param(ParamType.STRING, "x")])
def test_what_is_no_loop(params: Param) -> None:
    with pytest.raises(ParamError):
        iteration_count(params)


def test_secrets_stay_secret() -> None:
    secret = Param(ParamType.MAP, {"token": ["a", "b"]}, is_secret=True)
    assert iteration_params(secret, 1)["token"] == Param(
        ParamType.STRING, "b", source=ParamSource.FOREACH, is_secret=True
    )


def test_a_while_goes_on_from_its_steps() -> None:
    first = first_loop_params(loop(i=20200101, label="x"))
    following = next_loop_params(
        first,
        [
            {"i": Param(ParamType.LONG, 20200102), "other": Param(ParamType.LONG, 1)},
            {"i": Param(ParamType.STRING, "20200103")},
        ],
    )
    assert (following["i"].value, following["label"].value, following["loop_index"].value) == (20200103, "x", 1)
    assert set(following) == {"i", "label", "loop_index"}


def test_a_while_has_single_values() -> None:
    with pytest.raises(ParamError, match="single values; 'i' is"):
        first_loop_params(loop(i=[1]))
    with pytest.raises(ParamError, match="Loop parameter 'i' is a LONG: 'x' is not a LONG"):
        next_loop_params(first_loop_params(loop(i=1)), [{"i": Param(ParamType.STRING, "x")}])
