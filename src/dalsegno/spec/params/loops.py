"""The parameters of loops: which values each iteration has.

A foreach goes through all combinations of its ``loop_params``, of which the first changes fastest. A combination is
worked out from its number, so that a loop of any size costs nothing before its iterations run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from dalsegno.errors import ParamError
from dalsegno.model.params import Param, ParamMode, Params, ParamSource, ParamType, Value
from dalsegno.spec.params.secrets import MASK
from dalsegno.spec.params.values import cast, shown, type_of

MOST_ITERATIONS = 25_000
LOOP_PARAMS = "loop_params"
LOOP_INDEX = "loop_index"


def iteration_count(loop_params: Param) -> int:
    """How many combinations there are; none if a list is empty."""
    count = math.prod(len(values) for values in _lists(loop_params).values())
    if count > MOST_ITERATIONS:
        raise ParamError(
            f"A foreach has at most {MOST_ITERATIONS:,} iterations; its loop_params make {count:,}.",
            hint="Split the loop, or nest one in another.",
        )
    return count


def iteration_params(loop_params: Param, index: int) -> dict[str, Param]:
    """The parameters of one iteration, counted from 0."""
    lists = _lists(loop_params)
    if not 0 <= index < math.prod(map(len, lists.values())):
        raise IndexError(index)
    found = {LOOP_INDEX: _index(index, ParamSource.FOREACH)}
    rest = index
    for name, values in lists.items():
        rest, at = divmod(rest, len(values))
        found[name] = _loop_param(values[at], ParamSource.FOREACH, is_secret=loop_params.is_secret)
    return found


def first_loop_params(loop_params: Param) -> dict[str, Param]:
    """The parameters of the first iteration of a while."""
    entries = _entries(loop_params)
    found = {LOOP_INDEX: _index(0, ParamSource.WHILE)}
    for name, value in entries.items():
        if isinstance(value, list | Mapping):
            raise ParamError(
                f"The loop_params of a while are single values; '{name}' is {shown(value)}.",
                hint="Use a foreach to go through a list.",
            )
        found[name] = _loop_param(value, ParamSource.WHILE, is_secret=loop_params.is_secret)
    return found


def next_loop_params(current: Params, steps: Iterable[Params]) -> dict[str, Param]:
    """The parameters of a while's next iteration: what its steps, in their order, made of those of the same name."""
    found = dict(current)
    for params in steps:
        for name in current.keys() & params.keys() - {LOOP_INDEX}:
            of_loop, of_step = current[name], params[name]
            try:
                value = cast(of_step.value, of_loop.type)
            except ParamError as mismatch:
                what = f"{MASK} is not a {of_loop.type}." if of_step.is_secret else mismatch.message
                cause = None if of_step.is_secret else mismatch
                raise ParamError(f"Loop parameter '{name}' is a {of_loop.type}: {what}") from cause
            is_secret = of_loop.is_secret or of_step.is_secret
            found[name] = Param(of_loop.type, value, of_loop.mode, ParamSource.WHILE, is_secret)
    index = current[LOOP_INDEX].value
    found[LOOP_INDEX] = _index(int(str(index)) + 1, ParamSource.WHILE)
    return found


def _lists(loop_params: Param) -> dict[str, list[Any]]:
    lists = {}
    for name, values in _entries(loop_params).items():
        if not isinstance(values, list):
            raise ParamError(f"The loop_params of a foreach are lists; '{name}' is {shown(values)}.")
        lists[name] = values
    return lists


def _entries(loop_params: Param) -> Mapping[str, Any]:
    if not isinstance(loop_params.value, Mapping) or not loop_params.value:
        raise ParamError(f"A loop needs loop_params, a map of at least one entry; found {shown(loop_params.value)}.")
    return loop_params.value


def _loop_param(value: Value, source: ParamSource, *, is_secret: bool) -> Param:
    return Param(type_of(value), value, ParamMode.MUTABLE, source, is_secret)


def _index(index: int, source: ParamSource) -> Param:
    return Param(ParamType.LONG, index, ParamMode.CONSTANT, source)
