"""The core names actions; only the command line knows commands and flags."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from dalsegno.cli.app import app
from dalsegno.hints import COMMANDS, Verb

SOURCE = Path(__file__).parents[2] / "src" / "dalsegno"

#: Options of other programs, and the one view that a trigger gives the command line.
EXCEPTIONS = {
    "operations/backup.py": "pg_dump",
    "operations/dbt/importing.py": "dbt",
    "operations/dbt/manifest.py": "dbt",
    "operations/projects.py": "the README of a new project",
    "spark/java.py": "java",
    "spark/keeper.py": "spark-submit",
    "spark/submit.py": "spark-submit",
    "spec/pasted_code.py": "options of interpreters that are recognised",
    "steps/container.py": "docker",
    "steps/notebook.py": "papermill",
    "steps/notebook_job.py": "papermill",
    "store/migrations/__init__.py": "pip",
    "triggers/table_triggers/cli.py": "lines of the command line",
}

ROOT = typer.main.get_command(app)


def test_the_core_does_not_speak_of_commands() -> None:
    assert isinstance(ROOT, TyperGroup)
    speaks = re.compile(rf"(?<!from )\bdalsegno ({'|'.join(map(re.escape, ROOT.commands))})\b|(?<![\w-])--[a-z]")
    found = {name: texts for name, tree in _core() if (texts := [text for text in _texts(tree) if speaks.search(text)])}
    assert set(found) == set(EXCEPTIONS), found


@pytest.mark.parametrize("verb", Verb)
def test_every_verb_has_a_command(verb: Verb) -> None:
    arguments = [each for each in _command(verb).params if each.param_type_name == "argument"]
    typed = [word for word in COMMANDS[verb].split() if not word.islower()]
    needed = [word for word in typed if not word.startswith("[")]
    assert len(needed) == len([each for each in arguments if each.required])
    assert len(typed) <= len(arguments)


def test_actions_name_options_that_there_are() -> None:
    """What a hint says can be typed."""
    seen = 0
    for name, tree in _core():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "action":
                verb = Verb[node.args[1].attr] if isinstance(node.args[1], ast.Attribute) else pytest.fail(name)
                given = {each.arg.rstrip("_").replace("_", "-") for each in node.keywords if each.arg}
                typed = {word.strip("[]").lower() for word in COMMANDS[verb].split() if not word.islower()}
                command = _command(verb)
                options = {word for each in command.params for word in (*each.opts, *each.secondary_opts)}
                assert {f"--{each}" for each in given - typed} <= options, (name, node.lineno)
                seen += 1
    # A helper of another name would leave nothing to look at.
    assert seen > 50


def _command(verb: Verb) -> Any:
    found: Any = ROOT
    for word in COMMANDS[verb].split():
        if word.islower():
            assert isinstance(found, TyperGroup), verb
            found = found.commands[word]
    return found


def _core() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(SOURCE.rglob("*.py")):
        name = file.relative_to(SOURCE).as_posix()
        if not name.startswith("cli/") and name != "hints.py":
            yield name, ast.parse(file.read_text())


def _texts(tree: ast.Module) -> Iterator[str]:
    """Every text but docstrings."""
    documenting = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documenting:
            yield node.value
