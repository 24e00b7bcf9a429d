"""The environment of a job: little of dalsegno's own, which may hold passwords, and what tells the job about itself."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from dalsegno.errors import UserError
from dalsegno.steps.capture_file import CAPTURES_FILE, captures_file
from dalsegno.steps.contract import Work
from dalsegno.steps.inherited import INHERITED
from dalsegno.steps.secret_values import is_own, without_secrets

#: Where traces go, if anybody wants them.
OTLP_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
#: Names of files in the attempt's folder.
PARAMS_FILE, OUTPUT_FILE = "params.json", "output"


def inherited(work: Work, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the job may know of the environment that dalsegno itself has."""
    environment = os.environ if environment is None else environment
    patterns = (*INHERITED, *work.settings.pass_environment)
    # A pattern such as ``*`` may mean more than its author thought of; a name means what it says.
    harmless = without_secrets(environment, work.settings)
    return {
        name: value
        for name, value in environment.items()
        if (name in harmless and any(fnmatchcase(name, pattern) for pattern in patterns))
        or (name in patterns and not is_own(name))
    }


def job_environment(work: Work, variables: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a job: inherited < the step's own < what tells it about itself."""
    return {
        **inherited(work),
        # Output that waits in a buffer is no help to whoever watches the log.
        "PYTHONUNBUFFERED": "1",
        **variables,
        "DALSEGNO_KEY": work.key,
        "DALSEGNO_WORKFLOW": work.workflow_id,
        "DALSEGNO_RUN": str(work.run_number),
        "DALSEGNO_STEP": work.step_id,
        "DALSEGNO_ATTEMPT": str(work.attempt),
        "DALSEGNO_PARAMS": str(work.folder / PARAMS_FILE),
        "DALSEGNO_OUTPUT": str(work.folder / OUTPUT_FILE),
        **({"DALSEGNO_CAPTURES": str(work.folder / CAPTURES_FILE)} if work.captures else {}),
        # What the job tells of itself becomes a part of the run's trace.
        **({"TRACEPARENT": work.traceparent} if work.traceparent and os.environ.get(OTLP_ENDPOINT) else {}),
    }


def job_params(work: Work, block: str) -> dict[str, Any]:
    """The parameters that a job can ask for: the step's, without the block that says what the job is."""
    return {**work.references, **{name: value for name, value in work.params.items() if name != block}}


def job_files(work: Work, block: str) -> dict[str, str]:
    """What a job can read: its parameters, and the captures that it processes if there are any."""
    return {PARAMS_FILE: json.dumps(job_params(work, block)), **captures_file(work)}


def refuse_impossible(texts: Mapping[str, str]) -> None:
    """No process can be given a NUL character, nor text that is not Unicode."""
    for where, text in texts.items():
        if "\0" in text:
            raise UserError(f"{where} holds a NUL character, which no process can be given.")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UserError(f"{where} is not valid Unicode: {error.reason}.") from error
