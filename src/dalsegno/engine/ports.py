"""What the engine asks of the layers above it: all of its calls upwards are in here."""

from __future__ import annotations

from typing import Protocol

from dalsegno.engine.blueprints import Blueprint
from dalsegno.model.templates import JobTemplate


class Versions(Protocol):
    """Versions of workflows. A version never changes, so whoever has one may keep it."""

    def blueprint(self, workflow_id: str, version: int) -> Blueprint: ...

    def named(self, workflow_id: str, version: str) -> Blueprint:
        """``version`` is a number, ``active``, ``default`` or ``latest``."""


class EngineHost(Protocol):
    """What runs an engine. Any number of threads may call it."""

    @property
    def versions(self) -> Versions: ...

    def template(self, job_type: str, version: str | None) -> JobTemplate:
        """The job template of this version; None: the default one."""

    def secret(self, name: str) -> str:
        """The value of a secret; ``UserError`` if there is none."""

    def tidy_up(self, capture_id: str) -> None:
        """Remove what a committed capture leaves behind; what fails is left for ``dalsegno clean``."""
