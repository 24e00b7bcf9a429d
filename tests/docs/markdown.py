"""Markdown, as far as it can be run: code blocks, and the comments that say how.

<!-- given: NAME -->       bring the lake into a state of tests/docs/givens.py
<!-- file: NAME -->        save the next block under this name
<!-- with: spark -->       run the next block in this process, with `spark` at hand
<!-- with: a spark server -->   steps of the page use the local Spark
<!-- not run: REASON -->   leave the next block alone
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^```(\w*)\s*$")
_COMMENT = re.compile(r"^<!-- ([a-z ]+): (.+) -->$")


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    language: str
    text: str
    #: Of the opening fence, from 1.
    line: int


@dataclass(frozen=True)
class Remark:
    """A comment for the tests."""

    kind: str
    text: str


@dataclass(frozen=True)
class Command:
    """A line after a dollar sign, and what the page says it prints."""

    text: str
    output: str


def pages() -> list[Path]:
    """Every page of the documentation; the examples' own are run with the examples."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def all_pages() -> list[Path]:
    """With those of the examples."""
    return [*pages(), *sorted((ROOT / "examples").rglob("*.md"))]


def parts(text: str) -> Iterator[Block | Remark]:
    """The blocks and remarks of a page, in order."""
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if remark := _COMMENT.match(line):
            yield Remark(remark[1], remark[2])
        elif fence := _FENCE.match(line):
            inside: list[str] = []
            for _, inner in lines:
                if inner == "```":
                    break
                inside.append(inner)
            yield Block(fence[1], "\n".join(inside), number)


def commands(block: Block) -> list[Command]:
    """The commands of a console block; a backslash carries one on to the next line."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith("\\") and not found[-1][1]:
            found[-1] = (f"{found[-1][0][:-1]}{line.strip()}", [])
        else:
            found[-1][1].append(line)
    return [Command(command, "\n".join(output).strip()) for command, output in found]


def prose(text: str) -> str:
    """A page without its code blocks."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def section(text: str, heading: str) -> str:
    """What stands under a heading, up to the next of the same or a higher level; empty if it is not there."""
    level = heading.split(" ", maxsplit=1)[0]
    found = re.search(rf"^{re.escape(heading)}$(.*?)(?=^#{{1,{len(level)}}} |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""
