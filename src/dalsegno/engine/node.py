"""A process that runs steps: it says that it is alive, and notices those that are not.

``plan.liveness`` says after how long without a sign of life who does what. A process of the same machine is known to be
dead at once. What it ran may still go on there, and only there it can be found again: so whoever finds it dead takes
its steps, as many as it has room for, and nobody else can until the time is over that machines wait for each other.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection

from dalsegno.engine.machine import boot_of, machine_name, process_began
from dalsegno.engine.membership import Membership, forget_old_signs
from dalsegno.engine.records import Report
from dalsegno.errors import PlatformError
from dalsegno.model.runs import Ending, EndWanted, LeaseLost, TakenOver
from dalsegno.plan.liveness import BEAT_SECONDS, Sighting, sighted
from dalsegno.steps.supervisor import elapsing_clock
from dalsegno.store import Store, nodes, queue, runs
from dalsegno.store.row_queries import Row

log = logging.getLogger(__name__)

#: How soon to try again where a sign of life could not be given.
_PAUSE_SECONDS = 0.5
#: How often to look for the dead at most.
_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Seen:
    """What others did to our runs."""

    #: Our claimed steps by flow and step, each with the report that takes it up again.
    ours: Mapping[tuple[str, str], Report] = field(default_factory=dict)
    #: Flow and step of those that are to be ended.
    to_end: tuple[tuple[str, str], ...] = ()
    has_messages: bool = False
    next_due: datetime | None = None
    #: Steps of dead processes of this machine, no more than there is room for: ours, if we take them.
    left: tuple[Report, ...] = ()
    #: Steps whose process is gone, anybody's.
    lost: tuple[Report, ...] = ()
    #: Runs, and steps without a worker, that took longer than they may.
    overdue: tuple[Report, ...] = ()


class Node:
    """This process; each time that it joins the others it has a name that is never used again."""

    def __init__(
        self,
        store: Store,
        *,
        id: str | None = None,
        host: str | None = None,
        sign_folder: Path | None = None,
        stopwatch: Callable[[], float] | None = None,
    ) -> None:
        self.store = store
        self.id = id or _new_id()
        self.host = host or machine_name()
        #: Where to show signs of life to those who look after jobs; None: they need none.
        self.sign_folder = sign_folder
        # Other machines do not wait while this one sleeps.
        self._stopwatch = stopwatch or (time.monotonic if store.database.is_sqlite else elapsing_clock)
        self._watch = stopwatch or time.monotonic
        self.membership: Membership | None = None
        self._sightings: dict[str, Sighting] = {}
        self._looked: float | None = None
        #: Those who have given no sign for too long, and the dead of this machine, when we last looked.
        self._silent: list[Row] = []
        self._dead: list[str] = []

    def join(self, now: datetime) -> Membership:
        """Be one of those who work, under a new name if we were before; what we had under the old one is anybody's."""
        began, before = self._stopwatch(), self.membership
        node_id = self.id if before is None else _new_id()
        values = {
            "id": node_id,
            "host": self.host,
            "process": os.getpid(),
            "process_began": process_began(os.getpid()),
            "started_at": now,
            "seen_at": now,
        }
        with self.store.database.writing() as connection:
            nodes.forget(connection, [before.id] if before else [])
            nodes.greet(connection, values)
        self.id = node_id
        self.membership = Membership(node_id, began, self._stopwatch, self._sign_file(node_id))
        return self.membership

    def _sign_file(self, node_id: str) -> Path | None:
        if self.sign_folder is None:
            return None
        forget_old_signs(self.sign_folder)
        return self.sign_folder / node_id

    def leave(self, now: datetime, *, has_left_steps: bool) -> None:
        """Work no more; steps that are left are for others of this machine, as if we had died."""
        member, began = self.membership, self._stopwatch()
        if member is None:
            return
        try:
            with self.store.database.writing() as connection:
                if has_left_steps:
                    nodes.say_left(connection, member.id, f"{boot_of(process_began(os.getpid()))} left", now)
                    member.confirm(began)
                else:
                    nodes.forget(connection, [member.id])
                    member.remove_sign()
        except PlatformError as error:
            log.warning("the store failed, so the others notice by themselves that this process left: %s", error)
        member.end()

    # Signs of life.

    def beat(self, now: datetime) -> None:
        """Give a sign of life; if the others have given us up, it is over."""
        member, began = self.membership, self._stopwatch()
        if member is None or member.is_over:
            return
        with self.store.database.writing() as connection:
            is_known = nodes.say_alive(connection, member.id, now)
        if is_known:
            member.confirm(began)
        else:
            log.warning("other processes have taken this one for dead")
            member.end()

    @contextmanager
    def beating(self, clock: Callable[[], datetime]) -> Iterator[None]:
        """Give signs of life meanwhile, however long anything else takes."""
        is_over = threading.Event()

        def beat() -> None:
            pause = BEAT_SECONDS
            while not is_over.wait(pause):
                began = time.monotonic()
                try:
                    self.beat(clock())
                    # One that took long counts from when it was given.
                    pause = max(0.0, BEAT_SECONDS - (time.monotonic() - began))
                except (PlatformError, OSError) as error:
                    log.warning("no sign of life could be given, trying again: %s", error)
                    pause = _PAUSE_SECONDS

        heart = threading.Thread(target=beat, name="heart", daemon=True)
        heart.start()
        try:
            yield
        finally:
            is_over.set()
            # A store that is away may hold it up, but nothing depends on it.
            heart.join(_PAUSE_SECONDS)

    # Looking around.

    def look(self, now: datetime, *, roots: Sequence[str] | None, room: int) -> Seen:
        overdue: list[Report] = []
        with self.store.database.reading() as connection:
            left, lost = self._orphans(connection, roots, room)
            ours = queue.leased_by(connection, [self.id])
            has_messages = bool(runs.messages(connection, limit=1))
            next_due = queue.next_due(connection, roots=roots)
            for run_id in runs.overdue(connection, now):
                overdue.append(Report(run_id, run_id, EndWanted(Ending.TIME_OUT)))
            for run_id, flow_id, step_id in queue.overdue(connection, now):
                overdue.append(Report(run_id, flow_id, EndWanted(Ending.TIME_OUT, step_id)))
        if self._silent or self._dead:
            with self.store.database.writing() as connection:
                nodes.give_up(connection, self._silent)
                nodes.forget_idle(connection, self._dead)
        return Seen(
            {(row["flow_id"], row["step_id"]): _taken_over(row) for row in ours},
            tuple((row["flow_id"], row["step_id"]) for row in ours if row["ending"]),
            has_messages,
            next_due,
            tuple(map(_taken_over, left)),
            tuple(map(_lost, lost)),
            tuple(overdue),
        )

    def _orphans(
        self, connection: Connection, roots: Sequence[str] | None, room: int
    ) -> tuple[Sequence[Row], Sequence[Row]]:
        """The steps of the dead of this machine that we may take, and those that anybody may."""
        watched, self._silent, self._dead = self._watch(), [], []
        if self._looked is not None and watched - self._looked < _LOOK_SECONDS:
            return (), ()
        others = [row for row in nodes.node_rows(connection) if row["id"] != self.id]
        passed, self._looked = watched - (watched if self._looked is None else self._looked), watched
        signs = {row["id"]: (row["beat"], row["seen_at"], row["process_began"]) for row in others}
        self._sightings = sighted(self._sightings, signs, passed)
        self._silent = [row for row in others if self._sightings[row["id"]].is_silent]
        self._dead = [row["id"] for row in others if self.is_dead_here(row)]
        left = queue.leased_by(connection, self._dead, roots=roots, limit=room) if self._dead and room > 0 else ()
        return left, queue.leased_by_nobody(connection)

    def is_dead_here(self, row: Row) -> bool:
        """Whether another process was one of this machine, and works no more."""
        if row["host"] != self.host:
            return False
        began = process_began(row["process"])
        if row["process_began"] == began:
            return False
        # Two machines may have one name. Those who share a store then tell them apart by when they were started.
        is_here = boot_of(str(row["process_began"])) == boot_of(process_began(os.getpid()))
        return is_here or self.store.database.is_sqlite


def _lost(row: Row) -> Report:
    return Report(row["run_id"], row["flow_id"], LeaseLost(row["step_id"], row["fence"]))


def _taken_over(row: Row) -> Report:
    return Report(row["run_id"], row["flow_id"], TakenOver(row["step_id"], row["fence"]))


def _new_id() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
