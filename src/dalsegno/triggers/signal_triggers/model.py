"""Signal triggers, as they are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from dalsegno.model.params import ParamDefinitions
from dalsegno.model.workflow import SignalDependency, Trigger


@dataclass(frozen=True)
class SignalTrigger(Trigger):
    """Begin a run when all these signals are there with equal join keys."""

    kind: ClassVar[str] = "signal"

    definitions: Mapping[str, SignalDependency]
    join_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    params: ParamDefinitions = field(default_factory=dict)
    condition: str | None = None
    dedup_expr: str | None = None
