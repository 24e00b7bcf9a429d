"""HTTP jobs that go on at the server: a request begins one, and looks at another address tell how far it is.

Nothing of such a job is on this machine: what the first answer said is its handle, by which any node can go on looking.
If whoever asked dies before that is stored, the request is made again, with the same ``Idempotency-Key``: a server that
knows the header begins one job. A look that gets no answer is no end: the job may go on, so there is another look.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dalsegno.errors import PlatformError, UserError
from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Succeeded
from dalsegno.steps.attempt_log import AttemptLog
from dalsegno.steps.contract import Finished, Progress, Running, Started, Work
from dalsegno.steps.fields import Fields
from dalsegno.steps.http.answers import GoesOn, by_status, judged
from dalsegno.steps.http.job import Refusal, checked_url, origin, without_private
from dalsegno.steps.http.requests import answer_to, headers_of, http_fields, method_of, request_of

DEFAULT_EVERY = 5.0

_IDEMPOTENCY_KEY = "Idempotency-Key"
_ACCEPTED = 202
#: Where a handle holds what the first answer said.
_BEGUN = "begun"
#: Files in the attempt's folder.
_ANSWER, _LOOKS = "http-begun", "http-looks"
#: ``{id}`` or ``{job.id}`` in an address.
_PLACEHOLDER = re.compile(r"\{([\w.-]+)\}")
_CANCEL_TRIES, _CANCEL_PAUSE = 3, 1.0
#: What a server answers about a job that is over, or of which it knows nothing any more.
_GONE = frozenset({404, 409, 410})


def is_wanted(work: Work) -> bool:
    """Whether the step says that its request begins a job."""
    block = work.params.get("http")
    return isinstance(block, Mapping) and block.get("poll") is not None


def is_begun(work: Work) -> bool:
    return _BEGUN in (work.handle or {})


def begin(work: Work) -> Started | Finished:
    """Make the request that begins the job, unless that was done."""
    if known := _recorded(work):
        return Started(known)
    try:
        step = _Step.of(work)
        request = request_of(work, step.fields)
    except UserError as error:
        return Finished(Failed(FailureKind.FATAL, error.message, error.hint))
    if _IDEMPOTENCY_KEY.lower() not in map(str.lower, request["headers"]):
        request["headers"][_IDEMPOTENCY_KEY] = work.key
    answer = answer_to(work, request)
    step.log.write(_told(answer, f"{request['method']} {request['url']}"))
    outcome = answer if isinstance(answer, Failed) else by_status(_published(answer))
    if isinstance(answer, Failed) or not isinstance(outcome, Succeeded):
        return Finished(step.log.masked_outcome(outcome))
    try:
        handle = {_BEGUN: step.needed(answer)}
    except UserError as error:
        return Finished(Failed(FailureKind.FATAL, error.message, error.hint))
    # The store has it next. Whoever dies in between asks again, with the same key.
    with suppress(OSError):
        _write(work.folder / _ANSWER, handle)
    return Started(handle)


def poll(work: Work, patience: float) -> Running | Finished:
    """Look if it is time to, or wait a little."""
    try:
        step = _Step.of(work)
        looks = _Looks.so_far(work)
        if (seconds := step.every - looks.age) > patience:
            time.sleep(patience)
            return Running(looks.progress)
        time.sleep(max(seconds, 0))
        # Before the look: where the disk is full, nobody would know that there was one, and there would be no pause.
        _write(work.folder / _LOOKS, {"number": looks.number, "said": looks.said})
        answer = answer_to(work, step.request("GET", step.poll_url, step.polling.text("url")))
    except UserError as error:
        return Finished(Failed(FailureKind.FATAL, error.message, error.hint))
    said = step.log.masked(_told(answer, f"GET {step.poll_url}"))
    if said != looks.said:
        step.log.write(said)
    outcome = answer if isinstance(answer, Failed) else judged(work, _published(answer))
    if isinstance(outcome, GoesOn) or _is_unsettled(step, answer, outcome):
        looks = _Looks(looks.number + 1, said)
        _write(work.folder / _LOOKS, {"number": looks.number, "said": said})
        return Running(looks.progress)
    return Finished(step.log.masked_outcome(outcome))


def _is_unsettled(step: _Step, answer: Mapping[str, Any] | Failed, outcome: Outcome) -> bool:
    """Whether nobody knows how far the job is; to fail would be to begin another while it goes on."""
    if isinstance(answer, Failed):
        return answer.kind is FailureKind.PLATFORM
    if step.judges:
        return False
    is_passing = isinstance(outcome, Failed) and outcome.kind is FailureKind.PLATFORM
    return is_passing or answer["status_code"] == _ACCEPTED


def cancel(work: Work) -> None:
    """Tell the server, if the step says how."""
    work = replace(work, handle=work.handle or _recorded(work))
    step = _Step.of(work)
    if not is_begun(work):
        step.log.note("It is not known whether the job was begun: if it was, it goes on at the server.")
        return
    if step.cancelling is None:
        step.log.note("The step does not say how to cancel the job (http.poll.cancel): it goes on at the server.")
        return
    template = step.cancelling.text("url") or step.polling.text("url")
    url = step.filled(template) or step.poll_url
    request = step.request(method_of(step.cancelling, "DELETE"), url, template)
    for number in range(_CANCEL_TRIES):
        time.sleep(_CANCEL_PAUSE if number else 0)
        answer = answer_to(work, request)
        said = step.log.masked(_told(answer, f"{request['method']} {url}"))
        step.log.write(said)
        if not isinstance(answer, Failed) and (
            answer["status_code"] in _GONE or isinstance(by_status(answer), Succeeded)
        ):
            return
    raise PlatformError(f"The job could not be cancelled at the server: {said}", hint="End it there by hand.")


@dataclass(frozen=True)
class _Step:
    """What a step says about its job, and what the server said."""

    work: Work
    fields: Fields
    polling: Fields
    cancelling: Fields | None
    every: float
    log: AttemptLog

    @classmethod
    def of(cls, work: Work) -> _Step:
        fields = http_fields(work)
        polling = _inner(work, "http.poll", fields.mapping("poll"))
        cancelling = None
        if polling.values.get("cancel") is not None:
            cancelling = _inner(work, "http.poll.cancel", polling.mapping("cancel"))
            method_of(cancelling, "DELETE")
        every = polling.seconds("every", DEFAULT_EVERY)
        return cls(work, fields, polling, cancelling, every, AttemptLog(work.log, work.secrets, limit=work.log_limit))

    @property
    def judges(self) -> bool:
        """Whether the step itself says what an answer means."""
        return isinstance(self.work.params.get("state_expr"), str)

    @property
    def begun(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = (self.work.handle or {})[_BEGUN]
        return found

    @property
    def poll_url(self) -> str:
        return self.filled(self.polling.text("url")) or self.begun["location"]

    def filled(self, template: str | None) -> str:
        """An address with values of the first answer in it, which cannot become anything else than a part of it."""
        values = self.begun["values"]
        return _PLACEHOLDER.sub(lambda found: quote(str(values[found[1]]), safe=""), template or "")

    def needed(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """What of the first answer the addresses need: it is stored, so no more than that."""
        templates = [self.polling.text("url"), self.cancelling and self.cancelling.text("url")]
        names = {name for template in templates for name in _PLACEHOLDER.findall(template or "")}
        location = answer.get("location", "")
        if not location and not self.polling.text("url"):
            raise UserError(
                f"The server answered {answer['status_code']} without a header Location, so there is nowhere to look.",
                hint="Name the address in http.poll.url, such as https://HOST/jobs/{id} with the field id of its JSON.",
            )
        return {"location": location, "values": {name: _value(answer["response_body"], name) for name in names}}

    def request(self, method: str, url: str, template: str | None) -> dict[str, Any]:
        """A request about the job, with the headers of the one that began it unless the step has others for it.

        Those of the step's own are for the host that the step names, and not for one that a server named.
        """
        request = {**request_of(self.work, self.fields), "method": method, "url": url, "body": None}
        meant_for = self.fields.required("url")
        if self.polling.values.get("headers") is not None:
            request["headers"] = headers_of(self.polling)
            meant_for = _PLACEHOLDER.sub("", template) if template else meant_for
        try:
            is_same = origin(checked_url(url)) == origin(checked_url(meant_for))
        except (Refusal, ValueError):
            # What is wrong with it is said by whoever makes the request.
            is_same = False
        if not is_same:
            request["headers"] = without_private(request["headers"], request["secrets"])
        return request


@dataclass(frozen=True)
class _Looks:
    """How often was looked, and what was seen last."""

    number: int = 0
    said: str = ""
    #: Seconds since then.
    age: float = float("inf")

    @classmethod
    def so_far(cls, work: Work) -> _Looks:
        file = work.folder / _LOOKS
        try:
            # A clock that was set back must not keep it from looking.
            age = abs(time.time() - file.stat().st_mtime)
            return replace(cls(**json.loads(file.read_bytes())), age=age)
        except FileNotFoundError:
            return cls()

    @property
    def progress(self) -> Progress:
        return Progress(self.number, unit="looks", message=self.said)


def _inner(work: Work, name: str, values: dict[str, Any]) -> Fields:
    return Fields(replace(work, params={name: values}), name)


def _told(answer: Mapping[str, Any] | Failed, request: str) -> str:
    return answer.message if isinstance(answer, Failed) else f"{request}: {answer['status_code']}"


def _published(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "location"}


def _value(body: str, name: str) -> str | int:
    """A field of the answer, which is JSON: ``id``, ``job.id`` or ``jobs.0.id``."""
    try:
        found = json.loads(body)
        for part in name.split("."):
            found = found[int(part)] if isinstance(found, list) else found[part]
    except (ValueError, KeyError, IndexError, TypeError):
        found = None
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        beginning = " ".join(body.split())[:200] or "it is empty"
        raise UserError(f"The answer has no text or number {name!r}, needed by http.poll to find the job: {beginning}")
    return found


def _write(file: Path, content: Mapping[str, Any]) -> None:
    draft = file.with_name(f".{file.name}")
    draft.write_text(json.dumps(content))
    draft.replace(file)


def _recorded(work: Work) -> Mapping[str, Any] | None:
    try:
        handle: Mapping[str, Any] = json.loads((work.folder / _ANSWER).read_bytes())
    except FileNotFoundError:
        return None
    return handle
