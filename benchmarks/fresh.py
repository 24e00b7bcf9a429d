"""What needs a process of its own: peak memory, and the start of the command line.

As a program: capture one table, and print the peak memory in MB.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.tables import BenchTable

_STATUS = Path("/proc/self/status")


def peak_memory_mb(settings: Path, table: BenchTable) -> float:
    """The most memory that a process needs which does nothing but this capture, imports included."""
    words = [str(settings), table.name, str(table.after), str(table.upto), str(table.files)]
    command = [sys.executable, "-m", "benchmarks.fresh", *words]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def help_seconds(repeats: int = 9) -> float:
    """How long ``dalsegno --help`` takes."""
    command = [str(Path(sys.executable).with_name("dalsegno")), "--help"]
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def _own_peak_mb() -> float:
    # Linux counts in a new process's maximum what its parent had; the status file does not.
    if _STATUS.exists():
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def _main(settings: str, name: str, after: str, upto: str, files: str) -> None:
    from benchmarks import ours  # noqa: PLC0415 - a process that only measures others need not wait for these
    from dalsegno import Lake  # noqa: PLC0415

    with Lake.open(settings) as lake:
        _, changes = ours.timed_capture(lake, BenchTable(name, int(after), int(upto), int(files)))
        print(_own_peak_mb())
        changes.abandon()


if __name__ == "__main__":
    _main(*sys.argv[1:])
