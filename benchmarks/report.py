"""What was measured, what it must be, and how it is printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

_SIDES = {
    "dalsegno": "dalsegno, from checkpoint (median)",
    "dalsegno_earliest": "dalsegno, from earliest (median)",
    "pyiceberg": "PyIceberg, file by file (best)",
    "java": "Java, the talk's listing (best)",
}


@dataclass
class Results:
    """Every measured time, and the rest by its name in the last line."""

    #: Side → number of files → seconds of each run.
    runs: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)

    def add(self, side: str, files: int, seconds: float) -> None:
        self.runs.setdefault(side, {}).setdefault(files, []).append(seconds)

    def seconds(self, side: str, files: int) -> float | None:
        """The median of ours, the best of the others: a busy machine must not make us look better than we are."""
        found = self.runs.get(side, {}).get(files)
        if not found:
            return None
        return median(found) if side.startswith("dalsegno") else min(found)

    def ratio(self, slower: tuple[str, int], faster: tuple[str, int]) -> float | None:
        above, below = self.seconds(*slower), self.seconds(*faster)
        return above / below if above and below else None

    def all_numbers(self) -> dict[str, float | None]:
        ours = ("dalsegno", 100_000)
        return {
            "vs_pyiceberg_100k": self.ratio(("pyiceberg", 100_000), ours),
            "vs_java_100k": self.ratio(("java", 100_000), ours),
            "growth_1m_over_100": self.ratio(("dalsegno", 1_000_000), ("dalsegno", 100)),
            # A capture of few files lists their partitions as well; one of 10,000 does not, unless asked to.
            "growth_1m_over_10k": self.ratio(("dalsegno", 1_000_000), ("dalsegno", 10_000)),
            **{name: self.numbers.get(name) for name in _NUMBERS},
        }


_NUMBERS = (
    "late_seconds",
    "snapshots_1000_seconds",
    "rewritten_1000_seconds",
    "manifest_lists_1000_seconds",
    "peak_memory_mb",
    "peak_memory_1000_snapshots_mb",
    "help_seconds",
)

Numbers = dict[str, float]

#: What each number must be, in words and as a test.
TARGETS: dict[str, tuple[str, Callable[[float, Numbers], bool]]] = {
    "vs_pyiceberg_100k": (">= 300", lambda value, _: value >= 300),
    "vs_java_100k": (">= 40", lambda value, _: value >= 40),
    "growth_1m_over_100": ("<= 10", lambda value, _: value <= 10),
    "snapshots_1000_seconds": ("<= 2 + 2 * manifest_lists_1000_seconds", lambda value, n: value <= _patience(n)),
    "rewritten_1000_seconds": ("<= 2 + 2 * manifest_lists_1000_seconds", lambda value, n: value <= _patience(n)),
    "peak_memory_mb": ("< 300", lambda value, _: value < 300),
    "peak_memory_1000_snapshots_mb": ("< 300", lambda value, _: value < 300),
    "help_seconds": ("< 0.3", lambda value, _: value < 0.3),
}


def _patience(numbers: Numbers) -> float:
    return 2 + 2 * numbers["manifest_lists_1000_seconds"]


def show(results: Results) -> None:
    """The table for people, then one line for machines."""
    sizes = sorted({files for side in results.runs.values() for files in side})
    print(f"\n{'seconds':<34}" + "".join(f"{f'{files:,} files':>17}" for files in sizes))
    for side, title in _SIDES.items():
        if side in results.runs:
            print(f"{title:<34}" + "".join(f"{_cell(results, side, files):>17}" for files in sizes))
    numbers = results.all_numbers()
    known = {name: value for name, value in numbers.items() if value is not None}
    print()
    for name, value in known.items():
        wanted, is_met = TARGETS.get(name, ("", None))
        verdict = "" if is_met is None else "ok" if is_met(value, known) else "MISSED"
        print(f"{name:<34}{value:>12.3f}   {wanted:<42}{verdict}")
    print(json.dumps(_line(results, numbers, known)), flush=True)


def _line(results: Results, numbers: dict[str, float | None], known: Numbers) -> dict[str, Any]:
    met = all(name in known and is_met(known[name], known) for name, (_, is_met) in TARGETS.items())
    return {
        **{name: None if value is None else round(value, 4) for name, value in numbers.items()},
        "seconds": {
            side: {str(files): round(results.seconds(side, files) or 0, 5) for files in sorted(by_size)}
            for side, by_size in results.runs.items()
        },
        "not_measured": [name for name, value in numbers.items() if value is None],
        "targets_met": met,
    }


def _cell(results: Results, side: str, files: int) -> str:
    seconds = results.seconds(side, files)
    if seconds is not None:
        return f"{seconds:.4f}"
    # What grows with the number of files can be guessed from the next smaller table.
    smaller = results.seconds(side, files // 10)
    return "-" if smaller is None else f"(about {10 * smaller:.0f})"
