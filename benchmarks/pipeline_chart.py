"""The chart of make bench-pipeline, as PNG and SVG."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("agg")
from matplotlib import pyplot as plt

if TYPE_CHECKING:
    from benchmarks.pipeline import Results

STAGE_COLOURS = {"daily": "#1f6f8b", "agg": "#e09f3e"}
STAGE_LABELS = {"daily": "stage 1: parse, deduplicate, join", "agg": "stage 2: aggregate"}
GREY = "#5c6770"
NAMES = {
    "lookback": "lookback of 14 days",
    "incremental": "dalsegno",
    "plain_read": "incremental read",
    "changelog_view": "create_changelog_view",
    "streaming": "Structured Streaming",
}


def draw(results: Results, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # Without a date in it, the same figures make the same file.
    plt.rcParams.update(
        {"svg.hashsalt": "pipeline", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    )
    figure, (wall, shares, growth) = plt.subplots(1, 3, figsize=(13, 3.6), width_ratios=(5, 3, 3))
    _draw_wall(wall, results)
    _draw_shares(shares, results)
    _draw_growth(growth, results)
    figure.tight_layout()
    for suffix in ("png", "svg"):
        figure.savefig(folder / f"pipeline.{suffix}", dpi=150, metadata={"Date": None} if suffix == "svg" else None)
    plt.close(figure)


def _draw_wall(axes: Any, results: Results) -> None:
    """Seconds a day of each form that runs all stages, stage upon stage."""
    complete = [form for form, stages in results.costs.items() if set(stages) == set(STAGE_COLOURS)]
    forms = sorted(complete, key=lambda form: results.total(form).wall_seconds)
    days = max(len(each) for each in results.costs["incremental"].values())
    left = [0.0] * len(forms)
    labels = [NAMES[form] + ("" if results.right.get(form) else " *") for form in forms]
    for stage, colour in STAGE_COLOURS.items():
        widths = [results.total(form, stage).wall_seconds / days for form in forms]
        axes.barh(labels, widths, left=left, color=colour, label=STAGE_LABELS[stage])
        left = [a + b for a, b in zip(left, widths, strict=True)]
    for number, seconds in enumerate(left):
        axes.annotate(f" {seconds:.1f} s", (seconds, number), va="center")
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("seconds a day" + ("   (* its answer is not right)" if any("*" in each for each in labels) else ""))
    axes.set_title(f"{results.rows / 1e6:.0f} million rows, {days} days", loc="left")
    axes.legend(frameon=False, loc="center right")


def _draw_shares(axes: Any, results: Results) -> None:
    """What the incremental form takes of what lookback takes."""
    axes.set_title("dalsegno, in % of lookback", loc="left")
    if "lookback" not in results.costs:
        return
    ours, theirs = results.total("incremental"), results.total("lookback")
    shares = {
        "wall time": ours.wall_seconds / theirs.wall_seconds,
        "task CPU time": ours.cpu_seconds / theirs.cpu_seconds,
        "bytes read": ours.bytes_read / theirs.bytes_read,
        "bytes written": ours.bytes_written / theirs.bytes_written,
    }
    axes.barh(list(shares), [100 * share for share in shares.values()], color=GREY)
    for number, share in enumerate(shares.values()):
        axes.annotate(f" {100 * share:.1f} %", (100 * share, number), va="center")
    axes.invert_yaxis()
    axes.margins(x=0.25)


def _draw_growth(axes: Any, results: Results) -> None:
    """Seconds of a run behind histories of different lengths."""
    axes.set_title("same change, longer history", loc="left")
    if not results.growth:
        return
    lengths = [f"{length} x" for length in results.growth]
    seconds = [median(cost.wall_seconds for cost in costs) for costs in results.growth.values()]
    axes.bar(lengths, seconds, color=GREY)
    for number, each in enumerate(seconds):
        axes.annotate(f"{each:.1f} s", (number, each), ha="center", va="bottom")
    axes.margins(y=0.15)
    axes.set_ylabel("seconds a day")
