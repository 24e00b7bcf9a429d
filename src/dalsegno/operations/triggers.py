"""The verbs of triggers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from dalsegno.operations.context import Context
from dalsegno.operations.trigger_outlook import (
    Outlook,
    outlook_of_trigger,
    outlook_of_workflow,
    trigger_in_argument,
)
from dalsegno.triggers.operations import OutlookRequest

if TYPE_CHECKING:
    from dalsegno.model.workflow import Definition

__all__ = ["Outlook", "TriggerSource", "Triggers"]


@dataclass(frozen=True)
class TriggerSource:
    """Where triggers are written: in the text of a workflow; or a cron line, or the id of a pushed workflow."""

    argument: str = ""
    text: bytes | None = None
    #: What the text is called in messages.
    file: str = "workflow"


class Triggers:
    def __init__(self, context: Context) -> None:
        self._context = context

    def outlook(
        self,
        source: TriggerSource,
        *,
        at: datetime,
        timezone: str | None = None,
        count: int = 5,
        is_simulated: bool = False,
    ) -> Outlook:
        """The triggers with their past and next due times; or when they would have started runs, by tables' history."""
        request = OutlookRequest(
            at=at,
            count=count,
            timezone=timezone,
            is_simulated=is_simulated,
            settings=self._context.settings if is_simulated else None,
        )
        written = trigger_in_argument(source.argument) if source.text is None else None
        if written is not None:
            return outlook_of_trigger(written, source.argument, request)
        return outlook_of_workflow(*self._definition(source), request)

    def _definition(self, source: TriggerSource) -> tuple[Definition, bool]:
        """A workflow, and whether it is active."""
        if source.text is not None:
            from dalsegno.spec.reading.context import AnyStepType  # noqa: PLC0415 - PyYAML takes a moment
            from dalsegno.spec.workflows import read  # noqa: PLC0415

            definition = read(source.text, file=source.file, types=AnyStepType()).definition
            return definition, definition.is_active
        versions = self._context.machinery.versions
        is_active = versions.row(source.argument)["active_version"] is not None
        return versions.named(source.argument, "default").definition, is_active
