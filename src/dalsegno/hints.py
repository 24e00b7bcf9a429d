"""What to do about an error, in the words of the place where it is shown.

The core names actions with arguments. On the command line each is a command. Inside a workflow it is the line to change
in the step: a capture made by hand would stand in the way of the next run.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

_WHOSE = ("table", "consumer")
#: What the options of a capture are called in a step, where the names differ.
_IN_STEP = {"mode": "capture_mode", "operation": "data_operations"}


class Verb(StrEnum):
    #: With other options than before.
    CAPTURE = "capture"
    #: Take the whole table again.
    REFRESH = "refresh"
    ABANDON = "abandon"
    COMMIT = "commit"
    SET_CHECKPOINT = "set_checkpoint"


@dataclass(frozen=True)
class Action:
    #: What it achieves, as the beginning of a sentence: "To capture it exactly".
    aim: str
    verb: Verb
    #: None: an option to leave out.
    arguments: Mapping[str, str | None]


def as_commands(actions: Iterable[Action]) -> str | None:
    """A sentence for each action, with the command to type."""
    return _sentences((action.aim, _command(action)) for action in actions)


def in_step(actions: Iterable[Action], workflow_id: str, step_id: str, block: str) -> str | None:
    """The same for whoever runs a workflow: nothing in here counts rows as processed that no run has processed."""
    told: list[tuple[str, str]] = []
    for action in actions:
        match action.verb:
            case Verb.CAPTURE:
                told.append((action.aim, _line(action, step_id, block)))
            case Verb.REFRESH:
                told.append((action.aim, f"dalsegno run {workflow_id} --full-refresh"))
            case Verb.ABANDON | Verb.SET_CHECKPOINT:
                told.append((action.aim, _command(action)))
            case Verb.COMMIT:
                continue
    return _sentences(told)


def _sentences(told: Iterable[tuple[str, str]]) -> str | None:
    return " ".join(f"{aim}: {what}." for aim, what in told) or None


def _command(action: Action) -> str:
    words = {name: shlex.quote(value) for name, value in action.arguments.items() if value is not None}
    match action.verb:
        case Verb.ABANDON | Verb.COMMIT:
            return f"dalsegno {action.verb} {words['capture']}"
        case Verb.SET_CHECKPOINT:
            command = "checkpoints set"
        case Verb.CAPTURE:
            command = "capture"
        case Verb.REFRESH:
            command = "capture"
            words["from"] = "full"
    options = [f"--{name} {value}" for name, value in words.items() if name != "table"]
    without = [f", without --{name}" for name, value in action.arguments.items() if value is None]
    return " ".join([f"dalsegno {command} {words['table']}", *options]) + "".join(without)


def _line(action: Action, step_id: str, block: str) -> str:
    options = {_IN_STEP.get(name, name): value for name, value in action.arguments.items() if name not in _WHOSE}
    lines = " and ".join(f"'{name}: {value}'" for name, value in options.items() if value is not None)
    without = "".join(f" and remove {name!r}" for name, value in options.items() if value is None)
    return f"in step {step_id!r} write {lines} under {block}{without}, then push the workflow"


def closest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that is most like this one; None if none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - only mistakes need it

    found = get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return found[0] if found else None


def did_you_mean(name: str, known: Collection[str], otherwise: str | None = None) -> str:
    """A hint that names the closest one; if none is near it lists all, or says something else."""
    near = closest(name, known)
    if near is not None:
        return f"Did you mean {near!r}?"
    return otherwise or f"Known are: {', '.join(sorted(known))}."
