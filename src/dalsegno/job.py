"""For the code of a step: what it was given, and what it hands on.

    from dalsegno import job

    day = job.param("day")
    job.output(rows=42)

Needs nothing but the standard library, and works in a script, a notebook or a container alike. The same can be had
without it: ``DALSEGNO_PARAMS`` names a JSON file with the parameters, ``DALSEGNO_CAPTURES`` one with the captures that
the step processes, and lines such as ``rows=42`` or ``{"rows": 42}`` in the file that ``DALSEGNO_OUTPUT`` names become
output parameters.

A step that comes after a capture may be run again for the same rows: it may have died after it wrote, and before that
was known. A stamp in the snapshot that holds the rows tells that they are there:

    if not job.is_written(target):
        target.append(rows, snapshot_properties=job.stamp())

Outside of a run there are no parameters and no captures, so a default is what counts, and outputs are printed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_REQUIRED = object()
#: The properties that are the same in every attempt, and in the next run.
_SAME = ("dalsegno.captures", "dalsegno.workflow", "dalsegno.place")
_PART = "dalsegno.statement"


def params() -> dict[str, Any]:
    """The step's parameters by name."""
    return _read("DALSEGNO_PARAMS")


def param(name: str, default: Any = _REQUIRED) -> Any:
    """One parameter, or the default if the step has none of that name."""
    values = params()
    if name in values:
        return values[name]
    if default is _REQUIRED:
        known = ", ".join(sorted(values)) or "none"
        raise KeyError(f"The step has no parameter {name!r}; it has {known}. Add it to the step, or give a default.")
    return default


def output(values: Mapping[str, Any] | None = None, /, **more: Any) -> None:
    """Set output parameters: texts, numbers, true or false, and lists or maps of them. The last value counts."""
    line = json.dumps({**(values or {}), **more}, allow_nan=False)
    file = os.environ.get("DALSEGNO_OUTPUT")
    if not file:
        print(line)  # noqa: T201 - so that a script shows what it would set
        return
    # One write of the whole line, at the end: several processes of a job may do this at once.
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def announce(name: str, /, **params: str | int) -> None:
    """Announce a signal when the step has succeeded; its parameters are texts and whole numbers."""
    output({"maestro_dynamic_output": {"signal_outputs": [{"name": name, **params}]}})


def key() -> str | None:
    """Names this attempt of this step and no other, such as for a request that must not be made twice."""
    return os.environ.get("DALSEGNO_KEY")


def attempt() -> int:
    """1 for the first try of the step in its run, 2 for the next."""
    return int(os.environ.get("DALSEGNO_ATTEMPT", "1"))


def captures() -> list[dict[str, Any]]:
    """The captures that the step processes, each with its ``id``, ``consumer`` and ``tables``."""
    found: list[dict[str, Any]] = _read("DALSEGNO_CAPTURES").get("captures", [])
    return found


def change_table(source: str | None = None) -> str:
    """The name of the change table: of the only source, or of the one of this name, of which the end is enough."""
    tables = [table for capture in captures() for table in capture["tables"]]
    found = [table for table in tables if source is None or f".{table['source']}".endswith(f".{source}")]
    if len(found) == 1:
        return str(found[0]["change_table"])
    known = ", ".join(table["source"] for table in tables) or "nothing"
    wanted = "one table" if source is None else repr(source)
    raise LookupError(f"Expected a capture of {wanted} before this step, found captures of {known}.")


def stamp(part: str | int | None = None) -> dict[str, str]:
    """What the summary of a snapshot that the step writes should say, so that ``is_written`` finds it.

    A step that writes to one table several times names each part.
    """
    named: dict[str, str] = _read("DALSEGNO_CAPTURES").get("stamp") or _named_by_environment()
    return named if part is None or not named else {**named, _PART: str(part)}


def is_written(table: Any, name: str | None = None, *, part: str | int | None = None) -> bool:
    """Whether a table has what this step, in this or another attempt or run, wrote for the same captures.

    ``table`` is a table of PyIceberg, or a Spark session and ``name`` the table's; or, for any other engine, the
    summaries of the snapshots that lead to the table as it is now. What was rolled back since does not count. Without a
    capture there is nothing to look for, so the answer is False.
    """
    mine = stamp(part)
    wanted = {key: mine[key] for key in (*_SAME, *(() if part is None else (_PART,))) if key in mine}
    if _SAME[0] not in wanted:
        return False
    if name is not None:
        summaries = _summaries_by_spark(table, name, wanted[_SAME[0]])
    elif hasattr(table, "metadata"):
        summaries = _summaries_by_pyiceberg(table.metadata)
    else:
        summaries = iter(table)
    return any(all(summary.get(key) == value for key, value in wanted.items()) for summary in summaries)


def _summaries_by_spark(spark: Any, name: str, capture_ids: str) -> Iterator[Mapping[str, str]]:
    if not spark.catalog.tableExists(name):
        return iter(())
    quoted = ".".join(part if part.startswith("`") else f"`{part}`" for part in re.findall(r"`[^`]*`|[^.`]+", name))
    # Each part of the name is quoted, so it is a name, whatever it says.
    query = (
        f"SELECT s.summary FROM {quoted}.snapshots s JOIN {quoted}.history h ON s.snapshot_id = h.snapshot_id "  # noqa: S608
        "WHERE h.is_current_ancestor AND s.summary['dalsegno.captures'] = :captures"
    )
    return (row["summary"] for row in spark.sql(query, args={"captures": capture_ids}).collect())


def _summaries_by_pyiceberg(metadata: Any) -> Iterator[Mapping[str, str]]:
    known = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    snapshot = known.get(metadata.current_snapshot_id)
    while snapshot is not None:
        yield snapshot.summary or {}
        snapshot = known.get(snapshot.parent_snapshot_id)


def _named_by_environment() -> dict[str, str]:
    """What tells about the attempt where it processes no captures."""
    told = {"workflow": "WORKFLOW", "run": "RUN", "step": "STEP", "attempt": "KEY"}
    found = {name: os.environ.get(f"DALSEGNO_{variable}") for name, variable in told.items()}
    return {f"dalsegno.{name}": value for name, value in found.items() if value is not None}


def _read(variable: str) -> dict[str, Any]:
    file = os.environ.get(variable)
    values: dict[str, Any] = json.loads(Path(file).read_text(encoding="utf-8")) if file else {}
    return values
