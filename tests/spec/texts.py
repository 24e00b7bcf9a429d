"""Small workflows for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalsegno.errors import InvalidWorkflow, Problem
from dalsegno.model.workflow import Definition, Step
from dalsegno.spec.workflows import read

SAMPLES = sorted((Path(__file__).parent / "samples").iterdir())


def sample(name: str) -> str:
    return (Path(__file__).parent / "samples" / name).read_text(encoding="utf-8")


def definition(text: str) -> Definition:
    return read(text).definition


def steps(text: str) -> dict[str, Step]:
    return {step.id: step for step in definition(text).workflow.all_steps()}


def jobs(*lines: str, dag: str = "") -> str:
    """A workflow of these jobs, each given as the inside of a flow mapping; the first is in line 4."""
    body = "".join(f"    - job: {{{line}}}\n" for line in lines)
    return f"Workflow:\n  id: w\n  jobs:\n{body}" + (f"  dag: {dag}\n" if dag else "")


def problems(text: str | bytes) -> tuple[Problem, ...]:
    with pytest.raises(InvalidWorkflow) as refused:
        read(text)
    return refused.value.problems


def problem(text: str | bytes) -> str:
    """The only problem, as ``line:column: message; hint``."""
    found = problems(text)
    assert len(found) == 1, [str(each) for each in found]
    return f"{found[0].line}:{found[0].column}: {found[0]}"
