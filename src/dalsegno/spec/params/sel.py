"""Expressions of parameters in SEL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from dalsegno.errors import ParamError, SelError
from dalsegno.model.params import Param, ParamType
from dalsegno.sel import PARAMETER_TYPES, Budget, Limits, Program, Type, Value, evaluate, parse
from dalsegno.sel.names import variables_of
from dalsegno.spec.params.expressions import Call
from dalsegno.spec.params.values import type_of

#: The same expression is evaluated in each iteration of a loop.
_REMEMBERED = 4096
_TYPES = {type_: Type(type_.value) for type_ in ParamType}


@dataclass(frozen=True)
class Sel:
    """SEL as the ``Expressions`` of parameters."""

    limits: Limits = field(default_factory=Limits)
    #: What all expressions may use together; None: each has a budget of its own.
    budget: Budget | None = None

    def metered(self) -> Sel:
        return replace(self, budget=Budget(self.limits))

    def names_of(self, expression: str) -> frozenset[str]:
        return _parsed(expression, self.limits)[1]

    def evaluate(self, expression: str, params: Mapping[str, Param], *, now: datetime, call: Call) -> Any:
        program, _ = _parsed(expression, self.limits)
        found = evaluate(
            program, _Values(params), now=now, extension=_Extension(call), limits=self.limits, budget=self.budget
        )
        if found.type not in PARAMETER_TYPES or found.value is None:
            raise SelError(
                f'"{expression}" yields {found.type if found.value is not None else "nothing"}, '
                "which no parameter can be.",
                hint="End with a text, a number, a boolean, or an array or map of those: return value;",
            )
        return found.value


@lru_cache(maxsize=_REMEMBERED)
def _parsed(expression: str, limits: Limits) -> tuple[Program, frozenset[str]]:
    program = parse(expression, limits)
    return program, variables_of(program)


@dataclass(frozen=True)
class _Extension:
    reach: Call

    def call(self, method: str, arguments: tuple[str, ...]) -> Value:
        try:
            found = self.reach(method, arguments)
        except ParamError as problem:
            raise LookupError(str(problem)) from problem
        return Value(_TYPES[type_of(found)], found)


class _Values(Mapping[str, Value]):
    """Parameters as SEL's own values, made when they are used."""

    def __init__(self, params: Mapping[str, Param]) -> None:
        self._params = params

    def __getitem__(self, name: str) -> Value:
        param = self._params[name]
        return Value(_TYPES[param.type], param.value)

    def __contains__(self, name: object) -> bool:
        return name in self._params

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __len__(self) -> int:
        return len(self._params)
