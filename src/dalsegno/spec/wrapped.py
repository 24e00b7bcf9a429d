"""Conditions of a ``dag:`` that were wrapped over several lines, as slides and narrow editors do it.

YAML allows no key of several lines, so what is meant here could not be read at all::

    - check_status:
        IF params.getFromStep('normal_workflow',
        'MAESTRO_STEP_STATUS') == 'COMPLETED_WITH_ERROR': recovery -> re_run ->
        end
        OTHERWISE: end

Each wrapped condition becomes one line, followed by as many empty ones, so that the lines below keep their numbers.
"""

from __future__ import annotations

import re

_BEGINS = re.compile(r"^(?P<indent> +)(?:- )?IF\s", re.IGNORECASE)
_STATEMENT = re.compile(r"^\s*(?:- )?(IF|OTHERWISE)\b", re.IGNORECASE)
_ENDS = re.compile(r":(\s|$)")


def unwrapped(text: str) -> str:
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        begun = _BEGINS.match(lines[number])
        if begun:
            _join(lines, number, len(begun["indent"]))
        number += 1
    return "\n".join(lines)


def _join(lines: list[str], number: int, indent: int) -> None:
    """Take the lines that follow into this one, until it is a whole statement."""
    joined = lines[number].rstrip()
    following = number + 1
    while following < len(lines):
        line = lines[following]
        is_whole = bool(_ENDS.search(joined)) and not joined.endswith(("->", ":"))
        if is_whole or not line.strip() or len(line) - len(line.lstrip()) < indent or _STATEMENT.match(line):
            break
        joined = f"{joined} {line.strip()}"
        lines[following] = ""
        following += 1
    lines[number] = joined
