"""Processes that work on one store together."""

from __future__ import annotations

import logging
from pathlib import Path

from tests.engine.support import Place


def work_on(folder: str, url: str, log_file: str) -> None:
    """Run whatever is open until nothing is, and leave what was said of it."""
    logging.basicConfig(filename=log_file, level=logging.WARNING)
    place = Place.at(Path(folder), url)
    place.operations.runs.work()
    place.operations.close()
