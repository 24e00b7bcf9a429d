"""Steps that make an HTTP request, by a process of its own (``job``), which can be ended.

Where a request begins a job that goes on at the server, ``polling`` follows it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Succeeded
from dalsegno.steps.contract import Finished, Running, Started, Work
from dalsegno.steps.http import polling
from dalsegno.steps.http.answers import GoesOn, judged
from dalsegno.steps.http.requests import COMMAND, EXIT_CODES, OUTPUT_LIMIT, http_fields, request_of
from dalsegno.steps.processes import ProcessRunner, command_job
from dalsegno.steps.supervision import Ended, Job


class HttpRunner(ProcessRunner):
    """``http: {url: …, method: …, headers: …, body: …}``."""

    name: ClassVar[str] = "Http"
    raw: ClassVar[frozenset[str]] = frozenset({"state_expr"})
    exit_codes: ClassVar[Mapping[int, FailureKind]] = EXIT_CODES
    output_limit: ClassVar[int] = OUTPUT_LIMIT

    def start(self, work: Work) -> Started | Finished:
        return polling.begin(work) if polling.is_wanted(work) else super().start(work)

    def poll(self, work: Work, patience: float) -> Running | Finished:
        return polling.poll(work, patience) if polling.is_begun(work) else super().poll(work, patience)

    def cancel(self, work: Work) -> None:
        if polling.is_wanted(work) or polling.is_begun(work):
            polling.cancel(work)
        else:
            super().cancel(work)

    def job(self, work: Work) -> Job:
        request = request_of(work, http_fields(work))
        return command_job(work, "http", list(COMMAND), input=json.dumps(request))

    def outcome(self, work: Work, ended: Ended) -> Outcome:
        match super().outcome(work, ended):
            case Succeeded(outputs):
                match judged(work, outputs):
                    case GoesOn():
                        return Failed(
                            FailureKind.FATAL,
                            "state_expr gave RUNNING, but the step does not say where to look again.",
                            "Say so by http.poll.",
                            outputs,
                        )
                    case outcome:
                        return outcome
            case other:
                return other
