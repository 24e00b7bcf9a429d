"""Colours come from us alone, and only where they can be shown."""

from __future__ import annotations

import io
from typing import TextIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalsegno.cli import colours
from dalsegno.cli.tables import cut, width
from dalsegno.cli.terminal import Terminal


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "on_terminal", "in_pipe"),
    [
        ({}, True, False),
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"CLICOLOR_FORCE": "1", "TERM": "dumb"}, True, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_where_there_are_colours(environment: dict[str, str], on_terminal: bool, in_pipe: bool) -> None:
    assert colours.are_wanted(Screen(), environment) is on_terminal
    assert colours.are_wanted(io.StringIO(), environment) is in_pipe


def test_a_pipe_gets_plain_text() -> None:
    assert colours.paint("FAILED", "red", stream=io.StringIO()) == "FAILED"


@given(st.text(max_size=30))
def test_a_name_can_colour_nothing(name: str) -> None:
    screen = Screen()
    stream = cast(TextIO, Terminal(screen, has_colours=True))
    stream.write(f"{colours.paint('x', 'red', stream=stream)} {name}\x1b[31m")
    shown = screen.getvalue()
    assert shown.startswith("\x1b[31mx\x1b[0m ")
    assert shown.count("\x1b") == 2
    assert shown.endswith("\\u001b[31m")


@given(st.text(st.characters(codec="utf-8", categories=("L", "N")), max_size=12), st.integers(1, 8))
def test_painted_text_is_cut_as_if_it_were_plain(text: str, most: int) -> None:
    stream = cast(TextIO, Terminal(Screen(), has_colours=True))
    painted = colours.paint(text, "green", stream=stream)
    assert width(painted) == width(text)
    assert colours.plain(cut(painted, most)) == cut(text, most)
    assert not text or cut(painted, most).endswith(colours.RESET), "what follows is not coloured, too"
