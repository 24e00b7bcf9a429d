"""A chain of steps that do nothing, in Dagster; run by the Python of Dagster's own environment: see ``beside_dagster``.

Every line of standard input asks for one run, ``in_process`` or ``default``, and is answered by one line of JSON. Both
ways keep runs and events in SQLite, as Dagster does by default in ``DAGSTER_HOME``. No step hands a value to the next,
which spares Dagster the files that it would pass them in. Imports, the definition of the job and the making of the
databases are not measured.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from typing import Any

import dagster

STEPS = 40


def _nothing() -> None:
    pass


def _step(number: int) -> Any:
    comes_after = {"before": dagster.In(dagster.Nothing)} if number else {}
    return dagster.op(name=f"step_{number}", ins=comes_after, out=dagster.Out(dagster.Nothing))(_nothing)


@dagster.job  # type: ignore[untyped-decorator]
def chain() -> None:
    before = _step(0)()
    for number in range(1, STEPS):
        before = _step(number)(before)


def in_process(instance: dagster.DagsterInstance) -> bool:
    return bool(chain.execute_in_process(instance=instance).success)


def default(instance: dagster.DagsterInstance) -> bool:
    """What a job does that names no executor: a process of its own for every step."""
    with dagster.execute_job(dagster.reconstructable(chain), instance=instance) as result:
        return bool(result.success)


def main() -> None:
    # It tells every event on standard error, which takes time and is of no use here.
    logging.disable(logging.CRITICAL)
    ways = {"in_process": in_process, "default": default}
    # Steps print their events to standard output; the answers have it for themselves.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with dagster.DagsterInstance.get() as instance:
        # Makes the databases.
        instance.get_runs(limit=1)
        for line in sys.stdin:
            began = time.perf_counter()
            has_succeeded = ways[line.strip()](instance)
            print(json.dumps([time.perf_counter() - began, has_succeeded]), file=answers, flush=True)


if __name__ == "__main__":
    main()
