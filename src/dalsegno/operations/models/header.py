"""The header of a model: comments ``-- word: value`` above its SELECT."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dalsegno.hints import did_you_mean
from dalsegno.operations.models.schedules import trigger_of
from dalsegno.spec.nodes import SourceLocation
from dalsegno.spec.problems import Problems
from dalsegno.spec.step_types import STEP_TYPES

#: A comment with more words before its colon is a sentence.
_SETTING = re.compile(r"--[ \t]*(?P<word>[A-Za-z]+(?:[ _][A-Za-z]+)?)[ \t]*:(?P<value>.*)")
_COMMA = re.compile(r",(?![^()]*\))")
#: What a workflow has beside its one step.
_OF_WORKFLOW = ("schedule", "workflow", "owner", "tags", "description")
_LISTS = frozenset({"tags", "keys", "partitioned_by", "deterministic"})
#: Lists of things that have commas themselves.
_FACTS = "facts"
#: Names with values; ``dimensions`` may be one word for all.
_MAPPINGS = frozenset({"conf", "dimensions"})
#: The step takes them from the SELECT itself; a model is not a function.
_OF_SELECT = frozenset({"query", "sources", "pinned", "file", "function"})


@dataclass(frozen=True)
class Header:
    #: By word, with underscores: texts, lists and mappings, as a workflow has them.
    values: Mapping[str, Any] = field(default_factory=dict)
    #: Where each word stands, and the SELECT.
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def step_fields(self) -> dict[str, Any]:
        return {word: value for word, value in self.values.items() if word not in _OF_WORKFLOW}


def known_words() -> tuple[str, ...]:
    """What a header may say: the fields of an ``Incremental`` step, and a few of its workflow."""
    fields = STEP_TYPES["incremental"].fields or {}
    return (*(name for name in fields if name not in _OF_SELECT), *_OF_WORKFLOW)


def read_header(text: str, problems: Problems) -> Header:
    """Whatever stands above the first line that is neither blank nor a comment."""
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    number = 0
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith("--"):
            break
        found = _SETTING.match(stripped)
        if found is None:
            continue
        word, value = found["word"].lower().replace(" ", "_"), found["value"].strip()
        mark = SourceLocation(number, line.index("--") + 1)
        if word not in known_words():
            problems.add(f"a model has no setting {found['word']!r}", mark, word, _hint(word))
        elif word in values:
            problems.add(f"{found['word']!r} is given twice", mark, word, f"it is in line {lines[word]}, too")
        elif not value:
            problems.add(f"{found['word']!r} has no value", mark, word)
        else:
            values[word], lines[word] = _value(word, value, mark, problems), number
    return Header(values, {**lines, "query": number})


def _hint(word: str) -> str:
    known = [name.replace("_", " ") for name in known_words()]
    listed = f"known are {', '.join(known)}; write other comments below SELECT, or as /* … */"
    hint = did_you_mean(word.replace("_", " "), known, listed)
    return hint[0].lower() + hint[1:]


def _value(word: str, text: str, mark: SourceLocation, problems: Problems) -> Any:
    if word == "schedule":
        try:
            return trigger_of(text)
        except ValueError as error:
            problems.add(str(error), mark, word, "write for instance: daily 02:00, on change, or cron 0 6 * * MON-FRI")
            return None
    if word in _LISTS:
        return [part.strip() for part in _COMMA.split(text) if part.strip()]
    if word == _FACTS:
        return [part.strip() for part in text.split(";") if part.strip()]
    if word in _MAPPINGS and (word == "conf" or "=" in text):
        pairs = [part.partition("=") for part in _COMMA.split(text)]
        if not all(equals and name.strip() for name, equals, _ in pairs):
            problems.add(f"{word!r} is {text!r}, expected NAME=VALUE", mark, word)
        return {name.strip(): value.strip() for name, _, value in pairs}
    return text
