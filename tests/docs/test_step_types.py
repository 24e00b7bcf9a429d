"""The page on step types has all of them, with every field and output, and examples that are valid."""

from __future__ import annotations

import re
from textwrap import indent

import pytest

from dalsegno.clock import utc_now
from dalsegno.spec.reading.context import StepTypes
from dalsegno.spec.step_outputs import OF_BOTH_ENDS, OF_CAPTURE, OF_RANGE, OF_SOURCE
from dalsegno.spec.step_types import STEP_TYPES
from dalsegno.spec.workflows import read
from tests.docs.markdown import ROOT, Block, parts, section

PAGE = (ROOT / "docs" / "reference" / "steps.md").read_text(encoding="utf-8")
RUN_HERE = [each.name for each in STEP_TYPES.values() if each.runner]
EXAMPLES = [part for part in parts(PAGE) if isinstance(part, Block) and part.text.startswith("- job:")]


def names_in_tables(text: str) -> set[str]:
    """What stands in backticks in the first cells."""
    cells = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| ")]
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


@pytest.mark.parametrize("name", RUN_HERE)
def test_type(name: str) -> None:
    described = section(PAGE, f"## {name}")
    assert f"type: {name}\n" in described, f"steps.md has no section '## {name}' with an example"
    assert re.search(r"\*\*Outputs?", described)
    assert described.index("```yaml") < (described + "\n|").index("\n|"), "the example comes first"
    known = STEP_TYPES[name.lower()]
    block_name = f"`{known.block}`" if known.block else "none"
    assert f"| [{name}](#{name.lower()}) | {block_name} | {known.summary} |" in PAGE
    if (block := known.fields) is None:
        return
    # A table of one type may refer to that of another.
    documented = names_in_tables(described) | (
        names_in_tables(section(PAGE, "## IpCapture")) if name == "ICDC" else set()
    )
    fields = dict(block)
    for field in block.values():
        fields |= field.fields
    also = set(re.findall(r"also `(\w+)`", described))
    assert set(fields) <= documented | also


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: str(each.line))
def test_examples_are_valid(example: Block) -> None:
    text = f"Workflow:\n  id: page\n  dag: sequential\n  jobs:\n{indent(example.text, '    ')}\n"
    found = read(text.encode(), file="page.yaml", types=StepTypes(), now=utc_now())
    assert not found.warnings


def test_outputs_of_a_capture() -> None:
    outputs = names_in_tables(section(PAGE, "## IpCapture").partition("**Outputs:**")[2])
    assert {*OF_CAPTURE, *OF_SOURCE, *OF_BOTH_ENDS, *(f"{name}_COLUMN" for name in OF_RANGE)} <= outputs
