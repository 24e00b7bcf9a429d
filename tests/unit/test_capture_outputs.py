"""The parameters that a capture step gives to later ones, with values that are easily taken for others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dalsegno.model.captures import Capture
from dalsegno.spec.step_outputs import OF_BOTH_ENDS, OF_CAPTURE, OF_RANGE, OF_SOURCE
from dalsegno.steps.incremental import outputs_of
from tests.store.examples import MEMBERS, PLAYBACK, capture

COUNTS = {"files": 1, "rows": 1, "bytes": 1, "ranges": {}, "partitions": []}


def captured(*details: dict[str, Any]) -> Capture:
    made = capture(tables=(PLAYBACK, MEMBERS)[: len(details)])
    tables = zip(made.tables, details, strict=True)
    return replace(made, tables=tuple(replace(table, details=COUNTS | each) for table, each in tables))


def test_no_value_is_not_a_text() -> None:
    values = [None, "None", "null", "__HIVE_DEFAULT_PARTITION__", "a/b=c", ""]
    partitions = [{"values": {"day": value}, "novelty": "new"} for value in values]
    found = outputs_of(captured({"partitions": partitions}), is_resumed=False)["new_partitions"]
    assert len(set(found)) == len(values)
    assert {"day=__HIVE_DEFAULT_PARTITION__", "day=None", "day=%5F_HIVE_DEFAULT_PARTITION__"} <= set(found)


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("double", "-Infinity", 1.5),
        ("date", "2026-01-01", "+10000-01-01"),
        ("date", "-0001-12-31", "0001-01-01"),
        ("binary", "/w==", "/wA="),
        ("decimal(38, 0)", "9", "10"),
    ],
)
def test_ranges_of_several_sources(kind: str, low: Any, high: Any) -> None:
    def ranged(value: Any) -> dict[str, Any]:
        return {"ranges": {"v": {"type": kind, "min": value, "max": value, "unknown_because": None}}}

    for one, other in ((low, high), (high, low)):
        found = outputs_of(captured(ranged(one), ranged(other)), is_resumed=False)
        assert (found["min_v"], found["max_v"]) == (low, high)


def test_checks_know_every_output() -> None:
    """A reference to an output that checks do not know would be refused before a run."""
    details = {"partitions": [], "ranges": {"v": {"type": "int", "min": 1, "max": 2, "unknown_because": None}}}
    known = {*OF_CAPTURE, *OF_SOURCE, *OF_BOTH_ENDS, *(f"{name}_v" for name in OF_RANGE)}
    assert outputs_of(captured(details), is_resumed=False).keys() <= known
