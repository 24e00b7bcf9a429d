"""What a step waits for and announces, as values. Nothing is stored here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dalsegno.engine.records import Claim
from dalsegno.errors import ParamError
from dalsegno.model.params import ParamDefinitions, ParamType
from dalsegno.model.signals import Announcement, Match, SignalValue, Wanted, WantedSignal
from dalsegno.model.workflow import SignalDependency
from dalsegno.spec.names import fault_of_name, fault_of_param_name
from dalsegno.spec.params.evaluation import Scope
from dalsegno.spec.params.values import type_of
from dalsegno.store import Store, signals


def wanted_signals(store: Store, claim: Claim, scope: Scope) -> tuple[WantedSignal, ...]:
    """What a step waits for, and the newest signals of that kind there are by now."""
    wanted = [wanted_by(dependency, scope) for dependency in claim.step.signal_dependencies]
    with store.database.reading() as connection:
        return tuple(signals.look_for(connection, each) for each in wanted)


def wanted_by(dependency: SignalDependency, scope: Scope) -> Wanted:
    values = values_of(dependency.name, {name: each.param for name, each in dependency.match.items()}, scope)
    match = {name: Match(each.operator, values[name]) for name, each in dependency.match.items()}
    return Wanted(dependency.name, match)


def announced(
    claim: Claim, scope: Scope, emitted_signals: Sequence[Mapping[str, Any]] = ()
) -> tuple[Announcement, ...]:
    """What a step announces when it has succeeded, with what its job emitted; an attempt announces each once."""
    attempt = f"{claim.flow.id}/{claim.step.id}/{claim.state.attempt}"
    source = {
        "workflow_id": claim.run.workflow_id,
        "run": claim.run.row["number"],
        "step": claim.step.id,
        "attempt": claim.state.attempt,
    }
    found = [
        (output.name, values_of(output.name, output.params, scope), output.payload)
        for output in claim.step.signal_outputs
    ]
    found += [(*_told(each), {}) for each in emitted_signals]
    return tuple(
        Announcement(name, params, payload, f"{attempt}/{number}", source)
        for number, (name, params, payload) in enumerate(found)
    )


def _told(output: Mapping[str, Any]) -> tuple[str, dict[str, SignalValue]]:
    """A signal that a job announces: its name, and values beside it."""
    name = output.get("name")
    if not isinstance(name, str) or fault_of_name(name):
        raise ParamError(f"The job announces a signal without a proper name: {output!r:.80}.")
    params = {key: value for key, value in output.items() if key != "name"}
    for key, value in params.items():
        if fault_of_param_name(key) or type_of(value) not in (ParamType.STRING, ParamType.LONG):
            raise ParamError(f"The job announces {name!r} with {key}={value!r:.80}: expected a text or a whole number.")
    return name, params


def values_of(signal: str, definitions: ParamDefinitions, scope: Scope) -> dict[str, SignalValue]:
    """The values of a signal's parameters, whose definitions see what the scope sees."""
    inner = Scope(definitions, scope.context, {}, scope, scope.step)
    found: dict[str, SignalValue] = {}
    for name in definitions:
        param = inner.own(name)
        if param.is_secret:
            raise ParamError(f"The parameter {name!r} of the signal {signal!r} holds a secret, and signals are stored.")
        if isinstance(param.value, str | int):
            found[name] = param.value
    return found
