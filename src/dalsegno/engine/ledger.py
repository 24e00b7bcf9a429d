"""How a run goes on: what happened goes in, one transaction saves what follows.

Whoever starts a run or ends it from outside only leaves its row or a message in the store (``operations``); a ledger
acts on it (``deliver``).

A ledger remembers open flows, so that the end of a step costs the same whether ten or ten thousand others have ended
before. What it remembers holds for one revision of the run: if another process has changed the run since, it is read
again. So any number of processes may keep a ledger of the same runs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from dalsegno.engine import admitting
from dalsegno.engine.claiming import claim_ready, claim_what_follows, take_over
from dalsegno.engine.ports import Versions
from dalsegno.engine.records import OpenRun, Recorded, Report
from dalsegno.engine.run_transaction import RunTransaction
from dalsegno.model.messages import Admit
from dalsegno.model.runs import Restarted
from dalsegno.store import Store, queue, runs, signals
from dalsegno.store.row_queries import Row

log = logging.getLogger(__name__)

#: How many runs are remembered, and for how long if nobody asks: others may finish a run, and nobody tells us.
_KEPT, KEPT_SECONDS = 1000, 60.0
#: How grave it is that a run or a step stands so.
_LEVELS = {
    "FAILED": logging.ERROR,
    "FATALLY_FAILED": logging.ERROR,
    "TIMED_OUT": logging.ERROR,
    "USER_FAILED": logging.WARNING,
    "PLATFORM_FAILED": logging.WARNING,
    "TIMEOUT_FAILED": logging.WARNING,
    "COMPLETED_WITH_ERROR": logging.WARNING,
}
#: How many messages are tried before they are left to those who are at them.
_TRIED = 10


class Ledger:
    """The runs that one process looks after. It is used by one thread at a time."""

    def __init__(
        self,
        store: Store,
        node_id: str,
        versions: Versions,
        roots: Sequence[str] | None = None,
        stopwatch: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self.stopwatch = stopwatch
        #: Whose steps may be claimed: of these runs and what belongs to them; None: of all.
        self.roots = roots
        self.node_id = node_id
        self.versions = versions
        #: Those that were asked for last come last.
        self._known: dict[str, OpenRun] = {}

    def record(self, reports: Sequence[Report], now: datetime, *, capacity: int = 0) -> Recorded:
        """Save what happened and what follows; up to ``capacity`` of the steps that are ready then are claimed."""
        with self._transaction(now) as transaction:
            for run_id in sorted({report.run_id for report in reports}):
                transaction.open(run_id)
            signals.hold(transaction.connection, [name for report in reports for name in report.update.signals])
            for report in reports:
                transaction.take(report)
            claim_what_follows(transaction, capacity)
            return transaction.save()

    def take_over(self, reports: Sequence[Report], now: datetime) -> Recorded:
        """Go on with steps whose process is gone; each is claimed as it is let go of, so nobody else can have it."""
        with self._transaction(now) as transaction:
            take_over(transaction, sorted(reports, key=lambda report: report.run_id))
            return transaction.save()

    def claim_due(self, now: datetime, *, capacity: int) -> Recorded:
        """Claim steps that have become ready, in the order in which they did."""
        page = max(4 * capacity, 100)
        with self._transaction(now) as transaction:
            skip = 0
            while len(transaction.claiming.claims) < capacity:
                found = queue.due(transaction.connection, now, roots=self.roots, limit=page, skip=skip)
                transaction.claiming.ready += [(run_id, flow_id, step_id) for run_id, flow_id, step_id in found]
                claim_ready(transaction, capacity)
                skip += len(found)
                if len(found) < page:
                    break
            return transaction.save()

    def restart(self, run_id: str, wish: Restarted, now: datetime, changes: Mapping[str, Any]) -> Recorded:
        """Run an ended run again, or a part of it; it waits for its turn like any other."""
        with self._transaction(now) as transaction:
            admitting.hold_workflow_of(transaction, run_id)
            run = transaction.open(run_id)
            admitting.restart(transaction, run, wish, changes)
            return transaction.save()

    def deliver(self, now: datetime, *, capacity: int = 0) -> Recorded | None:
        """Act on one message that a transaction left for a run or a workflow; None if there is none that others leave
        to us.
        """
        with self.store.database.reading() as connection:
            waiting = runs.messages(connection)
        if not waiting:
            return None
        with self._transaction(now) as transaction:
            found = _taken_message(transaction.connection, waiting)
            if found is None:
                return None
            admitting.deliver(transaction, found["run_id"], found["message"])
            claim_what_follows(transaction, capacity)
            return transaction.save()

    def forget(self, run_id: str) -> None:
        self._known.pop(run_id, None)

    @contextmanager
    def _transaction(self, now: datetime) -> Iterator[RunTransaction]:
        transaction: RunTransaction | None = None
        try:
            with self.store.database.writing() as connection:
                transaction = RunTransaction(connection, self._known, self.versions, self.node_id, now, self.roots)
                yield transaction
            _log(transaction)
            self._forget_unused(transaction)
        except BaseException:
            # What was decided was not saved: it must not be remembered either.
            for run_id in transaction.opened if transaction else ():
                self.forget(run_id)
            raise

    def _forget_unused(self, transaction: RunTransaction) -> None:
        now = self.stopwatch()
        for run in transaction.opened.values():
            run.used = now
        while self._known:
            first = next(iter(self._known))
            if len(self._known) <= _KEPT and self._known[first].used >= now - KEPT_SECONDS:
                break
            self.forget(first)


def _log(transaction: RunTransaction) -> None:
    """What became of runs, and which attempts failed; the rest is for those who want to know all.

    A command shows that itself, and has the log of warnings only.
    """
    for event in transaction.writes.events if log.isEnabledFor(logging.INFO) else ():
        run = transaction.opened.get(event["run_id"])
        data, name = event["data"], f"{run.workflow_id}/{run.row['number']}" if run else event["run_id"]
        level = _LEVELS.get(data.get("status"), logging.INFO if event["kind"] == "run" else logging.DEBUG)
        # A failure stays with its step while that is tried again.
        failure = (data.get("failure") or {}) if level > logging.INFO else {}
        said = ": ".join(filter(None, (data.get("status"), data.get("reason") or failure.get("message"))))
        extra = {"run": name, "step": event["step_id"], "attempt": event["attempt"]}
        log.log(level, "%s is %s", event["kind"], said, extra=extra)


def _taken_message(connection: Connection, waiting: Sequence[Row]) -> Row | None:
    """The first message that nobody else is acting on, nor on an earlier one of the same run; now it is ours."""
    busy: set[str] = set()
    for each in waiting:
        if each["run_id"] in busy or len(busy) >= _TRIED:
            continue
        message = each["message"]
        # To let runs of a workflow begin is one thing to do, however many ends of runs have asked for it.
        alike = [other["id"] for other in waiting if other["message"] == message and isinstance(message, Admit)]
        # Whoever deletes it acts on it, in the same transaction.
        if runs.forget_messages(connection, alike or [each["id"]]):
            return each
        busy.add(each["run_id"])
    return None
