"""What the verbs of captures work with."""

from __future__ import annotations

from dataclasses import dataclass

from dalsegno.capture.tables import Tables
from dalsegno.clock import Clock
from dalsegno.settings import Settings
from dalsegno.store import Store


@dataclass(frozen=True)
class CaptureContext:
    tables: Tables
    store: Store
    clock: Clock
    #: Who is recorded as having captured or moved a checkpoint.
    actor: str

    @property
    def settings(self) -> Settings:
        return self.tables.settings
