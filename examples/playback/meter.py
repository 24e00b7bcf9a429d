"""What Spark took: the sums of all stages that ended in between, from its event log; and what its process has read."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

_QUIET_SECONDS = 0.3
_METRICS = {
    "internal.metrics.executorCpuTime": "cpu_seconds",
    "internal.metrics.input.bytesRead": "bytes_read",
    "internal.metrics.output.bytesWritten": "bytes_written",
    "internal.metrics.shuffle.write.bytesWritten": "bytes_shuffled",
    "internal.metrics.shuffle.read.localBytesRead": "bytes_fetched",
    "internal.metrics.shuffle.read.remoteBytesRead": "bytes_fetched",
}


@dataclass(frozen=True)
class Cost:
    """Of one run, or of several together."""

    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    bytes_shuffled: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


def event_log_conf(folder: Path) -> dict[str, str]:
    """What makes a Spark write its event log into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }


class Meter:
    """Reads the event log of the only application that writes into a folder, and what its process has read."""

    def __init__(self, folder: Path, process: int) -> None:
        self._folder = folder
        self._counted = Path(f"/proc/{process}/io")
        self._at = 0

    def measure(self, action: Callable[..., object], *arguments: object) -> Cost:
        self._new_events()
        read, began = self._read(), time.perf_counter()
        action(*arguments)
        wall = time.perf_counter() - began
        sums: dict[str, float] = {}
        for event in self._new_events():
            for metric in event["Stage Info"]["Accumulables"]:
                if name := _METRICS.get(metric.get("Name", "")):
                    sums[name] = sums.get(name, 0) + int(metric["Value"])
        cpu, fetched = sums.pop("cpu_seconds", 0) / 1e9, sums.pop("bytes_fetched", 0)
        if self._counted.exists():
            # Spark's own count misses what Parquet reads in the background. Shuffles are files as well, and no input.
            sums["bytes_read"] = self._read() - read - fetched
        return Cost(wall, cpu, **{name: int(value) for name, value in sums.items()})

    def _read(self) -> int:
        return int(self._counted.read_text().split()[1]) if self._counted.exists() else 0

    def _new_events(self) -> list[dict[str, Any]]:
        """The stages that ended since the last look. Spark writes later than it works: wait until it is quiet."""
        [log] = self._folder.iterdir()
        size = -1
        while size != log.stat().st_size:
            size = log.stat().st_size
            time.sleep(_QUIET_SECONDS)
        return list(self._stages(log))

    def _stages(self, log: Path) -> Iterator[dict[str, Any]]:
        with log.open("rb") as file:
            file.seek(self._at)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._at += len(line)
                if line.startswith(b'{"Event":"SparkListenerStageCompleted"'):
                    yield json.loads(line)
