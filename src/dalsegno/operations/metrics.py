"""What there is to know of a service from outside: runs, steps, the queue, captures, lags.

All is read from the store, so any node can tell it, and each tells the same. What only grows is counted by each node
from its own start on. No metric is told by run: there would be no end of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from dalsegno.model.captures import CaptureState, run_of_actor
from dalsegno.model.runs import RunStatus
from dalsegno.store import Store, lags, measures, outbox

#: A transaction may take so long from its clock's time to its end: what it saved is looked for again until then.
_OVERLAP = timedelta(minutes=2)
#: And a capture so long from its beginning to its being ready.
_CAPTURING = timedelta(hours=1)


@dataclass(frozen=True)
class Metric:
    """One thing that is counted or measured, with a value for each combination of labels."""

    name: str
    help: str
    labels: tuple[str, ...]
    values: Mapping[tuple[str, ...], float]
    #: Whether it only grows.
    is_total: bool = False


class Metrics:
    """Reads them. It is used by one thread at a time."""

    def __init__(self, store: Store, now: datetime, node_id: str = "") -> None:
        self.store = store
        self.node_id = node_id
        self._since = now
        self._ended: Counter[tuple[str, ...]] = Counter()
        self._rows: Counter[tuple[str, ...]] = Counter()
        self._bytes: Counter[tuple[str, ...]] = Counter()
        #: What was counted, by when it happened, for as long as it may be found again.
        self._seen: dict[str, datetime] = {}
        with store.database.reading() as connection:
            self._upto = measures.last_event(connection)

    def read(self, now: datetime) -> list[Metric]:
        with self.store.database.reading() as connection:
            self._count_runs(connection, now)
            self._count_captures(connection, now)
            found = [*self._counted(), *self._open(connection, now), *self._lags(connection, now)]
        self._seen = {key: at for key, at in self._seen.items() if at >= now - 2 * _CAPTURING}
        return found

    # What only grows.

    def _count_runs(self, connection: Connection, now: datetime) -> None:
        """Whoever began earlier may save later: numbers are not in the order in which they can be seen."""
        upto = self._upto
        for event in measures.run_events(connection, self._upto):
            if event.at < now - _OVERLAP:
                upto = max(upto, event.number)
            status = RunStatus(event.data["status"])
            if self._is_new(f"event {event.number}", event.at) and status.is_final:
                self._ended[event.workflow_id, status.value] += 1
        self._upto = upto

    def _count_captures(self, connection: Connection, now: datetime) -> None:
        for row in measures.captures_since(connection, max(self._since, now - _CAPTURING)):
            stages = {"captured": row["created_at"]}
            if row["state"] == CaptureState.COMMITTED.value:
                stages["committed"] = row["settled_at"]
            for stage, at in stages.items():
                if at >= self._since and self._is_new(f"{stage} {row['id']} {row['table_name']}", at):
                    labels = (row["consumer"], row["table_name"], stage)
                    self._rows[labels] += row["details"].get("rows") or 0
                    self._bytes[labels] += row["details"].get("bytes") or 0

    def _is_new(self, key: str, at: datetime) -> bool:
        if key in self._seen:
            return False
        self._seen[key] = at
        return True

    def _counted(self) -> Iterator[Metric]:
        by_capture = ("consumer", "table", "stage")
        yield Metric("dalsegno_runs_ended", "Runs that came to their end.", ("workflow", "status"), self._ended, True)
        yield Metric("dalsegno_captured_rows", "Rows that were captured, or committed.", by_capture, self._rows, True)
        yield Metric("dalsegno_captured_bytes", "The same in bytes.", by_capture, self._bytes, True)
        yield _one("dalsegno_store_errors", "Transactions that failed.", self.store.database.failures, True)

    # What is so now.

    def _open(self, connection: Connection, now: datetime) -> Iterator[Metric]:
        count, oldest = measures.ready_steps(connection, now)
        owners = measures.lease_rows(connection)
        yield Metric(
            "dalsegno_runs_open", "Runs that have not ended.", ("workflow", "status"), measures.open_runs(connection)
        )
        yield _one("dalsegno_steps_ready", "Steps that could begin now.", count)
        yield _one("dalsegno_steps_claimed", "Steps that a node is at work on.", measures.claimed_steps(connection))
        yield _one("dalsegno_queue_age_seconds", "How long the first step has been ready.", _seconds(oldest, now))
        yield _one("dalsegno_messages", "Messages to runs that nobody has acted on.", measures.messages(connection))
        yield _one("dalsegno_nodes", "Nodes that run steps.", measures.node_count(connection))
        yield Metric(
            "dalsegno_leader",
            "Whether this node has the duty.",
            ("duty",),
            {(row["name"],): float(row["owner"] == self.node_id) for row in owners},
        )
        yield Metric(
            "dalsegno_lease_term",
            "How often the duty has changed hands.",
            ("duty",),
            {(row["name"],): row["term"] for row in owners},
        )
        yield _one("dalsegno_notifications_waiting", "Messages to people, unsent.", outbox.waiting(connection))

    def _lags(self, connection: Connection, now: datetime) -> Iterator[Metric]:
        labels = ("consumer", "table")
        found = lags.all_lags(connection)
        known = [row for row in found if row["snapshots"] is not None]
        yield Metric(
            "dalsegno_lag_seconds",
            "Since when the consumer has not processed what was committed to the table.",
            labels,
            {(row["consumer"], row["table_name"]): _seconds(row["oldest_at"], now) for row in known},
        )
        yield Metric(
            "dalsegno_lag_snapshots",
            "Snapshots that the consumer has not processed.",
            labels,
            {(row["consumer"], row["table_name"]): row["snapshots"] for row in known},
        )
        yield Metric(
            "dalsegno_lag_unknown",
            "1 if the lag is unknown.",
            labels,
            {(row["consumer"], row["table_name"]): float(row["snapshots"] is None) for row in found},
        )
        marks = measures.marks(connection)
        yield Metric(
            "dalsegno_commit_age_seconds",
            "For how long the consumer has committed nothing.",
            labels,
            {(row["consumer"], row["table_name"]): _seconds(row["moved_at"], now) for row in marks},
        )
        yield Metric(
            "dalsegno_freshness_seconds",
            "For how long the workflow has committed nothing to its targets.",
            ("workflow",),
            _freshness(marks, now),
        )


def own_metrics(store: Store, *, can_run_jobs: bool) -> list[Metric]:
    """What this node knows of itself, although the store may be away."""
    return [
        _one("dalsegno_store_write_age_seconds", "Seconds since this node last wrote.", store.database.write_age),
        _one("dalsegno_jobs_folder_up", "Whether this node could write its jobs folder.", float(can_run_jobs)),
    ]


def _freshness(marks: Sequence[Mapping[str, object]], now: datetime) -> dict[tuple[str, ...], float]:
    """By workflow: of its consumers' tables, the one that was committed last."""
    found: dict[tuple[str, ...], float] = {}
    for row in marks:
        if (run := run_of_actor(str(row["moved_by"]))) and isinstance(row["moved_at"], datetime):
            age = _seconds(row["moved_at"], now)
            found[run[0],] = min(age, found.get((run[0],), age))
    return found


def _one(name: str, text: str, value: float, is_total: bool = False) -> Metric:
    return Metric(name, text, (), {(): value}, is_total)


def _seconds(since: datetime | None, now: datetime) -> float:
    return 0.0 if since is None else max((now - since).total_seconds(), 0.0)
