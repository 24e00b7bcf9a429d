"""Definitions become parameters: a value for each, made when its name is used.

A name means, in this order: what has been evaluated here; what the scope around knows; what is defined here and not
evaluated yet. So a step's ``i`` that is defined as ``i + 1`` goes on from the ``i`` around it, and one of two
parameters that use each other's names, the first sees the other's outer value. It is Maestro's order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dalsegno.errors import ParamError, SelError
from dalsegno.model.params import Param, ParamDefinition, ParamDefinitions, ParamMode, Params, ParamSource, ParamType
from dalsegno.model.stored_text import fault_of_value
from dalsegno.spec.params import validators
from dalsegno.spec.params.context import Context, Evaluated, Trace
from dalsegno.spec.params.defaults import RUN_TS, STEP_DEFAULTS, WORKFLOW_DEFAULTS, Default
from dalsegno.spec.params.expressions import Functions
from dalsegno.spec.params.facts import StepFacts
from dalsegno.spec.params.literals import interpolate_all, uses
from dalsegno.spec.params.names import SEPARATOR, advice, splits
from dalsegno.spec.params.secrets import MASK, Mask, texts_of
from dalsegno.spec.params.values import cast, shown, size_of, text_of, type_of

#: All parameters of a step or a run together, in characters; the same as Maestro's.
LARGEST = 750_000
#: How many parameters may wait for each other.
LONGEST_CHAIN = 32
#: Who gives values rather than texts with references.
_GIVEN = frozenset({ParamSource.LAUNCH, ParamSource.RESTART, ParamSource.SUBWORKFLOW})
#: What a step's parameter may call the change table of a table that was captured before: its last word, and which one.
_CHANGE_TABLE = re.compile(r"icdc\.(?P<source>\w+)\.(?P<number>\d{2,4})", re.ASCII)


@dataclass(eq=False)
class Scope:
    """A namespace of parameters, each evaluated when it is first used; cheap to make, and for one thread."""

    definitions: ParamDefinitions
    context: Context
    #: What is known already: stored, handed down, or set by the job.
    known: Params = field(default_factory=dict)
    #: The scope around this one: of an iteration, of the run.
    outer: Scope | None = None
    #: The step that the parameters belong to, if they do to one.
    step: StepFacts | None = None
    #: Paths such as ``shell.script``: texts in which references stay, while their values are given aside.
    raw: frozenset[str] = frozenset()
    references: dict[str, str] = field(default_factory=dict, init=False)
    warnings: list[str] = field(default_factory=list, init=False)
    _params: dict[str, Param] = field(default_factory=dict, init=False)
    _of_others: dict[str, Param | None] = field(default_factory=dict, init=False)
    _under_way: list[str] = field(default_factory=list, init=False)
    _secrets: dict[str, None] = field(default_factory=dict, init=False)
    _size: int = field(default=0, init=False)

    def evaluate(self) -> Evaluated:
        """Everything that is defined here; what is not used and has a default is left out."""
        if self.outer is None:
            self.own(RUN_TS)
        params = {name: self.own(name) for name in self.definitions}
        found = {**self.known, **self._params, **params}
        return Evaluated(found, self.references, tuple(self.secrets()), tuple(self.warnings))

    def with_defaults(self) -> dict[str, Param]:
        """Everything that can be referred to here by its plain name, for showing."""
        around = self.outer.with_defaults() if self.outer is not None else {}
        here = {name: self.own(name) for name in (*self._defaults, *self.known, *self.definitions)}
        return {**around, **here}

    def text(self, literal: str) -> str:
        """A text with the values of the names that it refers to."""
        return str(self._interpolated("", literal, Trace()))

    def is_true(self, condition: str) -> bool:
        """Whether a condition holds."""
        trace = Trace()
        found = self._value(condition, f'The condition "{condition}"', trace)
        try:
            return cast(found, ParamType.BOOLEAN) is True
        except ParamError as neither:
            what = MASK if trace.is_secret else shown(found)
            raise ParamError(f'A condition is true or false; "{condition}" is {what}.') from trace.seen(neither)

    def param(self, name: str) -> Param:
        """The parameter that a reference means; ``ParamError`` if there is none."""
        found = self.find(name) or self._elsewhere(name)
        if found is None:
            user = f", which '{self._under_way[-1]}' refers to" if self._under_way else ""
            known = {*self.definitions, *self.known, *self._defaults, *self._outer_names()}
            hint = advice(name, known, self.step.ancestors if self.step is not None else ())
            raise ParamError(f"There is no parameter '{name}'{self._place}{user}.", hint=hint)
        self._note(found)
        return found

    def find(self, name: str) -> Param | None:
        """The parameter of this plain name."""
        found = self._params.get(name) or self.known.get(name)
        if found is not None:
            return found
        if self.step is not None and name in self._defaults:
            return self.own(name)
        if self.outer is not None and (found := self.outer.find(name)) is not None:
            return found
        return self.own(name) if name in self.definitions or name in self._defaults else None

    def own(self, name: str) -> Param:
        """The parameter that is defined here under this name."""
        found = self._params.get(name) or self.known.get(name)
        if found is None:
            if name in self._under_way:
                cycle = " → ".join([*self._under_way[self._under_way.index(name) :], name])
                raise ParamError(f"Parameters{self._place} refer to each other in a circle: {cycle}.")
            if len(self._under_way) >= LONGEST_CHAIN:
                raise ParamError(
                    f"More than {LONGEST_CHAIN} parameters{self._place} wait for each other, up to '{name}'.",
                    hint="Write those first that others refer to.",
                )
            self._under_way.append(name)
            try:
                found = self._params[name] = self._made(name)
            finally:
                self._under_way.pop()
            # What a secret went into is not stored.
            if not found.is_secret and (fault := fault_of_value(found.value)):
                raise ParamError(f"Parameter '{name}'{self._place} holds {fault}, which cannot be stored.")
            self._size += size_of(found.value)
            self._check_size(self._size)
            self._note(found)
        return found

    def secrets(self) -> Iterator[str]:
        """What must not be seen in any text."""
        if self.outer is not None:
            yield from self.outer.secrets()
        yield from self._secrets

    @property
    def _defaults(self) -> Mapping[str, Default]:
        if self.step is not None:
            return STEP_DEFAULTS
        return WORKFLOW_DEFAULTS if self.outer is None else {}

    @property
    def _raw_prefixes(self) -> set[str]:
        return {path[: path.rfind(".") + 1] for path in self.raw}

    @property
    def _place(self) -> str:
        return f" in step '{self.step.id}'" if self.step is not None else ""

    def _made(self, name: str) -> Param:
        definition = self.definitions.get(name)
        if definition is None:
            default = self._defaults[name]
            trace = Trace()
            value = default.make(lambda other: self._used(other, trace), self.context.run, self.step)
            return Param(default.type, value, default.mode, ParamSource.SYSTEM_DEFAULT, trace.is_secret)
        trace = Trace()
        value = self._evaluated(definition, name, trace)
        if self.step is not None and isinstance(value, str):
            value = self._captured(name, value)
        mode = definition.mode or ParamMode.MUTABLE
        return Param(definition.type, value, mode, definition.source, trace.is_secret)

    def _evaluated(self, definition: ParamDefinition, path: str, trace: Trace) -> Any:
        """The value of a definition, of the type that it says; its validator was content with it."""
        if definition.secret is not None:
            secret = self.context.secret(definition.secret)
            self._secrets[secret] = None
            trace.is_secret = True
            value = self._cast(secret, definition.type, path, trace)
        elif definition.expression is not None:
            found = self._value(definition.expression, f"Parameter '{path}'", trace)
            value = self._cast(found, definition.type, path, trace)
        elif definition.type is ParamType.MAP:
            value = {key: self._evaluated(item, f"{path}.{key}", trace) for key, item in definition.value.items()}
        elif definition.type is ParamType.STRING_MAP and f"{path}." in self._raw_prefixes:
            entries = {key: self._interpolated(f"{path}.{key}", text, trace) for key, text in definition.value.items()}
            value = self._cast(entries, definition.type, path, trace)
        elif path in self.raw and definition.source in _GIVEN:
            # A value is exactly what was given; the author's own text would be code.
            value = self._cast(interpolate_all(definition.value, str), definition.type, path, trace)
        else:
            value = self._cast(self._interpolated(path, definition.value, trace), definition.type, path, trace)
        if definition.validator is not None:
            self._judge(path, definition.validator, Param(definition.type, value, is_secret=trace.is_secret))
        return value

    def _captured(self, name: str, value: str) -> str:
        """The change table that a text such as ``icdc.members.01`` means; any other text as it is.

        Such a name cannot stand in SQL, so it is replaced here, for every type of step, and so handed down.
        """
        named = _CHANGE_TABLE.fullmatch(value)
        if named is None or self.step is None:
            return value
        captured = self.context.lookup.change_tables(self.step.ancestors)
        found = [table for word, table in captured if word == named["source"]]
        number = int(named["number"])
        if not 0 < number <= len(found):
            raise ParamError(
                f"Parameter '{name}'{self._place} is {value!r}, but that was not captured before.",
                hint=_what_is_captured([word for word, _ in captured]),
            )
        table = found[number - 1]
        if table is None:
            raise ParamError(
                f"Parameter '{name}'{self._place} is {value!r}, but the step that captures it has not run."
            )
        return table

    def _judge(self, path: str, rule: str, param: Param) -> None:
        try:
            validators.check(path, rule, param, self.context.expressions, self.context.now)
        except ParamError as broken:
            if not validators.lets_pass(path):
                raise
            self.warnings.append(broken.message)

    def _cast(self, value: Any, to: ParamType, path: str, trace: Trace) -> Any:
        try:
            return cast(value, to)
        except ParamError as mismatch:
            what = f"{MASK} is not a {to}." if trace.is_secret else mismatch.message
            raise ParamError(f"Parameter '{path}'{self._place}: {what}") from trace.seen(mismatch)

    def _interpolated(self, path: str, literal: Any, trace: Trace) -> Any:
        if path not in self.raw:
            return interpolate_all(literal, lambda name: self._inserted(name, trace))
        for reference in uses(literal):
            name = reference.name
            # A name that nobody knows, or the text's own, may be a variable of the shell: the runner will see.
            found = None if name in self._under_way else self.find(name) or self._elsewhere(name)
            if found is not None:
                self._note(found)
                self.references[reference.written] = reference.text(text_of(found.value))
        return literal

    def _value(self, expression: str, what: str, trace: Trace) -> Any:
        """What an expression yields; ``what`` it is of, messages say."""
        expressions = self.context.expressions

        def note(secret: Param) -> None:
            trace.is_secret = True
            self._note(secret)

        functions = Functions(self.context.run, self.step, self.context.lookup, self.find, note)
        try:
            named = {name: self.param(name) for name in expressions.names_of(expression)}
            trace.is_secret = trace.is_secret or any(param.is_secret for param in named.values())
            used = _Used(self, named, trace)
            return expressions.evaluate(expression, used, now=self.context.now, call=functions.call)
        except SelError as failed:
            message = Mask(self.secrets())(failed.message)
            raise ParamError(f"{what}{self._place}: {message}", hint=failed.hint) from trace.seen(failed)

    def _used(self, name: str, trace: Trace) -> Any:
        param = self.param(name)
        trace.is_secret = trace.is_secret or param.is_secret
        return param.value

    def _inserted(self, name: str, trace: Trace) -> str:
        text = text_of(self._used(name, trace))
        trace.size += len(text)
        # Before they are joined: a few references to references make more text than there is memory.
        self._check_size(trace.size)
        return text

    def _check_size(self, size: int) -> None:
        if size > LARGEST:
            raise ParamError(
                f"The parameters{self._place} take more than {LARGEST:,} characters.",
                hint="Put large data into a file or a table, and its name into a parameter.",
            )

    def _note(self, param: Param) -> None:
        if param.is_secret:
            self._secrets.update(dict.fromkeys(texts_of(param)))

    def _elsewhere(self, name: str) -> Param | None:
        """The parameter of another step or of a signal; each is looked up once."""
        if name not in self._of_others:
            self._of_others[name] = self._looked_up(name)
        return self._of_others[name]

    def _looked_up(self, name: str) -> Param | None:
        """``step__name`` or ``step.name``; the first may also be of a signal that began the run."""
        before = self.step.ancestors if self.step is not None else frozenset()
        own = self.step.id if self.step is not None else None
        for step_id, rest in splits(name):
            if step_id == own and (rest in self.definitions or rest in self.known or rest in self._defaults):
                return self.own(rest)
            if step_id in before and (found := self.context.lookup.step_param(step_id, rest)) is not None:
                return found
        signal, separator, rest = name.partition(SEPARATOR)
        if separator and (value := self.context.lookup.signal_param(signal, rest)) is not None:
            return Param(type_of(value), value, ParamMode.IMMUTABLE, ParamSource.SIGNAL)
        return None

    def _outer_names(self) -> Iterator[str]:
        if self.outer is not None:
            yield from (*self.outer.definitions, *self.outer.known, *self.outer._defaults, *self.outer._outer_names())


def _what_is_captured(sources: Sequence[str]) -> str:
    if not sources:
        return "Nothing is: put a step before it that captures, or hand the name down from the workflow that does."
    counts: Counter[str] = Counter()
    names = []
    for source in sources:
        counts[source] += 1
        names.append(f"icdc.{source}.{counts[source]:02}")
    return f"What is captured before it: {', '.join(names)}."


class _Used(Mapping[str, Param]):
    """The parameters that an expression sees: those it names, and all others through ``params``."""

    def __init__(self, scope: Scope, named: Mapping[str, Param], trace: Trace) -> None:
        self._scope = scope
        self._named = named
        self._trace = trace

    def __getitem__(self, name: str) -> Param:
        found = self._named.get(name) or self._scope.find(name) or self._scope._elsewhere(name)
        if found is None:
            raise KeyError(name)
        self._trace.is_secret = self._trace.is_secret or found.is_secret
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._scope.definitions, *self._scope.known, *self._scope._outer_names())))

    def __len__(self) -> int:
        return sum(1 for _ in self)
