"""File triggers as they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dalsegno.model.workflow import Trigger


@dataclass(frozen=True)
class FileTrigger(Trigger):
    """Start a run when the file is there, and whenever it was written since."""

    kind: ClassVar[str] = "file"

    path: str
