"""A process that runs steps: it says that it is alive, and notices those that are not."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from dalsegno.engine.records import LEASE, Report
from dalsegno.model.runs import Ending, EndWanted, LeaseLost
from dalsegno.store import Store, queue, runs
from dalsegno.store.asking import Row
from dalsegno.store.run_tables import steps

#: How often it renews its leases.
_HEARTBEAT = LEASE / 6


@dataclass(frozen=True)
class Seen:
    """What others did to our runs."""

    #: Our claimed steps by flow and step, each with the report that gives it up.
    ours: Mapping[tuple[str, str], Report] = field(default_factory=dict)
    #: Flow and step of those that are to be ended.
    to_end: tuple[tuple[str, str], ...] = ()
    has_messages: bool = False
    next_due: datetime | None = None
    #: Steps whose process is gone.
    lost: tuple[Report, ...] = ()
    #: Runs, and steps without a worker, that took longer than they may.
    overdue: tuple[Report, ...] = ()


@dataclass
class Node:
    """This process; its name is never used again."""

    store: Store
    id: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}")
    _next_heartbeat: datetime | None = None

    def join(self, now: datetime) -> None:
        with self.store.database.writing() as connection:
            queue.greet(
                connection,
                {
                    "id": self.id,
                    "host": socket.gethostname(),
                    "process": os.getpid(),
                    "process_began": process_began(os.getpid()),
                    "started_at": now,
                    "seen_at": now,
                },
            )

    def leave(self) -> None:
        with self.store.database.writing() as connection:
            queue.leave(connection, [self.id])

    def look(self, now: datetime, *, roots: Sequence[str] | None) -> Seen:
        is_due = self._next_heartbeat is None or now >= self._next_heartbeat
        # A clock that was set back would else keep us silent for too long.
        is_due = is_due or (self._next_heartbeat is not None and self._next_heartbeat - now > LEASE)
        lost: list[Report] = []
        overdue: list[Report] = []
        if is_due:
            self._next_heartbeat = now + _HEARTBEAT
            lost = self._heartbeat(now)
        with self.store.database.reading() as connection:
            ours = queue.leased_by(connection, steps.c.lease_owner == self.id)
            has_messages = bool(runs.messages(connection, limit=1))
            next_due = queue.next_due(connection, roots=roots)
            for run_id in runs.overdue(connection, now):
                overdue.append(Report(run_id, run_id, EndWanted(Ending.TIME_OUT)))
            for run_id, flow_id, step_id in queue.overdue(connection, now):
                overdue.append(Report(run_id, flow_id, EndWanted(Ending.TIME_OUT, step_id)))
        return Seen(
            {(row["flow_id"], row["step_id"]): _lost(row) for row in ours},
            tuple((row["flow_id"], row["step_id"]) for row in ours if row["ending"]),
            has_messages,
            next_due,
            tuple(lost),
            tuple(overdue),
        )

    def _heartbeat(self, now: datetime) -> list[Report]:
        """Renew our leases; the steps of processes that are gone, or were not heard of for too long, are lost."""
        with self.store.database.writing() as connection:
            queue.say_alive(connection, self.id, now)
            queue.renew_leases(connection, self.id, now + LEASE)
            gone = [row["id"] for row in queue.node_rows(connection) if self._is_gone(row, now)]
            others = queue.leased_by(connection, steps.c.lease_owner != self.id)
            known = {row["id"] for row in queue.node_rows(connection)}
            lost = [
                row
                for row in others
                if row["lease_owner"] in gone or row["lease_owner"] not in known or row["lease_until"] < now
            ]
            queue.leave(connection, gone)
        return [_lost(row) for row in lost]

    def _is_gone(self, values: Row, now: datetime) -> bool:
        if values["id"] == self.id:
            return False
        if values["host"] == socket.gethostname():
            return process_began(values["process"]) != str(values["process_began"])
        return bool(values["seen_at"] < now - 2 * LEASE)


def _lost(row: Row) -> Report:
    return Report(row["run_id"], row["flow_id"], LeaseLost(row["step_id"], row["fence"]))


def process_began(process: int) -> str:
    """When a process began, by the machine's own count; empty if there is none of this number."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return _without_proc(process)
    # The name of the program may hold blanks and parentheses; the fields behind it do not.
    return f"{boot} {stat.rpartition(')')[2].split()[19]}"


def _without_proc(process: int) -> str:
    if Path("/proc/self").exists():
        return ""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return "alive"
    return "alive"
