"""SQL in a Spark Connect session, statement by statement, by a thread of this process.

The thread writes how it ended into the attempt's folder before it lets go of the session, so that an end is known even
if nobody was there to hear of it. If this process dies, Spark goes on with the statement that it was at: whoever looks
after the attempt next attaches to it, and goes on with those that follow (``scripts``). A process that was only
thought dead finds that another one has taken the session, and executes no more. Every snapshot that a statement makes
carries the attempt and the statement's number.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from dalsegno.clock import utc_now
from dalsegno.errors import DalsegnoError, PlatformError
from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Stopped, Succeeded
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.spark.failures import explained
from dalsegno.spark.operations import TakenOver
from dalsegno.steps.attempt_log import AttemptLog
from dalsegno.steps.contract import Finished, Progress, Running, Started, Work
from dalsegno.steps.spark import atomic, atomic_records, rows, scripts, sessions
from dalsegno.steps.spark.params import SparkStep, Sql, spark_step
from dalsegno.steps.spark.scripts import Abandoned
from dalsegno.steps.spark.work import SqlWork

#: A file in the attempt's folder.
_OUTCOME = "spark-outcome"
_INTERRUPT_AGAIN_SECONDS = 0.5
_CANCELLED = Stopped("Cancelled.")
_GONE = Failed(
    FailureKind.PLATFORM,
    "The process that executed the SQL is gone, and Spark does not know how far it was; what was left there was ended.",
    at_once=True,
)

#: Says which session of Spark is used to find out what is to be executed, so that it can be interrupted.
UseSession = Callable[[Session], None]
#: Understands a step's parameters.
ReadStep = Callable[[Work, UseSession], SparkStep]


class _StoppedEarly(Exception):
    """Somebody cancelled the step before it was known what it executes."""


def _read_spark_step(work: Work, _: UseSession) -> SparkStep:
    return spark_step(work)


#: The threads of this process, by the attempt's key. A cache: what is not in here is found by the attempt's session.
_running: dict[str, SqlThread] = {}
_guard = threading.Lock()


def begin(work: Work) -> Started | Finished:
    """Get ready to execute the statements, unless that was done. ``poll`` begins: by then the handle is stored."""
    if outcome := _recorded(work):
        return Finished(outcome)
    scripts.begin(work)
    return Started({sessions.HANDLE: session_id_for(work.key)})


def poll(work: Work, patience: float, read: ReadStep = _read_spark_step) -> Running | Finished:
    """``read`` says what is to be executed. A thread asks it, because that may take long, too."""
    thread = _running.get(work.key) or _begun(work, read)
    if not isinstance(thread, SqlThread):
        return Finished(thread)
    thread.join(min(patience, _seconds_left(work)))
    if thread.unreadable is not None:
        _running.pop(work.key, None)
        raise thread.unreadable
    if thread.is_alive() and _seconds_left(work) > 0:
        return Running(thread.progress)
    is_late = thread.is_alive()
    if is_late:
        thread.cancel()
    _running.pop(work.key, None)
    if is_late and isinstance(thread.outcome, Stopped):
        return Finished(Failed(FailureKind.TIMEOUT, "It took longer than it may, and was interrupted in Spark."))
    return Finished(thread.outcome)


def _begun(work: Work, read: ReadStep) -> SqlThread | Outcome:
    """A thread that executes the statements, or goes on with those of an earlier process; or how that has ended."""
    if outcome := _recorded(work):
        return outcome
    if not scripts.is_sql(work):
        return _GONE
    with _guard:
        if work.key not in _running:
            _running[work.key] = SqlThread(work, read)
            _running[work.key].start()
        return _running[work.key]


def let_go(work: Work) -> None:
    """Leave the statements to another process; the one that runs goes on in Spark if all others can find it there."""
    thread = _running.pop(work.key, None)
    if thread is None:
        return
    if work.settings.spark_remote or work.settings.store.startswith("sqlite:"):
        thread.let_go()
    else:
        thread.cancel(_GONE)


def cancel(work: Work) -> None:
    """Interrupt the statement that runs; returns when Spark has ended it. No further one is begun."""
    if thread := _running.pop(work.key, None):
        thread.cancel()
    else:
        sessions.cleared(work)
    if _recorded(work) is None:
        _record(work, _CANCELLED)


class SqlThread(threading.Thread):
    """Executes the statements of one attempt."""

    #: What is to be executed, once that is known.
    step: SparkStep
    sql: Sql

    def __init__(self, work: Work, read: ReadStep) -> None:
        # A daemon: whoever ends dalsegno in the middle of a query need not wait for it.
        super().__init__(name=f"spark-{work.key}", daemon=True)
        self.work = work
        self._read = read
        #: Guards what follows: until it is false, nothing was executed, and nobody need wait for the thread.
        self._phase = threading.Lock()
        self._is_preparing = True
        #: Why this machine could not read what is to be executed; it may be able to when it is asked again.
        self.unreadable: OSError | None = None
        self.statements: Sequence[str] = ()
        self._tracked: SqlWork | None = None
        self.log = AttemptLog(work.log, work.secrets, limit=work.log_limit)
        self.progress: Progress | None = None
        self.outcome: Outcome = Failed(FailureKind.PLATFORM, "The thread of the step died.")
        self._session: Session | None = None
        #: Which statement it is at.
        self._at = ""
        self._cancelled = threading.Event()
        self._cancelled_as: Outcome = _CANCELLED
        #: Another process goes on with it, or will.
        self._let_go = threading.Event()

    def run(self) -> None:
        try:
            self.outcome = self._executed_or_ended()
        except TakenOver:
            self._let_go.set()
        except _StoppedEarly:
            self.outcome = self._cancelled_as
        except DalsegnoError as error:
            # A platform may be back by the next attempt; anything else it would meet again.
            kind = FailureKind.PLATFORM if isinstance(error, PlatformError) else FailureKind.FATAL
            self.outcome = Failed(kind, error.message, error.hint)
        except Exception as error:  # noqa: BLE001 - Spark's client raises whatever comes to it
            if self.unreadable is not None:
                return
            # Who lets go closes the connection.
            self.outcome = self.outcome if self._let_go.is_set() else self._failed(error)
        if self._let_go.is_set():
            # Neither the session nor the attempt's folder is ours any more.
            self.outcome = Stopped("Another process goes on with it.")
            return
        if self._tracked is not None:
            self._tracked.close()
        self.outcome = self.log.masked_outcome(self.outcome)
        _record(self.work, self.outcome)
        if self._session and isinstance(self.outcome, Succeeded):
            sessions.late_ends.end(self._session)
        elif self._session:
            self._release(self._session)

    def cancel(self, outcome: Outcome = _CANCELLED) -> None:
        self._cancelled_as = outcome
        self._cancelled.set()
        # Once may be too early: Spark may just be receiving the statement.
        while self.is_alive():
            if self._is_left_alone():
                self.outcome = outcome
                return
            if session := self._session:
                # A server that cannot be reached is seen by the thread as well.
                with suppress(Exception):
                    session.interrupt()
            self.join(_INTERRUPT_AGAIN_SECONDS)

    def let_go(self) -> None:
        self._let_go.set()
        while self.is_alive() and not self._is_left_alone():
            if session := self._session:
                session.disconnect()
            self.join(_INTERRUPT_AGAIN_SECONDS)

    def _is_left_alone(self) -> bool:
        """Whether it has executed nothing, as while Spark starts: then it ends by itself, as it is asked to."""
        with self._phase:
            return self._is_preparing and self._session is None

    def _use_to_prepare(self, session: Session) -> None:
        with self._phase:
            self._session = session
        self._stop_if_asked()

    def _stop_if_asked(self) -> None:
        if self._let_go.is_set():
            raise TakenOver
        if self._cancelled.is_set():
            raise _StoppedEarly

    def _prepare(self) -> bool:
        """Find out what is to be executed; whether that is SQL."""
        try:
            step = self._read(self.work, self._use_to_prepare)
        except OSError as error:
            self.unreadable = error
            raise
        except DalsegnoError:
            # What an earlier process began must not go on beside the next attempt.
            sessions.cleared(self.work)
            raise
        finally:
            with self._phase:
                self._session = None
        if not isinstance(step.job, Sql):
            sessions.cleared(self.work)
            return False
        with self._phase:
            self._stop_if_asked()
            self._is_preparing = False
        self.work = replace(self.work, secrets=(*self.work.secrets, *step.secrets))
        self.step, self.sql, self.statements = step, step.job, step.job.statements
        self.log = AttemptLog(self.work.log, self.work.secrets, limit=self.work.log_limit)
        scripts.take_over(self.work)
        return True

    def _executed_or_ended(self) -> Outcome:
        """Where nobody can go on with what an earlier process began, it must not go on by itself either."""
        if not self._prepare():
            return _GONE
        try:
            return self._executed()
        except Abandoned:
            sessions.cleared(self.work)
            self._session = None
            return _recorded(self.work) or _GONE

    def _executed(self) -> Outcome:
        tracked = self._tracked = self._tracked_work()
        if tracked is not None:
            atomic_records.settle(self.work, tracked, self.log.note, is_idempotent=self.step.is_idempotent)
            if (outputs := tracked.outputs_if_done()) is not None:
                self.log.note(f"All of it was done before, for the same captures, by {tracked.unit.begun_by}.")
                return Succeeded(outputs)
            self.statements = tracked.texts
        if not sessions.is_begun(self.work):
            sessions.check_stores(self.work.settings, self.statements)
        if self.step.is_atomic:
            return atomic.AtomicScript(self, self.statements, tracked).executed()
        session = sessions.connected(self.work, self.log.note)
        self.use(session)
        last = scripts.joined(session, self.work, self.statements, self.step.conf)
        if tracked is not None:
            tracked.resume(session, last)
            self.statements = tracked.texts
        found: Mapping[str, Any] = {}
        for number in range(max(last, 1), len(self.statements) + 1):
            if self._cancelled.is_set():
                session.clear()
                return self._cancelled_as
            if self._let_go.is_set():
                raise TakenOver
            found = self._execute(session, number, is_begun=number == last)
        return Succeeded(found if tracked is None else tracked.finish(found, self.sql.conclude))

    def use(self, session: Session) -> None:
        self._session = session
        session.tag(self.work.key)
        session.follow(self._note_progress)

    def at(self, which: str) -> None:
        self._at = which

    def stopped(self) -> Outcome | None:
        if self._let_go.is_set():
            raise TakenOver
        return self._cancelled_as if self._cancelled.is_set() else None

    def _tracked_work(self) -> SqlWork | None:
        """The record of the work, if there are captures behind which it is done."""
        log = self.work.log_of_work
        if log is None:
            return None
        written = [log.block(self.sql.block), *([self.sql.file_text] if self.sql.file_text is not None else [])]
        return SqlWork(
            self.work,
            log,
            log.template(*written),
            self.sql.statements,
            is_idempotent=self.step.is_idempotent,
            say=self.log.note,
            conf=self.step.conf,
            decision=self.sql.decision,
        )

    def _execute(self, session: Session, number: int, *, is_begun: bool) -> Mapping[str, Any]:
        which = self._at = f"statement {number} of {len(self.statements)}"
        began = time.perf_counter()
        tracked = self._tracked
        if tracked is not None and not is_begun:
            if tracked.is_done(number):
                self.log.note(f"{which} was executed before, and is not executed again")
                return {}
            if tracked.is_session_statement(number):
                self.log.note(f"{which} is executed again, for the session")
                scripts.replayed(session, self.work, number, self.statements, tracked)
                return {}
        if is_begun:
            self.log.note(f"An earlier process was at {which}: resuming it.")
        else:
            self.log.note(f"{which}:")
            self.log.write(self.statements[number - 1])
        execute = scripts.followed if is_begun else scripts.executed
        try:
            found = execute(session, self.work, number, self.statements, tracked)
        except Exception as error:
            if tracked is not None and not isinstance(error, DalsegnoError | TakenOver | Abandoned):
                self._note_failure(tracked, number, error)
            raise
        if tracked is not None:
            tracked.end(number)
        if found is None:
            self.log.note(f"{which} was executed before, and is not executed again")
            return {}
        self.log.note(f"{which} took {time.perf_counter() - began:.2f} s")
        if text := rows.described(found):
            self.log.write(text)
        return rows.outputs(found)

    def _note_failure(self, tracked: SqlWork, number: int, error: Exception) -> None:
        """Record what is certain. What cannot be recorded now is in doubt for whoever tries next."""
        if self._let_go.is_set():
            return
        failure = explained(error)
        with suppress(DalsegnoError, TakenOver):
            tracked.fail(number, is_certain=failure.is_refused, is_syntax=failure.is_syntax)

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

    def _release(self, session: Session) -> None:
        try:
            session.release_own()
        except Exception as error:  # noqa: BLE001 - it is over anyway, and the server forgets the session in time
            self.log.note(f"the session could not be released: {explained(error).message}")


def _seconds_left(work: Work) -> float:
    return float("inf") if work.deadline is None else (work.deadline - utc_now()).total_seconds()


def _record(work: Work, outcome: Outcome) -> None:
    match outcome:
        case Succeeded(outputs):
            record: dict[str, Any] = {"succeeded": dict(outputs)}
        case Failed(kind, message, hint):
            record = {"failed": [kind, message, hint], "at_once": outcome.at_once}
        case Stopped(message):
            record = {"stopped": message}
    draft = work.folder / f".{_OUTCOME}"
    # On a full disk the session alone knows it, which is enough for whoever looks next.
    with suppress(OSError):
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
