"""Workflows that do next to nothing, and a place to run them in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dalsegno.operations.callers import local_caller
from dalsegno.operations.facade import Operations
from dalsegno.settings import load
from dalsegno.store import Store


@contextmanager
def place(folder: Path) -> Iterator[Operations]:
    """All defaults: the store is a file of SQLite in the folder."""
    folder.mkdir()
    settings = load(working_folder=folder, environment={})
    with Operations(Store.open(settings.store), settings, local_caller()) as operations:
        yield operations


def chain(workflow_id: str, length: int, **properties: Any) -> str:
    """Steps one after the other."""
    steps = [_noop(number, [number + 1] if number + 1 < length else []) for number in range(length)]
    return _workflow(workflow_id, steps, **properties)


def noops(workflow_id: str, count: int) -> str:
    """Steps that do not wait for each other."""
    return _workflow(workflow_id, [_noop(number) for number in range(count)])


def foreach(workflow_id: str, iterations: int, concurrency: int) -> str:
    numbers = {"type": "LONG_ARRAY", "expression": f"Util.intsBetween(0, {iterations}, 1)"}
    loop = {
        "id": "loop",
        "concurrency": concurrency,
        "params": {"loop_params": {"type": "MAP", "value": {"number": numbers}}},
        "steps": [_noop(0)],
        "transition": {},
    }
    return _workflow(workflow_id, [{"foreach": loop}])


def spark(workflow_id: str, query: str) -> str:
    script = {"type": "STRING", "value": query}
    params = {"spark": {"type": "MAP", "value": {"script": script}}}
    return _workflow(workflow_id, [{"step": {"id": "query", "type": "Spark", "params": params, "transition": {}}}])


def _noop(number: int, then: list[int] | None = None) -> dict[str, Any]:
    successors = {f"step_{each}": "true" for each in then or ()}
    return {"step": {"id": f"step_{number}", "type": "NoOp", "transition": {"successors": successors}}}


def _workflow(workflow_id: str, steps: list[dict[str, Any]], **properties: Any) -> str:
    definition = {"properties": {"owner": "bench", **properties}, "workflow": {"id": workflow_id, "steps": steps}}
    return json.dumps(definition)
