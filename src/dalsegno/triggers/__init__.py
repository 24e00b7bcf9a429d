"""What starts runs by itself: a package per kind of trigger, and the table of kinds.

A kind is a slice through the layers: each of its modules is named after a layer, and imports what that layer may:

model        the definition, a subclass of ``model.workflow.Trigger``
spec         ``LANGUAGE``: reads triggers from a workflow's text, checks them, writes them back
plan         when a run starts, decided purely
engine       ``STARTER``: registers the triggers of an active version, looks at them, and starts runs
operations   ``VIEWS``: when triggers start runs, as data
cli          ``lines``: the same as text

``triggers.spec``, ``triggers.engine``, ``triggers.operations`` and ``triggers.cli`` say what each of them must have. A
kind that needs more tables than ``triggers`` has them in ``store``. The store knows a trigger by its kind and its name.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Kind → its package. In a workflow's JSON, ``KIND_triggers`` lists them, and ``KIND_trigger_disabled`` turns them off.
#: The first is the default where ``Trigger:`` has no field that names another kind.
TRIGGERS = {
    "time": "dalsegno.triggers.time_triggers",
    "signal": "dalsegno.triggers.signal_triggers",
    "incremental": "dalsegno.triggers.table_triggers",
}


def part_of(kind: str, layer: str, name: str) -> Any:
    """What a kind has in a layer. Nothing is imported before: a command that reads needs nothing that starts runs."""
    return getattr(import_module(f"{TRIGGERS[kind]}.{layer}"), name)
