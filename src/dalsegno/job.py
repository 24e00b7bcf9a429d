"""For the code of a step: what it was given, and what it hands on.

    from dalsegno import job

    day = job.param("day")
    job.output(rows=42)

Needs nothing but the standard library, and works in a script, a notebook or a container alike. The same can be had
without it: ``DALSEGNO_PARAMS`` names a JSON file with the parameters, and lines such as ``rows=42`` or ``{"rows": 42}``
in the file that ``DALSEGNO_OUTPUT`` names become output parameters.

Outside of a run there are no parameters, so a default is what counts, and outputs are printed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_REQUIRED = object()


def params() -> dict[str, Any]:
    """The step's parameters by name."""
    file = os.environ.get("DALSEGNO_PARAMS")
    if not file:
        return {}
    values: dict[str, Any] = json.loads(Path(file).read_text(encoding="utf-8"))
    return values


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


def key() -> str | None:
    """Names this attempt of this step and no other, such as for a request that must not be made twice."""
    return os.environ.get("DALSEGNO_KEY")


def attempt() -> int:
    """1 for the first try of the step in its run, 2 for the next."""
    return int(os.environ.get("DALSEGNO_ATTEMPT", "1"))
