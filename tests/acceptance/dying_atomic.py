"""A process that works on runs, and is killed at a chosen moment of an atomic step: see ``test_atomic``."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from dalsegno.iceberg import publishing
from dalsegno.operations.facade import Operations
from dalsegno.settings import load
from dalsegno.steps.spark.atomic import AtomicScript
from dalsegno.steps.spark.atomic_records import AtomicRecord
from dalsegno.store import Store
from tests.callers import admin

MOMENTS = ("in the middle", "before publishing", "after publishing", "after recording")


def work_until(folder: str, run_id: str, moment: str) -> None:
    match moment:
        case "in the middle":
            _kill_before(AtomicScript, "_execute", number=4)
        case "before publishing":
            _kill_before(publishing, "publish")
        case "after publishing":
            _kill_before(AtomicRecord, "end")
        case "after recording":
            _kill_behind(AtomicRecord, "end")
    settings = load(working_folder=Path(folder), environment={})
    with Operations(Store.open(settings.store), settings, admin()) as operations:
        operations.runs.finish(run_id)
    os._exit(0)


def _kill_before(place: Any, name: str, number: int | None = None) -> None:
    do = getattr(place, name)

    def killed(*given: Any) -> Any:
        if number is None or number in given:
            os.kill(os.getpid(), signal.SIGKILL)
        return do(*given)

    setattr(place, name, killed)


def _kill_behind(place: Any, name: str) -> None:
    do = getattr(place, name)

    def killed(*given: Any) -> None:
        do(*given)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(place, name, killed)
