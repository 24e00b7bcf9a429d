"""A process that ends a run, to be killed in the middle of it: see ``tests.store.crashes.killed_at``."""

from __future__ import annotations

from pathlib import Path

from tests.engine.support import Place


def end_run(folder: str) -> None:
    place = Place.at(Path(folder))
    if not place.operations.runs.get("w/1").status.is_final:
        place.operations.runs.kill("w/1")
    place.operations.close()
