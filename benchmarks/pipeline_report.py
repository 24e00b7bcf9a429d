"""The figures of make bench-pipeline: for people, and for machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.pipeline import Results

#: What each number must be, in words and as a test.
TARGETS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "rows": (">= 30,000,000", lambda value: value >= 30_000_000),
    "wall_vs_lookback": (">= 10.5", lambda value: value >= 10.5),
    "cpu_share": ("<= 0.15", lambda value: value <= 0.15),
    "bytes_read_share": ("<= 0.15", lambda value: value <= 0.15),
    "equal_to_full": ("true", bool),
    "growth_16x": ("<= 1.3", lambda value: value <= 1.3),
}


def show(results: Results, charts: Path | None) -> None:
    print(f"\n{'all days together':<18}{'stage':<7}{'wall s':>9}{'CPU s':>9}{'MB read':>10}{'MB written':>12}   answer")
    for form, stages in results.costs.items():
        for stage in stages:
            cost = results.total(form, stage)
            print(
                f"{form:<18}{stage:<7}{cost.wall_seconds:9.1f}{cost.cpu_seconds:9.1f}{cost.bytes_read / 1e6:10.1f}"
                f"{cost.bytes_written / 1e6:12.1f}   {'right' if results.right.get(form) else 'not right'}"
            )
    numbers = figures(results)
    print()
    for name, (wanted, is_met) in TARGETS.items():
        value = numbers[name]
        verdict = "not measured" if value is None else "ok" if is_met(value) else "MISSED"
        print(f"{name:<26}{value!s:>12}   {wanted:<16}{verdict}")
    for name, found in numbers["alternatives"].items():
        print(f"{name:<26}{found['wall_ratio']!s:>12}   times as long, {'right' if found['right'] else 'not right'}")
    if charts:
        from benchmarks.pipeline_chart import draw  # noqa: PLC0415 - needs what only development has

        draw(results, charts)
    print(json.dumps(numbers), flush=True)


def figures(results: Results) -> dict[str, Any]:
    ours = results.total("incremental")
    measured = "lookback" in results.costs
    theirs = results.total("lookback") if measured else None

    def times(stage: str | None = None) -> float | None:
        if not measured:
            return None
        slow, fast = (results.total(form, stage).wall_seconds for form in ("lookback", "incremental"))
        return round(slow / fast, 2)

    growth = results.growth_16x()
    return {
        "rows": results.rows,
        "wall_vs_lookback": times(),
        "stage1_vs_lookback": times("daily"),
        "stage2_vs_lookback": times("agg"),
        "cpu_share": theirs and round(ours.cpu_seconds / theirs.cpu_seconds, 4),
        "bytes_read_share": theirs and round(ours.bytes_read / theirs.bytes_read, 4),
        "equal_to_full": results.right.get("incremental", False),
        "lookback_missed_rows": results.missed_rows,
        "growth_16x": growth and round(growth, 3),
        "alternatives": {
            form: {
                # Beside the same stages.
                "wall_ratio": round(
                    results.total(form).wall_seconds
                    / sum(results.total("incremental", stage).wall_seconds for stage in results.costs[form]),
                    2,
                ),
                "right": results.right.get(form, False),
                **({"failed": results.failures[form]} if form in results.failures else {}),
            }
            for form in results.costs
            if form not in ("incremental", "lookback")
        },
        "costs": {
            form: {stage: asdict(results.total(form, stage)) for stage in stages}
            for form, stages in results.costs.items()
        },
        "growth_wall_seconds": {
            str(length): [round(cost.wall_seconds, 2) for cost in costs] for length, costs in results.growth.items()
        },
    }
