"""Which files are watched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dalsegno.model.workflow import Workflow
from dalsegno.triggers.operations import OutlookRequest, TriggerViews
from tests.triggers.file_triggers.model import FileTrigger


@dataclass(frozen=True)
class FileTriggerView:
    kind: str
    path: str


class FileViews(TriggerViews[FileTrigger]):
    def views(
        self, triggers: Sequence[FileTrigger], workflow: Workflow | None, request: OutlookRequest
    ) -> list[FileTriggerView]:
        return [] if request.is_simulated else [FileTriggerView(each.kind, each.path) for each in triggers]

    def watched(self, triggers: Sequence[FileTrigger]) -> Sequence[str]:
        return [trigger.path for trigger in triggers]


VIEWS = FileViews()
