"""Which signals begin a run together.

A trigger's signals wait until each of the others is there with equal values of the join keys. Of several that would do,
the oldest goes first, so that every signal is part of one join at most, and none waits longer than it must: how many
runs begin follows from what was announced, not from the order or from how often somebody looked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from dalsegno.model.params import ParamDefinition
from dalsegno.model.signals import Signal, Wanted
from dalsegno.plan.signals import fits
from dalsegno.triggers.signal_triggers.model import SignalTrigger

#: Names and keys are what somebody wrote, but not more of it than this.
_LONGEST_NAME = 300


@dataclass(frozen=True)
class Joining:
    """A signal trigger whose matches have values."""

    wanted: Mapping[str, Wanted]
    join_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Join:
    """Signals that begin a run together: one of each, in the order of the trigger."""

    signals: tuple[Signal, ...]


@dataclass(frozen=True)
class Joined:
    """What becomes of signals that wait for each other; those that are not named wait on."""

    #: In the order in which they became complete.
    joins: tuple[Join, ...]
    #: They are not what the trigger wants, whatever else is announced.
    useless: tuple[Signal, ...]


def group_of(joining: Joining, signal: Signal) -> str | None:
    """Only signals of one group join; None: it is not what the trigger wants."""
    wanted = joining.wanted.get(signal.name)
    keys = joining.join_keys.get(signal.name, ())
    if wanted is None or not fits(signal, wanted) or not all(key in signal.params for key in keys):
        return None
    values = "".join(f"{len(text)} {text}" for text in (str(signal.params[key]) for key in keys))
    return sha256(values.encode()).hexdigest()[:32]


def to_join(joining: Joining, waiting: Iterable[Signal]) -> Joined:
    """What to do about signals that were not part of a join yet; of a group either all are given or the oldest."""
    groups: dict[str, dict[str, list[Signal]]] = {}
    useless = []
    for signal in sorted(waiting, key=lambda signal: signal.id):
        group = group_of(joining, signal)
        if group is None:
            useless.append(signal)
        else:
            groups.setdefault(group, {name: [] for name in joining.wanted})[signal.name].append(signal)
    joins = [Join(signals) for group in groups.values() for signals in zip(*group.values(), strict=False)]
    return Joined(tuple(sorted(joins, key=_complete_with)), tuple(useless))


def _complete_with(join: Join) -> int:
    return max(signal.id for signal in join.signals)


# Names.


def named_triggers(triggers: Sequence[SignalTrigger]) -> dict[str, SignalTrigger]:
    """Each by what it waits for: in another version of the workflow, the same name is the same trigger."""
    found: dict[str, SignalTrigger] = {}
    for trigger in triggers:
        name, count = _name_of(trigger), 1
        while name in found:
            count += 1
            name = f"{_name_of(trigger)} #{count}"
        found[name] = trigger
    return found


def _name_of(trigger: SignalTrigger) -> str:
    parts = []
    for name, dependency in sorted(trigger.definitions.items()):
        matches = [f"{key} {each.operator} {_said(each.param)}" for key, each in sorted(dependency.match.items())]
        details = [*matches, *trigger.join_keys.get(name, ())]
        parts.append(f"{name} ({', '.join(details)})" if details else name)
    return _cut(" + ".join(parts))


def _said(param: ParamDefinition) -> str:
    return repr(param.value) if param.expression is None else f"({param.expression})"


def key_of_join(workflow_id: str, trigger: str, join: Join) -> str:
    """The idempotency key of the run that the signals begin."""
    return f"{workflow_id}/{_digest(trigger)}/signals {'+'.join(str(signal.id) for signal in join.signals)}"


def key_of_value(workflow_id: str, value: str) -> str:
    """The same where triggers say which joins are to begin one run only, whichever of the workflow's triggers does."""
    return f"{workflow_id}/once {_cut(value)}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}… {_digest(text)}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]
