"""For the code of a step: what it was given, and what it hands on.

    from dalsegno import job

    day = job.param("day")
    job.output(rows=42)

Needs nothing but the standard library, and works in a script, a notebook or a container alike. The same can be had
without it: ``DALSEGNO_PARAMS`` names a JSON file with the parameters, ``DALSEGNO_CAPTURES`` one with the captures that
the step processes, and lines such as ``rows=42`` or ``{"rows": 42}`` in the file that ``DALSEGNO_OUTPUT`` names become
output parameters.

A step that comes after a capture may be run again for the same rows: it may have died after it wrote, and before that
was known. A stamp in the snapshot that holds the rows says that they are there, whoever asks:

    with job.write(target) as write:
        if write:
            target.append(rows, snapshot_properties=write.stamp)

    with job.write((spark, "lake.db.target")) as write:
        if write:
            changes.writeTo("lake.db.target").append()

Outside of a run there are no parameters and no captures, so a default is what counts, and outputs are printed.

    step        parameters, outputs, captures and the stamp
    writes      is_written, write
    evidence    whether the snapshots of a table say that a step has written
    tables      the snapshots of a table; read by targets (PyIceberg) and spark_tables
"""

from __future__ import annotations

from dalsegno.job.step import (
    announce,
    attempt,
    captures,
    change_table,
    key,
    output,
    param,
    params,
    stamp,
)
from dalsegno.job.tables import TargetError
from dalsegno.job.writes import Write, is_written, write

__all__ = [
    "TargetError",
    "Write",
    "announce",
    "attempt",
    "captures",
    "change_table",
    "is_written",
    "key",
    "output",
    "param",
    "params",
    "stamp",
    "write",
]
