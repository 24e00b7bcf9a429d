"""docs/reference/sel.md: every example holds, and nothing is left out."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from dalsegno.cli.evaluating import text
from dalsegno.clock import utc_now
from dalsegno.sel import Limits, classes, evaluate
from dalsegno.sel.methods import registry
from dalsegno.sel.values import Type
from tests.sel.support import refusal

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "sel.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(.+?)` \| (?:`([A-Z_]+: .*?)`|refused) \|", re.MULTILINE)
EXAMPLES = [(found[1].replace("\\|", "|"), found[2]) for found in ROW.finditer(PAGE)]


@pytest.mark.parametrize(("expression", "shown"), EXAMPLES)
def test_examples(expression: str, shown: str | None) -> None:
    if shown is None:
        refusal(expression)
    else:
        assert text(evaluate(expression, {}, now=utc_now())) == shown


def test_there_are_many() -> None:
    assert len(EXAMPLES) > 120
    assert len(EXAMPLES) == len(re.findall(r"^\| `.*\| (?:`[A-Z_]+: |refused \|)", PAGE, re.MULTILINE))


def test_limits() -> None:
    for limit in fields(Limits):
        value = limit.default
        assert f"| `{limit.name}` | {value if isinstance(value, float) else f'{value:,}'} |" in PAGE


def test_every_class_and_method_is_named() -> None:
    """Families, as plusDays or getYear, are named by their parts."""
    words = set(re.findall(r"\w+", PAGE))
    for name in classes.PRESETS:
        assert name in words or name in {"Property"}, name
    for type_, known in registry.METHODS.items():
        for name in known:
            family = re.fullmatch(r"(plus|minus|get|with)([A-Z]\w+)", name) if type_ is Type.DATETIME else None
            if family is None:
                assert name in words, name
            else:
                assert {family[1]} <= words, name
                assert family[2] in words or family[2][0].lower() + family[2][1:] in words or name in words, name
