"""A process that ends a run, to be killed in the middle of it: see ``tests.store.crashes.killed_at``."""

from __future__ import annotations

from pathlib import Path

from dalsegno.model.runs import Ending
from tests.engine.support import Place


def end_run(folder: str) -> None:
    place = Place.at(Path(folder))
    if not place.orchestrator.run("w/1").status.is_final:
        place.orchestrator.end("w/1", Ending.KILL)
    place.orchestrator.close()
