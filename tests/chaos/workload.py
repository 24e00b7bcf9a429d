"""Workflows of all shapes; every job of theirs leaves a line, so that it can be told how often it ran."""

from __future__ import annotations

from pathlib import Path

from tests.engine.support import Json, Place, expression, foreach, long, loop_while, noop, shell, subworkflow

#: Runs of these start by themselves, as often as a trigger may.
BEATS, BEAT_MINUTES = tuple(f"beat{number}" for number in range(5)), 2
#: How runs of each workflow end.
ENDS = {
    "chain": "SUCCEEDED",
    "pair": "SUCCEEDED",
    "many": "SUCCEEDED",
    "again": "SUCCEEDED",
    "above": "SUCCEEDED",
    "stumbling": "SUCCEEDED",
    "failing": "FAILED",
    "copies": "SUCCEEDED",
    "follows": "SUCCEEDED",
    "hears": "SUCCEEDED",
    "waits": "SUCCEEDED",
    **dict.fromkeys(BEATS, "SUCCEEDED"),
}
#: Those that are started at random.
STARTED = ("chain", "pair", "many", "again", "above", "stumbling", "failing")

_AT_ONCE = {"error_retry_limit": 3, "backoff": {"type": "FIXED_BACKOFF", "error_retry_backoff_in_secs": 1}}
_NEVER = {"error_retry_limit": 0}

#: Somebody starts the first; the second starts by itself when there is something new.
COPIED = {"copies": "source", "follows": "watched"}
COPIES = """
Workflow:
  id: {workflow}
  jobs:
    - job: {{id: capture, type: IpCapture, ip_capture: {{source_tables: [lake.db.{table}]}}}}
    - job: {{id: copy, type: Python, python: {{file: copy_rows.py}}}}
    - job: {{id: commit, type: IpCommit, ip_commit: {{capture_step: capture}}}}
  dag: sequential
"""
FOLLOWS = f"Trigger: {{incremental: {{tables: [lake.db.{COPIED['follows']}]}}}}\n"
COPY_ROWS = """
import os

from dalsegno import Lake, job

with Lake.open() as lake:
    catalog = lake.catalog("lake").pyiceberg
    target = catalog.load_table("db." + os.environ["DALSEGNO_WORKFLOW"])
    with job.write(target) as write:
        if write:
            _, namespace, name = job.change_table().split(".")
            target.append(catalog.load_table((namespace, name)).scan().to_arrow(), snapshot_properties=write.stamp)
"""


def line(folder: Path, iteration: str, end: str) -> str:
    """A script that says who runs it, and then ends."""
    name = f"$DALSEGNO_WORKFLOW/$DALSEGNO_RUN $DALSEGNO_STEP{iteration} $DALSEGNO_ATTEMPT"
    return f'echo "{name}" >> {folder}/lines; {end}'


def push_all(place: Place) -> None:
    folder = place.folder

    def job(step_id: str, *then: str, end: str = "", iteration: str = "", **fields: object) -> Json:
        return shell(step_id, line(folder, iteration, end), *then, **fields)

    parallel = {"run_strategy": {"rule": "PARALLEL", "workflow_concurrency": 50}}
    place.push(
        "chain", noop("a", "b"), noop("b", "c", "d"), noop("c", "e"), noop("d", "e"), noop("e"), properties=parallel
    )
    place.push("pair", job("a", "b"), job("b", end="sleep 2"), properties=parallel)
    place.push(
        "many",
        foreach("loop", [1, 2, 3, 4], [noop("a", "b"), job("b", iteration="/${i}")], "end"),
        job("end"),
        properties=parallel,
    )
    counting = {"n": {"type": "LONG", "expression": "n + 1;"}}
    place.push(
        "again",
        loop_while("loop", "n < 3", {"n": long(0)}, [noop("a", params=counting)], "end"),
        job("end"),
        properties=parallel,
    )
    place.push("above", noop("a", "below"), subworkflow("below", "pair", "end"), job("end"), properties=parallel)
    place.push("stumbling", job("a", end="[ $DALSEGNO_ATTEMPT -ge 2 ]", retry_policy=_AT_ONCE), properties=parallel)
    place.push("failing", job("a", end="exit 3", retry_policy=_NEVER), noop("b"), properties=parallel)
    trigger = {"cron": f"*/{BEAT_MINUTES} * * * *", "catch_up": {"rule": "ALL", "most": 1000}}
    for beat in BEATS:
        place.push(beat, job("a"), time_triggers=[trigger], properties=parallel)
    (folder / "copy_rows.py").write_text(COPY_ROWS)
    for workflow, table in COPIED.items():
        text = COPIES.format(workflow=workflow, table=table)
        place.operations.workflows.push((FOLLOWS if workflow == "follows" else "") + text, folder=folder)
    place.push("hears", job("a"), signal_triggers=[{"definitions": {"news": {}}}], properties=parallel)
    answer = {"name": "answer", "match_params": {"n": {"param": expression("n"), "operator": "="}}}
    place.push(
        "waits", noop("a", "b"), job("b", signal_dependencies=[answer]), params={"n": long(0)}, properties=parallel
    )
