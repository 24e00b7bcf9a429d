"""SQL in a Spark Connect session, statement by statement, by a thread of this process.

The thread writes how it ended into the attempt's folder before it lets go of the session, so that an end is known even
if nobody was there to hear of it. If this process dies, nobody goes on with the next statement: whoever looks after the
attempt next ends what is left in Spark, sees it gone, and reports a failure of the platform. The statements before it
are then executed again by the next attempt: a script is executed at least once, and never twice at a time. Every
snapshot that a statement makes carries the attempt and the statement's number.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from dalsegno.clock import utc_now
from dalsegno.errors import DalsegnoError, PlatformError
from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Stopped, Succeeded
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.spark.failures import explained
from dalsegno.steps import spark_rows, spark_sessions, stamps
from dalsegno.steps.contract import Finished, Progress, Running, Started, Work
from dalsegno.steps.supervision import shown_forms

#: Files in the attempt's folder.
_BEGAN, _OUTCOME = "spark-sql", "spark-outcome"
_INTERRUPT_AGAIN_SECONDS = 0.5

#: The threads of this process, by the attempt's key. A cache: what is not in here is found by the attempt's folder.
_running: dict[str, SqlThread] = {}
_guard = threading.Lock()


def begin(work: Work, statements: Sequence[str], conf: Mapping[str, str]) -> Started | Finished:
    """Execute the statements, unless that was done, or is being done by a thread of ours."""
    if outcome := _recorded(work):
        return Finished(outcome)
    (work.folder / _BEGAN).touch(mode=0o600)
    with _guard:
        if work.key not in _running:
            _running[work.key] = SqlThread(work, statements, conf)
            _running[work.key].start()
    return Started({"session": session_id_for(work.key)})


def began(work: Work) -> bool:
    """Whether the attempt's statements are, or were, executed by a thread."""
    return (work.folder / _BEGAN).exists()


def poll(work: Work, patience: float) -> Running | Finished:
    thread = _running.get(work.key)
    if thread is None:
        return Finished(_recorded(work) or _abandoned(work))
    thread.join(min(patience, _seconds_left(work)))
    if thread.is_alive() and _seconds_left(work) > 0:
        return Running(thread.progress)
    is_late = thread.is_alive()
    if is_late:
        thread.cancel()
    _running.pop(work.key, None)
    if is_late and isinstance(thread.outcome, Stopped):
        return Finished(Failed(FailureKind.TIMEOUT, "It took longer than it may, and was interrupted in Spark."))
    return Finished(thread.outcome)


def let_go(work: Work) -> None:
    """Interrupt what a thread of ours executes, for another process to execute it."""
    if thread := _running.pop(work.key, None):
        thread.cancel(
            Failed(FailureKind.PLATFORM, "The process that executed the SQL let go of it in the middle.", at_once=True)
        )


def cancel(work: Work) -> None:
    """Interrupt the statement that runs; returns when Spark has ended it. No further one is begun."""
    if thread := _running.get(work.key):
        thread.cancel()
        _running.pop(work.key, None)
    else:
        spark_sessions.cleared(work)


class SqlThread(threading.Thread):
    """Executes the statements of one attempt."""

    def __init__(self, work: Work, statements: Sequence[str], conf: Mapping[str, str]) -> None:
        # A daemon: whoever ends dalsegno in the middle of a query need not wait for it.
        super().__init__(name=f"spark-{work.key}", daemon=True)
        self.work = work
        self.statements = statements
        self.conf = conf
        self.log = Log(work.log, work.secrets)
        self.progress: Progress | None = None
        self.outcome: Outcome = Failed(FailureKind.PLATFORM, "The thread of the step died.")
        self._session: Session | None = None
        #: Which statement it is at.
        self._at = ""
        self._cancelled = threading.Event()
        self._cancelled_as: Outcome = Stopped("Cancelled.")

    def run(self) -> None:
        try:
            self.outcome = self._executed()
        except DalsegnoError as error:
            # A platform may be back by the next attempt; anything else it would meet again.
            kind = FailureKind.PLATFORM if isinstance(error, PlatformError) else FailureKind.FATAL
            self.outcome = Failed(kind, error.message, error.hint)
        except Exception as error:  # noqa: BLE001 - Spark's client raises whatever comes to it
            self.outcome = self._failed(error)
        self.outcome = self.log.masked_outcome(self.outcome)
        _record(self.work, self.outcome)
        if self._session:
            self._let_go(self._session)

    def cancel(self, outcome: Outcome | None = None) -> None:
        self._cancelled_as = outcome or self._cancelled_as
        self._cancelled.set()
        # Once may be too early: Spark may just be receiving the statement.
        while self.is_alive():
            if self._session:
                # A server that cannot be reached is seen by the thread as well.
                with suppress(Exception):
                    self._session.interrupt()
            self.join(_INTERRUPT_AGAIN_SECONDS)

    def _executed(self) -> Outcome:
        session = self._session = spark_sessions.opened(self.work, self.conf, self.log.note)
        session.tag(self.work.key)
        session.follow(self._note_progress)
        outputs: Mapping[str, Any] = {}
        for number, statement in enumerate(self.statements, start=1):
            if self._cancelled.is_set():
                return self._cancelled_as
            outputs = self._execute(session, number, statement)
        return Succeeded(outputs)

    def _execute(self, session: Session, number: int, statement: str) -> Mapping[str, Any]:
        which = f"statement {number} of {len(self.statements)}"
        session.configure(stamps.statement_stamp(number, statement))
        self.log.note(f"{which}:")
        self.log.write(statement)
        self._at = which
        if stamps.is_written(session, self.work, number, statement):
            self.log.note(f"{which} was executed for this capture before, and is not executed again")
            return {}
        began = time.perf_counter()
        rows = session.execute(statement, spark_rows.FETCHED + 1)
        self.log.note(f"{which} took {time.perf_counter() - began:.2f} s")
        if text := spark_rows.described(rows):
            self.log.write(text)
        return spark_rows.outputs(rows)

    def _note_progress(self, stages: Iterable[Any], running: int) -> None:
        known = list(stages)
        done, total = (sum(getattr(stage, name) for stage in known) for name in ("num_completed_tasks", "num_tasks"))
        megabytes = sum(stage.num_bytes_read for stage in known) / 1e6
        newest = max(stage.stage_id for stage in known)
        message = f"{self._at}, stage {newest}: {running} tasks running, {megabytes:,.1f} MB read"
        self.progress = Progress(done, total, "tasks", message)

    def _failed(self, error: Exception) -> Outcome:
        failure = explained(error)
        if failure.is_interruption:
            return self._cancelled_as if self._cancelled.is_set() else Stopped("Somebody interrupted it in Spark.")
        self.log.note("Spark says:")
        self.log.write(failure.details)
        return Failed(failure.kind, failure.message, failure.hint)

    def _let_go(self, session: Session) -> None:
        try:
            session.release()
        except Exception as error:  # noqa: BLE001 - it is over anyway, and the server forgets the session in time
            self.log.note(f"the session could not be released: {explained(error).message}")


class Log:
    """What a step's thread has to say, without secrets."""

    def __init__(self, path: Path, secrets: Iterable[str]) -> None:
        self._path = path
        # The longest first: one may be part of another.
        self._secrets = sorted({form for secret in secrets for form in shown_forms(secret)}, key=len, reverse=True)

    def note(self, text: str) -> None:
        self.write(f"[dalsegno] {text}")

    def write(self, text: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(self._masked(text).rstrip("\n") + "\n")

    def masked_outcome(self, outcome: Outcome) -> Outcome:
        if not isinstance(outcome, Failed):
            return outcome
        hint = outcome.hint and self._masked(outcome.hint)
        return replace(outcome, message=self._masked(outcome.message), hint=hint)

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def _seconds_left(work: Work) -> float:
    return float("inf") if work.deadline is None else (work.deadline - utc_now()).total_seconds()


def _abandoned(work: Work) -> Outcome:
    """The process that executed the statements is gone."""
    if began(work):
        spark_sessions.cleared(work)
    else:
        spark_sessions.cleared_from_elsewhere(work)
    return _recorded(work) or Failed(
        FailureKind.PLATFORM,
        "The process that executed the SQL is gone; what it left in Spark was ended.",
        at_once=True,
    )


def _record(work: Work, outcome: Outcome) -> None:
    match outcome:
        case Succeeded(outputs):
            record: dict[str, Any] = {"succeeded": dict(outputs)}
        case Failed(kind, message, hint):
            record = {"failed": [kind, message, hint], "at_once": outcome.at_once}
        case Stopped(message):
            record = {"stopped": message}
    draft = work.folder / f".{_OUTCOME}"
    draft.write_text(json.dumps(record))
    draft.replace(work.folder / _OUTCOME)


def _recorded(work: Work) -> Outcome | None:
    try:
        record = json.loads((work.folder / _OUTCOME).read_bytes())
    except FileNotFoundError:
        return None
    match record:
        case {"succeeded": outputs}:
            return Succeeded(outputs)
        case {"failed": [kind, message, hint]}:
            return Failed(FailureKind(kind), message, hint, at_once=bool(record.get("at_once")))
        case {"stopped": message}:
            return Stopped(message)
    return None
