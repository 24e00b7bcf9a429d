"""Which runner runs which type of step: the built-in ones of ``spec.step_types``, and those of other packages.

Nothing is imported before a step of its type runs.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any

from dalsegno.errors import PlatformError, UnknownName, UserError
from dalsegno.hints import did_you_mean
from dalsegno.spec.step_types import STEP_TYPES, added_types, step_type
from dalsegno.steps.contract import AnyRunner, WithoutJob


def runner(type_name: str) -> AnyRunner:
    """The runner of a type; upper and lower case do not matter."""
    if known := step_type(type_name):
        if not known.runner:
            raise UserError(
                f"Steps of type {type_name} are understood, but not run here.",
                hint=f"Use type {known.instead}, or add a type of your own: docs/how-to/write-a-step-type.md.",
            )
        module, _, kind = known.runner.partition(":")
        made: AnyRunner = getattr(import_module(module), kind)()
        return made
    added = added_types()
    if type_name.lower() in added:
        return _loaded(added[type_name.lower()])
    names = sorted({*(name for name, each in STEP_TYPES.items() if each.runner), *added})
    raise UnknownName(f"There is no step type {type_name!r}.", hint=did_you_mean(type_name.lower(), names))


def _loaded(point: EntryPoint) -> AnyRunner:
    try:
        made: Any = point.load()()
    except Exception as error:
        raise PlatformError(
            f"The step type {point.name} of {point.value} cannot be loaded: {type(error).__name__}: {error}."
        ) from error
    parts = ("raw",) if isinstance(made, WithoutJob) else ("start", "poll", "cancel", "raw")
    missing = [part for part in parts if not hasattr(made, part)]
    if missing:
        raise UserError(
            f"The step type {point.name} of {point.value} has no {', '.join(missing)}.",
            hint="See docs/how-to/write-a-step-type.md.",
        )
    loaded: AnyRunner = made
    return loaded
