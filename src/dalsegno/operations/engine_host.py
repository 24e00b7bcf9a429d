"""What engines of this process ask for: versions, templates, secrets, and that somebody tidies up after captures."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from dalsegno.errors import DalsegnoError, UserError
from dalsegno.model.templates import JobTemplate
from dalsegno.operations.template_finder import TemplateFinder
from dalsegno.operations.workflow_versions import Versions
from dalsegno.settings import FILE_NAME, Settings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Host:
    """An ``engine.ports.EngineHost``."""

    settings: Settings
    versions: Versions
    templates: TemplateFinder
    clock: Callable[[], datetime]

    def template(self, job_type: str, version: str | None) -> JobTemplate:
        return self.templates.find(job_type, version)

    @cached_property
    def _known_secrets(self) -> Mapping[str, str]:
        return self.settings.secrets

    def secret(self, name: str) -> str:
        variable = f"DALSEGNO_SECRET_{name.upper()}"
        found = self._known_secrets.get(name) or os.environ.get(variable)
        if found is None:
            raise UserError(
                f"There is no secret {name!r}.",
                hint=f"Put it under [secrets] in {FILE_NAME}, or set {variable} in the environment.",
            )
        return found

    def tidy_up(self, capture_id: str) -> None:
        # Most workflows capture nothing, and it takes long to import.
        from dalsegno.capture.lake import Lake  # noqa: PLC0415

        try:
            with Lake.open(self.settings, clock=self.clock) as lake:
                problems = lake.tidy_up(capture_id)
        except DalsegnoError as error:
            problems = (error.message,)
        for problem in problems:
            log.warning("capture %s left something behind, which the next clean-up removes: %s", capture_id, problem)
