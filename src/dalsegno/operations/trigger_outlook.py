"""When the triggers of a workflow start runs, whatever their kind."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dalsegno.errors import UserError
from dalsegno.model.workflow import Definition, Trigger
from dalsegno.triggers.operations import OutlookRequest, all_views, views_of
from dalsegno.triggers.spec import languages


@dataclass(frozen=True)
class Outlook:
    """What was asked about, and what was found."""

    #: None if it is a trigger alone.
    workflow_id: str | None
    #: Whether runs are started at all.
    is_enabled: bool
    at: datetime
    #: A view per trigger, as its kind has it; each has a field ``kind``.
    triggers: list[Any]


def trigger_in_argument(text: str) -> Trigger | None:
    """A trigger that is written as one text, such as a cron line."""
    found = (language.from_argument(text) for language in languages().values())
    return next((trigger for trigger in found if trigger is not None), None)


def outlook_of_trigger(trigger: Trigger, text: str, request: OutlookRequest) -> Outlook:
    """Of a trigger without a workflow."""
    found = views_of(trigger.kind).views([trigger], None, request)
    if request.is_simulated and not found:
        raise UserError(f"{text!r} watches no tables, so there is no history to simulate it with.")
    return Outlook(None, True, request.at, found)


def outlook_of_workflow(definition: Definition, is_active: bool, request: OutlookRequest) -> Outlook:
    workflow, disabled = definition.workflow, definition.properties.disabled_triggers
    found: list[Any] = []
    for kind, views in all_views().items():
        found += views.views([each for each in workflow.triggers if each.kind == kind], workflow, request)
    is_enabled = is_active and not disabled & {view.kind for view in found}
    return Outlook(workflow.id, is_enabled, request.at, found)
