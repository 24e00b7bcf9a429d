"""What to do about an error, in the words of the place where it is shown.

The core names actions with arguments. On the command line each is a command. Inside a workflow it is the line to change
in the step: a capture made by hand would stand in the way of the next run.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

_OWNER = ("table", "consumer")
#: What the options of a capture are called in a step, where the names differ.
_IN_STEP = {"mode": "capture_mode", "operation": "data_operations"}

#: True: an option without a value. None: an option to leave out.
Argument = str | bool | tuple[str, ...] | None


class Verb(StrEnum):
    """What can be done; the values are part of the JSON that programs read."""

    ABANDON = "abandon"
    AUDIT = "audit"
    #: With other options than before.
    CAPTURE = "capture"
    CHECK_CATALOGS = "check_catalogs"
    COMMIT = "commit"
    CREATE_TOKEN = "create_token"  # noqa: S105 - a verb, not a secret
    CREATE_PROJECT = "create_project"
    #: Compiled models of a dbt project.
    IMPORT_DBT = "import_dbt"
    LIST_BREAKPOINTS = "list_breakpoints"
    LIST_CAPTURES = "list_captures"
    LIST_CHECKPOINTS = "list_checkpoints"
    LIST_RUNS = "list_runs"
    LIST_TABLES = "list_tables"
    LIST_VERSIONS = "list_versions"
    PLAN = "plan"
    PUSH = "push"
    PUSH_TEMPLATE = "push_template"
    REBUILD_CHECKPOINTS = "rebuild_checkpoints"
    #: Take the whole table again.
    REFRESH = "refresh"
    RESOLVE = "resolve"
    RESTART = "restart"
    #: Show how a SELECT becomes incremental, and prove it.
    REWRITE = "rewrite"
    RUN = "run"
    SET_CHECKPOINT = "set_checkpoint"
    SHOW = "show"
    SHOW_SPARK = "show_spark"
    SHOW_WRITES = "show_writes"
    START_SERVER = "start_server"
    STOP = "stop"
    STOP_SPARK = "stop_spark"
    UNDO = "undo"


#: The command of each verb. A word in capitals is an argument without a name; in brackets, it may be left out.
COMMANDS: Mapping[Verb, str] = {
    Verb.ABANDON: "abandon CAPTURE",
    Verb.AUDIT: "audit WORKFLOW",
    Verb.CAPTURE: "capture TABLE",
    Verb.CHECK_CATALOGS: "catalogs check",
    Verb.COMMIT: "commit CAPTURE",
    Verb.CREATE_TOKEN: "server token",
    Verb.CREATE_PROJECT: "init [FOLDER]",
    Verb.IMPORT_DBT: "import dbt MANIFEST",
    Verb.LIST_BREAKPOINTS: "breakpoints list WORKFLOW",
    Verb.LIST_CAPTURES: "captures",
    Verb.LIST_CHECKPOINTS: "checkpoints",
    Verb.LIST_RUNS: "runs",
    Verb.LIST_TABLES: "catalogs tables [CATALOG]",
    Verb.LIST_VERSIONS: "versions WORKFLOW",
    Verb.PLAN: "plan TABLE",
    Verb.PUSH: "push FILE",
    Verb.PUSH_TEMPLATE: "templates push FILE",
    Verb.REBUILD_CHECKPOINTS: "checkpoints rebuild TABLE",
    Verb.REFRESH: "capture TABLE",
    Verb.RESOLVE: "resolve CAPTURE",
    Verb.RESTART: "restart RUN",
    Verb.REWRITE: "rewrite FILE",
    Verb.RUN: "run WORKFLOW",
    Verb.SET_CHECKPOINT: "checkpoints set TABLE",
    Verb.SHOW: "show RUN",
    Verb.SHOW_SPARK: "spark status",
    Verb.SHOW_WRITES: "writes CAPTURE",
    Verb.START_SERVER: "server",
    Verb.STOP: "stop RUN",
    Verb.STOP_SPARK: "spark stop",
    Verb.UNDO: "undo CAPTURE",
}


@dataclass(frozen=True)
class Action:
    #: What it achieves, as the beginning of a sentence: "To capture it exactly".
    aim: str
    verb: Verb
    #: By name. What is missing, whoever acts fills in.
    arguments: Mapping[str, Argument]


def action(aim: str, verb: Verb, **arguments: Argument) -> Action:
    """An action with its arguments by name; ``from_`` stands for ``from``, which Python keeps for itself."""
    return Action(aim, verb, {name.rstrip("_"): value for name, value in arguments.items()})


def as_commands(actions: Iterable[Action]) -> str | None:
    """A sentence for each action, with the command to type."""
    return _joined(as_sentence(each) for each in actions)


def as_sentence(what: Action) -> str:
    """What an action achieves, and the command to type."""
    return f"{what.aim}: {as_command(what)}"


def in_step(
    actions: Iterable[Action], workflow_id: str, step_id: str, block: str, advice: str | None = None
) -> str | None:
    """The same for whoever runs a workflow: nothing in here counts rows as processed that no run has processed."""
    said: list[str] = []
    for each in actions:
        match each.verb:
            case Verb.CAPTURE if set(each.arguments) - set(_OWNER):
                said.append(f"{each.aim}: {_line(each, step_id, block)}")
            case Verb.REFRESH:
                said.append(as_sentence(action(each.aim, Verb.RUN, workflow=workflow_id, full_refresh=True)))
            case Verb.COMMIT:
                continue
            case _:
                said.append(as_sentence(each))
    return " ".join(filter(None, (advice, _joined(said)))) if said else None


def _joined(sentences: Iterable[str]) -> str | None:
    # Without a full stop at the end: the last command is copied as it stands.
    return ". ".join(sentences) or None


def as_command(what: Action) -> str:
    """The command to type."""
    usage, arguments = COMMANDS[what.verb].split(), dict(what.arguments)
    if what.verb is Verb.REFRESH:
        arguments["from"] = "full"
    words = ["dalsegno"]
    for word in usage:
        if word.islower():
            words.append(word)
        elif (name := word.strip("[]").lower()) in arguments:
            words += _quoted(arguments.pop(name))
        elif not word.startswith("["):
            words.append(word)
    for name, value in arguments.items():
        match value:
            case True:
                words.append(_option(name))
            case str() | tuple():
                words += [f"{_option(name)} {each}" for each in _quoted(value)]
    without = [f", without {_option(name)}" for name, value in arguments.items() if value is None]
    return " ".join(words) + "".join(without)


def _quoted(value: Argument) -> list[str]:
    return [shlex.quote(each) for each in (value if isinstance(value, tuple) else (str(value),))]


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _line(what: Action, step_id: str, block: str) -> str:
    options = {_IN_STEP.get(name, name): value for name, value in what.arguments.items() if name not in _OWNER}
    lines = " and ".join(f"'{name}: {_yaml(value)}'" for name, value in options.items() if value is not None)
    without = "".join(f" and remove {name!r}" for name, value in options.items() if value is None)
    return f"in step {step_id!r} write {lines} under {block}{without}, then push the workflow"


def _yaml(value: Argument) -> str:
    return "true" if value is True else str(value)


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
