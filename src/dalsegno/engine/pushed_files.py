"""What was pushed of the files that a step names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache

from dalsegno.engine.records import OpenRun
from dalsegno.engine.scopes import Scopes
from dalsegno.errors import PlatformError
from dalsegno.model.runs import Flow
from dalsegno.model.step_files import StepFile
from dalsegno.model.workflow import Step
from dalsegno.store import step_files


def pushed_files(
    scopes: Scopes, run: OpenRun, flow: Flow, step: Step, now: datetime
) -> Callable[[str, str], str | None]:
    """The content of a file by field and name: of the run's version, else of the job template; None if neither has it.

    A field that the step itself gives is the version's, also if only a run knows which file it names.
    """

    # Whoever asks again, as at the end of a job, is told the same, also if the job template was pushed again since.
    @cache
    def content(field: str, name: str) -> str | None:
        own = run.blueprint.file_of.get((step.id, field))
        if own is not None:
            return _content(scopes, own, name)
        template = scopes.template_of(step, scopes.around(run, flow, now))
        found = next((each for each in template.files if each.field == field), None) if template else None
        return _content(scopes, found, name) if found else None

    return content


def _content(scopes: Scopes, file: StepFile, name: str) -> str | None:
    if file.digest is None or file.name != name:
        return None
    with scopes.store.database.reading() as connection:
        found = step_files.content(connection, file.digest)
    if found is None:
        # A job template was pushed again in between.
        raise PlatformError(f"The content of {file.name} ({file.digest[:12]}) is no longer in the store.")
    return found
