"""Scenarios, each made by its number: a form of statements, what wraps it, a fault, and what people do about it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from tests.exact.actions import ACTIONS, Action
from tests.exact.faults import FAULTS, Fault
from tests.exact.forms import FORMS, Form, can_be_joined, joined
from tests.exact.wrappings import WRAPPINGS, Wrapping

#: Of so many scenarios in which Spark would be killed, one is told: a new one takes ten seconds to start.
_SPARK_KILLED_IN = 12
#: How many scripts have the statements of two forms, and how many scenarios a second fault.
_JOINED, _TWICE = 0.25, 0.3
_IN_PROCESS = [
    each
    for each in FAULTS
    if each.moment in ("before", "after") and not (each.kills_worker or each.kills_spark or each.is_retried)
]


@dataclass(frozen=True)
class Scenario:
    number: int
    #: What the numbers were dealt for; ``script`` may have more.
    form: Form
    wrapping: Wrapping
    fault: Fault
    action: Action
    chance: random.Random
    script: Form
    #: What goes wrong once more, while people try to go on.
    second_fault: Fault | None = None

    def __str__(self) -> str:
        again = f", then {self.second_fault.name}" if self.second_fault else ""
        faults = f"{self.fault.name}{again}"
        return f"{self.number}: {self.script.name} / {self.wrapping.name} / {faults} / {self.action.name}"


@cache
def _triples(is_rest: bool) -> Sequence[tuple[int, int, int]]:
    """Every form with every fault and action, in an order that is random and always the same."""
    chance = random.Random(14)
    found = [
        (form, fault, action)
        for form in range(len(FORMS))
        for fault, each in enumerate(FAULTS)
        for action in range(len(ACTIONS))
        if bool(each.commit) == is_rest and (not each.kills_spark or chance.randrange(_SPARK_KILLED_IN) == 0)
    ]
    chance.shuffle(found)
    return found


def scenario(number: int, *, is_rest: bool = False) -> Scenario:
    """The scenario of this number; ``is_rest``: one of those in which a REST catalog does odd things."""
    triples = _triples(is_rest)
    form, fault, action = triples[(number - 1) % len(triples)]
    chance = random.Random(number)
    script, more = FORMS[form], chance.choice(FORMS)
    if chance.random() < _JOINED and can_be_joined(script, more):
        script = joined(script, more)
    fitting = [each for each in WRAPPINGS if script.is_rowwise or not each.is_rowwise]
    again = chance.choice(_IN_PROCESS) if chance.random() < _TWICE else None
    return Scenario(number, FORMS[form], chance.choice(fitting), FAULTS[fault], ACTIONS[action], chance, script, again)


def directed(number: int, form: str, wrapping: str, fault: str, action: str) -> Scenario:
    """A scenario of these parts; its chances are those of the number."""
    return Scenario(
        number,
        next(each for each in FORMS if each.name == form),
        next(each for each in WRAPPINGS if each.name == wrapping),
        next(each for each in FAULTS if each.name == fault),
        next(each for each in ACTIONS if each.name == action),
        random.Random(number),
        next(each for each in FORMS if each.name == form),
    )
