"""What is wrong with the block of a step, such as ``shell: {scirpt: …}``, as far as it can be known before a run.

A block, a field or a value that a run decides about is not judged: one with a reference, an expression or a secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dalsegno.model.params import ParamDefinition, ParamDefinitions
from dalsegno.model.workflow import JobStep, Step
from dalsegno.spec.blocks import Block, BlockField, Kind
from dalsegno.spec.lookalikes import OF_JOB, STEP_FIELDS
from dalsegno.spec.nodes import NOWHERE, SourceLocation
from dalsegno.spec.problems import Problems, meant
from dalsegno.spec.step_types import block_of, fields_of

Marks = Mapping[tuple[str, ...], SourceLocation]
#: How much of a value a message shows.
_SHOWN = 60


def check_step(step: Step, marks: Marks, problems: Problems) -> None:
    if isinstance(step, JobStep):
        check_params(step.type, step.id, step.params, marks, problems)


def check_params(step_type: str, owner: str, params: ParamDefinitions, marks: Marks, problems: Problems) -> None:
    """Those of a step, or of a job template, whose ``owner`` is empty."""
    name = block_of(step_type)
    known, block = fields_of(name or ""), params.get(name or "")
    if name is None or known is None or block is None or not is_decided(block):
        return
    checker = _Checker(owner, marks, problems)
    if not isinstance(block.value, Mapping):
        mark = marks.get(("param", owner, name), NOWHERE)
        hint = f"known are {', '.join(sorted(known))}"
        problems.add(f"{name!r} must hold fields, found {_shown(block.value)}", mark, checker.path(name), hint)
        return
    checker.check((name,), block.value, known, is_open=_has_mode(block))


class _Checker:
    def __init__(self, owner: str, marks: Marks, problems: Problems) -> None:
        self._owner = owner
        self._marks = marks
        self._problems = problems

    def path(self, *names: str) -> str:
        return ".".join([*([self._owner] if self._owner else []), *names])

    def check(self, at: tuple[str, ...], values: Mapping[str, Any], known: Block, *, is_open: bool) -> None:
        """``is_open``: whoever starts a run may replace the values."""
        for name, given in values.items():
            place = (*at, name)
            if name in known:
                if is_decided(given):
                    self._check_value(place, given, known[name], is_open=is_open or _has_mode(given))
            elif "$" not in name:
                self._add(f"{'.'.join(at)} has no field {name!r}", "key", place, _meant(name, at, known))

    def _check_value(self, at: tuple[str, ...], given: Any, declared: BlockField, *, is_open: bool) -> None:
        value = given.value if isinstance(given, ParamDefinition) else given
        if declared.fields and isinstance(value, Mapping):
            self.check(at, value, declared.fields, is_open=is_open)
        elif is_open:
            return
        elif declared.fields:
            self._wrong(at, value, f"a mapping with any of {', '.join(sorted(declared.fields))}")
        elif declared.words:
            for item in value if isinstance(value, list) else [value]:
                if not _is_one_of(item, declared):
                    near = meant(str(item), declared.words)
                    self._wrong(at, item, f"one of {', '.join(declared.words)}", near)
        elif declared.kind is Kind.FLAG and str(value).lower() not in ("true", "false"):
            self._wrong(at, value, "true or false")
        elif declared.kind is Kind.SECONDS and not _is_above_0(value):
            self._wrong(at, value, "a number of seconds above 0")
        elif declared.kind is Kind.COUNT and not _is_count(value):
            self._wrong(at, value, "a whole number above 0")

    def _wrong(self, at: tuple[str, ...], value: Any, expected: str, near: str | None = None) -> None:
        self._add(f"{'.'.join(at)} cannot be {_shown(value)}", "field", at, near or f"expected {expected}")

    def _add(self, message: str, kind: str, at: tuple[str, ...], hint: str | None) -> None:
        block = self._marks.get(("param", self._owner, at[0]), NOWHERE)
        mark = self._marks.get((kind, self._owner, *at), block)
        self._problems.add(message, mark, self.path(*at), hint)


def is_decided(given: Any) -> bool:
    """Whether no run decides about the value."""
    if isinstance(given, ParamDefinition):
        if given.expression is not None or given.secret is not None or given.value is None:
            return False
        return isinstance(given.value, Mapping) or is_decided(given.value)
    return not any("$" in text for text in _texts(given))


def _texts(value: Any) -> Iterator[str]:
    for item in value if isinstance(value, list | tuple) else [value]:
        if isinstance(item, str):
            yield item


def _has_mode(given: Any) -> bool:
    return isinstance(given, ParamDefinition) and given.mode is not None


def _meant(name: str, at: tuple[str, ...], known: Block) -> str:
    if name in STEP_FIELDS:
        return f"{name!r} is a field of the step: move it out of {at[0]!r}"
    if name in OF_JOB:
        return f"did you mean {OF_JOB[name]}, in the step?"
    return meant(name, known) or meant(name, STEP_FIELDS, cutoff=0.8) or f"known are {', '.join(sorted(known))}"


def _is_one_of(item: Any, declared: BlockField) -> bool:
    text = str(item)
    return text in declared.words or (
        not declared.is_exact and text.lower() in [word.lower() for word in declared.words]
    )


def _is_above_0(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _is_count(value: Any) -> bool:
    text = "" if isinstance(value, bool) else str(value)
    return text.isdecimal() and int(text) > 0


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
