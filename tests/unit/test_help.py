"""``--help`` says what every command does, in one style; and every command that prints something prints JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from dalsegno.cli.app import app
from dalsegno.cli.help_groups import GROUPS

ROOT: Any = typer.main.get_command(app)
#: What prints no result: a log (--log-format json), a script for a shell, and what is JSON already.
WITHOUT_JSON = {"server", "completion", "schema"}
#: What a terminal of 80 columns has left for a description.
ROOM = 61


def all_commands(command: Any = ROOT, name: str = "") -> Iterator[tuple[str, Any]]:
    if hasattr(command, "commands"):
        for word, inner in command.commands.items():
            yield from all_commands(inner, f"{name} {word}".strip())
        if not command.invoke_without_command or not name:
            return
    yield name, command


COMMANDS = [pytest.param(*each, id=each[0]) for each in all_commands()]


def test_every_command_is_in_one_group() -> None:
    listed = Counter(name for names in GROUPS.values() for name in names)
    assert set(listed) == set(ROOT.commands)
    assert set(listed.values()) == {1}


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_json(name: str, command: Any) -> None:
    options = {word for parameter in command.params for word in parameter.opts}
    assert ("--json" in options) is (name not in WITHOUT_JSON)


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_descriptions(name: str, command: Any) -> None:
    first = command.help.splitlines()[0]
    assert first[0].isupper() and first.endswith(".")
    assert not command.get_short_help_str(ROOM).endswith("..."), "it must fit 80 columns"
    for parameter in command.params:
        said = parameter.help or ""
        assert said.endswith("."), (name, parameter.name, said)
        starts = said[0].isupper() or said.split()[0].strip(".,;:").isidentifier() or said[0] in "-/"
        assert starts or said.startswith("namespace."), (name, parameter.name, said)


def test_headings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        app(["--help"], prog_name="dalsegno")
    lines = capsys.readouterr().out.splitlines()
    assert [line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")] == [
        "Options",
        *GROUPS,
    ]
    assert "  capture      Create a change table of what is new for a consumer." in lines
