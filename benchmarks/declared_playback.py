"""The playback pipeline, declared by plain SELECTs, beside a lookback over the same SELECTs and the form by hand."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.pipeline import FIRST, MEMORY, SPARK, WARM_UP_EVENTS, Lake
from benchmarks.pipeline_forms import (
    STAGES,
    WORKFLOWS,
    Form,
    Tables,
    declared,
    declared_id,
    full,
    incremental,
    lookback,
)
from benchmarks.progress import say
from examples.playback.meter import Cost, Meter, event_log_conf
from examples.playback.place import Place, place

ROWS, DAYS, RUNS, WARM_UP_RUNS = 64_000_000, 25, 3, 2
Costs = dict[str, dict[str, list[Cost]]]


def measure(folder: Path, *, rows: int = ROWS, days: int = DAYS, runs: int = RUNS) -> dict[str, Any]:
    """Let days pass, and compare what each form costs and leaves."""
    log = folder / "events"
    with place(folder, {**SPARK, **event_log_conf(log)}, MEMORY) as made:
        made.push(*WORKFLOWS)
        meter = Meter(log, made.server.java)
        say("warms up")
        _simulate(made, meter, "warm", WARM_UP_EVENTS, 24, WARM_UP_RUNS)
        costs, is_equal = _simulate(made, meter, "media", rows // days, days, runs)
        decide_ms = [each for stage in STAGES for each in _decide_ms(made, declared_id(Tables("media"), stage))]
    total = {form: sum((cost for each in stages.values() for cost in each), Cost()) for form, stages in costs.items()}
    ours = total["declared"]
    return {
        "playback_vs_lookback": round(total["lookback"].wall_seconds / ours.wall_seconds, 2),
        "playback_vs_handwritten": round(ours.wall_seconds / total["incremental"].wall_seconds, 3),
        "bytes_read_share": round(ours.bytes_read / total["lookback"].bytes_read, 4),
        "playback_equal": is_equal,
        "decide_ms": median(decide_ms),
        "playback_seconds": {
            form: {stage: [round(cost.wall_seconds, 2) for cost in each] for stage, each in stages.items()}
            for form, stages in costs.items()
        },
    }


def _decide_ms(made: Place, workflow_id: str) -> list[float]:
    """How long each run but the first took to analyse its SELECT, to count costs and to write its SQL."""
    found = []
    for run in made.operations.runs.list(workflow_id).items:
        [step] = made.operations.runs.steps(run.id)
        text = made.operations.runs.log(run.id, step.id).text()
        found += [float(each) for each in re.findall(r"decided in (\d+) ms", text)]
    return found[:-1]


def _simulate(made: Place, meter: Meter, prefix: str, events: int, days: int, runs: int) -> tuple[Costs, bool]:
    began = time.perf_counter()
    lake = Lake(made, Tables(prefix), events)
    last = lake.create(days)
    lake.copy_targets(["lookback"])
    ours = _declared(made, lake)
    forms = [ours, incremental(made, lake.tables), lookback(made, lake.tables)]
    say(f"{lake.rows(lake.tables.source):,} rows of history, processed, in {time.perf_counter() - began:.0f} s")
    costs: Costs = {form.name: {stage: [] for stage in STAGES} for form in forms}
    for number in range(1, runs + 1):
        day = last + timedelta(number)
        lake.arrive(day, day)
        # Each has to be the first one day, and the last another.
        turn = number % len(forms)
        for form in (*forms[turn:], *forms[:turn]):
            for stage in STAGES:
                cost = meter.measure(form.run, stage, day)
                costs[form.name][stage].append(cost)
                say(
                    f"{day} {form.name:<12} {stage:<6}{cost.wall_seconds:8.1f} s{cost.bytes_read / 1e6:9.1f} MB read"
                    f"{cost.bytes_written / 1e6:8.1f} MB written"
                )
    made.run("playback.setup", **{**lake.tables.of("full"), "source": f"{lake.tables.source}_unused"})
    truth = full(made, lake.tables)
    for stage in STAGES:
        truth.run(stage, day)
    is_equal = all(lake.is_equal(form, "full") for form in ("declared", "incremental"))
    say(f"declared and by hand {'equal' if is_equal else 'DIFFER FROM'} a full recomputation")
    return costs, is_equal


def _declared(made: Place, lake: Lake) -> Form:
    """The declared form, which has processed the history, compacted as that of the others is."""
    made.run("playback.setup", **{**lake.tables.of("declared"), "source": f"{lake.tables.source}_not_used"})
    form = declared(made, lake.tables)
    for stage in STAGES:
        form.run(stage, FIRST)
        target = lake.tables.target("declared", stage).removeprefix("lake.")
        made.sql(f"CALL lake.system.rewrite_data_files(table => '{target}')")
    return form
