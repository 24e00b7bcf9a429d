"""Which runner runs which type of step.

The built-in ones, by name; and those of other packages, by entry points of the group ``dalsegno.steps``. Nothing is
imported before a step of its type is run.
"""

from __future__ import annotations

import difflib
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from dalsegno.errors import PlatformError, UnknownName, UserError
from dalsegno.steps.contract import Runner

GROUP = "dalsegno.steps"

#: In lower case: where the class is.
BUILT_IN = {
    "container": "dalsegno.steps.container:ContainerRunner",
    "http": "dalsegno.steps.http.runner:HttpRunner",
    "icdc": "dalsegno.steps.incremental:IcdcRunner",
    "ipcapture": "dalsegno.steps.incremental:CaptureRunner",
    "ipcommit": "dalsegno.steps.incremental:CommitRunner",
    "java": "dalsegno.steps.java:JavaRunner",
    "notebook": "dalsegno.steps.notebook:NotebookRunner",
    "python": "dalsegno.steps.python:PythonRunner",
    "shell": "dalsegno.steps.shell:ShellRunner",
    "spark": "dalsegno.steps.spark.runner:SparkRunner",
    "sql": "dalsegno.steps.sql:SqlRunner",
}
#: Maestro's types that need a cluster, and what does the same without one.
ELSEWHERE = {"kubernetes": "Container", "titus": "Container"}


def runner(type_name: str) -> Runner:
    """The runner of a type; upper and lower case do not matter."""
    name = type_name.lower()
    if name in ELSEWHERE:
        raise UserError(
            f"Steps of type {type_name} are understood, but not run here.",
            hint=f"Use type {ELSEWHERE[name]}, or add a type of your own: docs/how-to/write-a-step-type.md.",
        )
    if name in BUILT_IN:
        module, _, kind = BUILT_IN[name].partition(":")
        made: Runner = getattr(import_module(module), kind)()
        return made
    added = added_types()
    if name in added:
        return _loaded(added[name])
    known = sorted({*BUILT_IN, *added})
    close = difflib.get_close_matches(name, known, n=1)
    raise UnknownName(
        f"There is no step type {type_name!r}.",
        hint=f"Did you mean {close[0]!r}?" if close else f"Known are: {', '.join(known)}.",
    )


def added_types() -> dict[str, EntryPoint]:
    """The types of other packages that are installed; none takes the place of a built-in one."""
    return {point.name.lower(): point for point in entry_points(group=GROUP)}


def _loaded(point: EntryPoint) -> Runner:
    try:
        made: Any = point.load()()
    except Exception as error:
        raise PlatformError(
            f"The step type {point.name} of {point.value} cannot be loaded: {type(error).__name__}: {error}."
        ) from error
    missing = [part for part in ("start", "poll", "cancel", "raw") if not hasattr(made, part)]
    if missing:
        raise UserError(
            f"The step type {point.name} of {point.value} has no {', '.join(missing)}.",
            hint="See docs/how-to/write-a-step-type.md.",
        )
    runner: Runner = made
    return runner
