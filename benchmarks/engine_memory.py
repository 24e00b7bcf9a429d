"""Whether a run needs more memory the more of its steps have ended.

As a program: one long run, in a process that does nothing else; prints by how many MB it grew.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

from benchmarks.engine_workflows import foreach, place
from dalsegno.operations.facade import Operations
from dalsegno.store import run_queries

FIRST, LAST = 1_000, 10_000
_CONCURRENCY = 100
_PAGES = Path("/proc/self/statm")


def growth_mb(folder: Path) -> float | None:
    """By how much the process has grown between the end of its first steps and that of the last; None if unknown."""
    if not _PAGES.exists():
        return None
    command = [sys.executable, "-m", "benchmarks.engine_memory", str(folder)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


class _Watch:
    """Notes the memory in use at some numbers of ended iterations, and says when it has noted all."""

    def __init__(self, operations: Operations, run_id: str) -> None:
        self.operations = operations
        self.run_id = run_id
        self.noted: list[float] = []

    def __call__(self) -> bool:
        wanted = (FIRST, LAST)
        if self._ended() >= wanted[len(self.noted)]:
            gc.collect()
            self.noted.append(_in_use_mb())
        return len(self.noted) == len(wanted)

    def _ended(self) -> int:
        with self.operations.store.database.reading() as connection:
            row = run_queries.step_row(connection, self.run_id, "loop")
        return int(row["loop"]["succeeded"]) if row and row["loop"] else 0


def _in_use_mb() -> float:
    # In pages; the second is what is in memory.
    return int(_PAGES.read_text().split()[1]) * 4096 / 1e6


def main(folder: str) -> None:
    with place(Path(folder)) as operations:
        # More than are waited for, so that the run is not about to end when it is looked at last.
        operations.workflows.push(foreach("memory", LAST + 10 * _CONCURRENCY, _CONCURRENCY))
        run = operations.runs.start("memory")
        watch = _Watch(operations, run.id)
        operations.machinery.engine([run.id]).run(watch)
        first, last = watch.noted
        print(last - first)


if __name__ == "__main__":
    main(sys.argv[1])
