"""Maestro's own answers.

maestro.jsonl holds what Maestro's interpreter (netflix-sel at commit abdbdad, Joda-Time 2.14, Java 17, UTC) said to
some thousand expressions: the type and value, or that it refused. Where ours differs on purpose, test_language.py says
so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dalsegno.cli.evaluating import shown
from dalsegno.errors import SelError
from dalsegno.sel import Type, Value, evaluate
from tests.sel.support import NOW

RECORDED = [json.loads(line) for line in Path(__file__).with_name("maestro.jsonl").read_text("utf-8").splitlines()]
PARAMS = {
    "foo": Value(Type.STRING, "bar"),
    "ls": Value(Type.LONG_ARRAY, [1, 2, 3]),
    "mp": Value(Type.MAP, {"a": 1, "b": "x"}),
}


def answer(expression: str) -> dict[str, Any]:
    try:
        return shown(evaluate(expression, PARAMS, now=NOW))
    except SelError:
        return {"refused": True}


def test_same_answers_as_maestro() -> None:
    assert len(RECORDED) > 3000
    wrong = [(said, given) for said in RECORDED if (given := answer(said.pop("expression"))) != said]
    assert not wrong
