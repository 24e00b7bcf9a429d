"""What signal triggers wait for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dalsegno.model.workflow import Workflow
from dalsegno.triggers.operations import OutlookRequest, TriggerViews
from dalsegno.triggers.signal_triggers.model import SignalTrigger
from dalsegno.triggers.signal_triggers.plan import named_triggers


@dataclass(frozen=True)
class SignalTriggerView:
    """One signal trigger; when it starts a run is not known ahead."""

    kind: str
    #: What it is registered as: the signals, with what is matched and joined.
    waits_for: str


class SignalViews(TriggerViews[SignalTrigger]):
    def views(
        self, triggers: Sequence[SignalTrigger], workflow: Workflow | None, request: OutlookRequest
    ) -> list[SignalTriggerView]:
        if request.is_simulated:
            return []
        return [SignalTriggerView(SignalTrigger.kind, name) for name in named_triggers(triggers)]


VIEWS = SignalViews()
