"""The requests of HTTP steps: what a step says about one, and how it is made, by a process of its own."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from dalsegno import sel
from dalsegno.errors import UserError
from dalsegno.model.outcomes import Failed, FailureKind
from dalsegno.spec.step_types import HTTP_METHODS
from dalsegno.steps.contract import Work
from dalsegno.steps.environment import job_environment
from dalsegno.steps.fields import Fields
from dalsegno.steps.http import job as http_job
from dalsegno.steps.outputs import read_outputs

DEFAULT_SECONDS = 30.0
COMMAND = (sys.executable, "-I", "-S", http_job.__file__)
#: What its exit codes mean.
EXIT_CODES = {http_job.PASSING: FailureKind.PLATFORM, http_job.REFUSED: FailureKind.FATAL}
#: Written as JSON, a text can be six times as long.
OUTPUT_LIMIT = 8 * http_job.BODY_LIMIT

#: How much longer than the request its process may take, on a machine that is busy.
_PROCESS_SECONDS = 30.0
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def http_fields(work: Work) -> Fields:
    """What the step says, ``state_expr`` included if it has one, or an error about it."""
    if isinstance(expression := work.params.get("state_expr"), str):
        sel.parse(expression)
    return Fields(work, "http")


def request_of(work: Work, fields: Fields) -> dict[str, Any]:
    """The request that a step describes."""
    return {
        "url": fields.required("url"),
        "method": method_of(fields, "GET"),
        "headers": headers_of(fields),
        "body": body_of(fields),
        "timeout": fields.seconds("timeout", DEFAULT_SECONDS),
        "follow": fields.flag("follow_redirects", default=True),
        "allow": list(work.settings.http_allow),
        # What no other host may get.
        "secrets": list(work.secrets),
    }


def answer_to(work: Work, request: Mapping[str, Any]) -> Mapping[str, Any] | Failed:
    """Make a request and wait for its answer: ``status_code``, ``response_body`` and ``location``."""
    file = work.folder / f".answer-{secrets.token_hex(4)}"
    environment = {**job_environment(work, {}), "DALSEGNO_OUTPUT": str(file)}
    try:
        done = subprocess.run(
            COMMAND,
            input=json.dumps({**request, "tell_location": True}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
            cwd=work.folder,
            timeout=request["timeout"] + _PROCESS_SECONDS,
            check=False,
        )
        if done.returncode == 0:
            return read_outputs(file, work.secrets, limit=OUTPUT_LIMIT)
        return Failed(EXIT_CODES.get(done.returncode, FailureKind.USER), done.stdout.strip())
    except UserError as error:
        return Failed(FailureKind.USER, error.message, error.hint)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Failed(FailureKind.PLATFORM, f"The request could not be made: {error}.")
    finally:
        file.unlink(missing_ok=True)


def method_of(fields: Fields, default: str) -> str:
    method = (fields.text("method") or default).upper()
    if method not in HTTP_METHODS:
        raise UserError(f"{fields.block}.method is {method!r}, expected one of {', '.join(HTTP_METHODS)}.")
    return method


def headers_of(fields: Fields) -> dict[str, str]:
    headers = {name: fields.plain(f"headers.{name}", value) for name, value in fields.mapping("headers").items()}
    if isinstance(fields.values.get("body"), dict | list) and "content-type" not in map(str.lower, headers):
        headers["Content-Type"] = "application/json"
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or re.search(r"[\r\n\0]", value):
            raise UserError(f"{fields.block}.headers: {name!r} is not a header, or its value has a line break.")
    return headers


def body_of(fields: Fields) -> str | None:
    """A text as it is; anything else as JSON."""
    body = fields.values.get("body")
    return body if body is None or isinstance(body, str) else json.dumps(body)
