"""What goes wrong, and at which moment: in front of a statement, while Spark executes it, after its commit.

Faults are injected where a process talks to Spark, and into nothing else: the statements, their errors and the commits
are real. A process that is to be killed is another one (``worker``).
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from dalsegno.engine import checkpoint_moves
from dalsegno.iceberg import publishing
from dalsegno.settings import Settings
from dalsegno.spark.connect import Session
from dalsegno.steps.spark.sessions import local_server

_STATEMENT = re.compile(r"statement (\d+)(?: again \d+)?\Z")


#: Instead of a statement's number: when what an atomic step wrote is made visible.
PUBLISHING = 0
_MOMENTS = ("before", "during", "after")


class ConnectionLost(Exception):
    """As gRPC says it."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE


@dataclass(frozen=True)
class Fault:
    name: str
    #: Whether the process is killed that runs the workflow.
    kills_worker: bool = False
    kills_spark: bool = False
    #: Whether the step tries again by itself.
    is_retried: bool = False
    #: In front of a statement, or behind it; "during": while it is executed; "": at a moment of the store.
    moment: str = "before"
    #: SQL that fails as the statement would.
    error: str = ""
    #: Whether statements take long enough to be in the middle of one.
    is_slow: bool = False
    #: What becomes of a commit that Spark sends to the catalog.
    commit: str = ""
    #: The status with which look-ups in the target are answered for a while after that.
    refusal: int = 0


_ERROR = "SELECT 1 / 0"
_MISSING = "SELECT * FROM lake.db.no_such_table"

FAULTS = (
    Fault("none", moment="never"),
    Fault("error before", error=_ERROR),
    Fault("table missing", error=_MISSING),
    Fault("error before, retried", error=_ERROR, is_retried=True),
    Fault("connection lost before"),
    Fault("connection lost during", moment="during", is_slow=True),
    Fault("connection lost during, retried", moment="during", is_slow=True, is_retried=True),
    Fault("connection lost after", moment="after"),
    Fault("connection lost after, retried", moment="after", is_retried=True),
    Fault("error after", moment="after", error=_ERROR),
    Fault("worker killed before", kills_worker=True),
    Fault("worker killed during", kills_worker=True, moment="during"),
    Fault("worker killed after", kills_worker=True, moment="after"),
    Fault("worker killed in the store", kills_worker=True, moment=""),
    Fault("worker killed at a commit step", kills_worker=True, moment="commit step"),
    Fault("worker killed after a commit step", kills_worker=True, moment="after commit step"),
    Fault("Spark killed before", kills_spark=True),
    Fault("Spark killed during", kills_spark=True, moment="during"),
    Fault("Spark killed after", kills_spark=True, moment="after"),
    Fault("answer lost", moment="commit", commit="lost"),
    Fault("answer lost, retried", moment="commit", commit="lost", is_retried=True),
    Fault("answer lost, look-ups forbidden", moment="commit", commit="lost", refusal=403),
    Fault("answer lost, look-ups failing", moment="commit", commit="lost", refusal=500),
    Fault("commit late, look-ups forbidden", moment="commit", commit="late", refusal=401),
    Fault("commit late", moment="commit", commit="late"),
    Fault("commit after the next", moment="commit", commit="behind"),
    Fault("commit before the next", moment="commit", commit="in front"),
)


@dataclass
class Injection:
    """One fault, which happens once."""

    fault: Fault
    settings: Settings
    #: The number of the statement, and how many such are let through.
    statement: int = 1
    skip: int = 0
    seconds: float = 0.0
    #: A line for each statement that was sent to Spark, and for each answer.
    journal: Path | None = None
    has_happened: bool = False
    #: Called when the statement is reached, instead of a fault.
    at: Callable[[], None] | None = None
    _seen: int = 0
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def is_due(self, name: str) -> bool:
        found = _STATEMENT.fullmatch(name)
        number = int(found[1]) if found else PUBLISHING if name == "publish" else None
        if self.fault.moment not in _MOMENTS or number != self.statement:
            return False
        with self._guard:
            self._seen += 1
            if self.has_happened or self._seen <= self.skip:
                return False
            self.has_happened = True
        return True

    def note(self, *words: str) -> None:
        if self.journal is not None:
            with self.journal.open("a") as lines:
                lines.write(" ".join(words) + "\n")

    def executed(self, execute: Callable[..., Any], session: Session, text: str, most: int, name: str) -> Any:
        """A statement with a fault."""
        if self.at is not None:
            self.at()
            return execute(session, text, most, name)
        if self.fault.moment == "during" and self.fault.is_slow:
            self._lose_connection(execute, session, text, most, name)
        if self.fault.moment == "during":
            threading.Timer(self.seconds, self._strike).start()
        if self.fault.moment == "before":
            self._fail(execute, session)
        self.note("sent", name)
        answer = execute(session, text, most, name)
        self.note("answered", name)
        if self.fault.moment == "after":
            self._fail(execute, session)
        return answer

    def published(self, publish: Callable[..., None], *arguments: Any) -> None:
        """The same for what makes an atomic step visible."""
        if self.fault.moment != "after":
            self._strike()
            raise ConnectionLost("the connection is lost")
        publish(*arguments)
        self._strike()
        raise ConnectionLost("the connection is lost")

    def _lose_connection(self, execute: Callable[..., Any], session: Session, *what: Any) -> None:
        """Spark goes on with the statement, and nobody hears of it."""

        def work() -> None:
            with suppress(Exception):
                execute(session, *what)

        threading.Thread(target=work, daemon=True).start()
        time.sleep(self.seconds)
        session.disconnect()
        raise ConnectionLost("the connection is lost")

    def _fail(self, execute: Callable[..., Any], session: Session) -> None:
        self._strike()
        if self.fault.kills_spark:
            return
        if self.fault.error:
            execute(session, self.fault.error, 1)
        raise ConnectionLost("the connection is lost")

    def _strike(self) -> None:
        if self.fault.kills_worker:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault.kills_spark:
            server = local_server(self.settings).running()
            if server is not None:
                os.kill(server.java, signal.SIGKILL)


_execute = Session.execute
_now: list[Injection] = []


def _executed(session: Session, statement: str, most_rows: int, name: str = "") -> Any:
    for injection in _now:
        if injection.is_due(name):
            return injection.executed(_execute, session, statement, most_rows, name)
    if _STATEMENT.fullmatch(name):
        for injection in _now:
            injection.note("sent", name)
        answer = _execute(session, statement, most_rows, name)
        for injection in _now:
            injection.note("answered", name)
        return answer
    return _execute(session, statement, most_rows, name)


_publish = publishing.publish


def _published(*arguments: Any) -> None:
    for injection in _now:
        if injection.is_due("publish"):
            return injection.published(_publish, *arguments)
    return _publish(*arguments)


@contextmanager
def injected(injection: Injection) -> Iterator[Injection]:
    """Let it happen in this process, for as long as the block lasts."""
    Session.execute = _executed  # type: ignore[method-assign, assignment]
    publishing.publish = _published  # type: ignore[assignment]
    _now.append(injection)
    try:
        yield injection
    finally:
        _now.remove(injection)


_commit: Callable[..., Any] = vars(checkpoint_moves)["commit"]


def kill_at_commit(*, nth: int, is_after: bool) -> None:
    """Kill this process when it commits a capture for the nth time, before that is saved or after it."""
    committed = 0

    def commit(*arguments: Any, **options: Any) -> Any:
        nonlocal committed
        committed += 1
        done = _commit(*arguments, **options)
        if committed == nth and is_after:
            threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGKILL)).start()
        elif committed == nth:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    vars(checkpoint_moves)["commit"] = commit
