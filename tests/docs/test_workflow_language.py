"""The page on the workflow language leaves no field out, and its examples have no problem that they do not show."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dalsegno.spec.formatting import formatted
from dalsegno.spec.schema import workflow_schema
from dalsegno.spec.step_types import STEP_TYPES
from tests.docs.markdown import ROOT, Block, parts, prose

PAGE = (ROOT / "docs" / "reference" / "workflow-language.md").read_text(encoding="utf-8")
EXAMPLES = [part for part in parts(PAGE) if isinstance(part, Block) and part.language in {"yaml", "json"}]
SCHEMA = workflow_schema()


def fields(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = set(node["properties"]) if isinstance(node.get("properties"), dict) else set()
        return own.union(*map(fields, node.values()))
    return set().union(*map(fields, node)) if isinstance(node, list) else set()


def test_every_field_is_described() -> None:
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", prose(PAGE)))))
    # A definition of the schema is called "properties", too; and `Trigger` may be a plural.
    assert fields(SCHEMA) - named <= {"$ref", "Triggers", "triggers"}


def test_every_type_is_listed() -> None:
    for each in STEP_TYPES.values():
        assert re.search(rf"\b{each.name}\b", PAGE), each.name


@pytest.mark.parametrize(
    "example", [each for each in EXAMPLES if "Sprak" not in each.text], ids=lambda each: str(each.line)
)
def test_examples_can_be_formatted(example: Block) -> None:
    assert formatted(example.text)
