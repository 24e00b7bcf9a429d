"""What a step was given, and what it hands on: all of it is in files and variables of the attempt."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_REQUIRED = object()
#: The property that tells several writes of one step to one table apart.
PART = "dalsegno.statement"
#: The output that fails the step with a message, however the job ends; it is not tried again by itself.
FAILURE = "dalsegno_failure"


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
    found: list[dict[str, Any]] = captures_file().get("captures", [])
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
    named: dict[str, str] = captures_file().get("stamp") or _named_by_environment()
    return named if part is None or not named else {**named, PART: str(part)}


def captures_file() -> dict[str, Any]:
    """What ``DALSEGNO_CAPTURES`` says; empty if the step comes after no capture."""
    return _read("DALSEGNO_CAPTURES")


def _named_by_environment() -> dict[str, str]:
    """What tells about the attempt where it processes no captures."""
    told = {"workflow": "WORKFLOW", "run": "RUN", "step": "STEP", "attempt": "KEY"}
    found = {name: os.environ.get(f"DALSEGNO_{variable}") for name, variable in told.items()}
    return {f"dalsegno.{name}": value for name, value in found.items() if value is not None}


def _read(variable: str) -> dict[str, Any]:
    file = os.environ.get(variable)
    values: dict[str, Any] = json.loads(Path(file).read_text(encoding="utf-8")) if file else {}
    return values
