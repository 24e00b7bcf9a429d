"""No row is lost, none is doubled, and nobody is stuck: whatever dies, whenever, and however many run at once.

A source grows by snapshots. Runs of one consumer capture what is new, append it blindly to a target, stamped with the
capture, and commit. A history is a list of numbers that say, one after the other, what happens next: a snapshot, a
new run, one more step of a run, the death of a run, an operator who gives up what a dead run left. In the end
everybody still alive finishes, somebody runs alone until there is nothing new, and the target must hold every row of
the source once.

Captures and checkpoints are in a real store. That two runs do not process the *same* capture at once is not its
business but that of whoever starts runs; here a table of leases stands for it.

The same histories with a rule left out lead to doubled rows or to a consumer that is stuck: the check can fail.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dalsegno.errors import CapturePending, CaptureSettled, CheckpointMoved
from dalsegno.model.captures import Capture, CapturedTable, CaptureState
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName
from dalsegno.store import Store, captures

PLAYBACK = TableName.of("lake.db.playback")
MEMBERS = TableName.of("lake.db.members")
WISHES = [(PLAYBACK,), (MEMBERS,), (PLAYBACK, MEMBERS)]
NOW = datetime(2026, 11, 15, tzinfo=UTC)
MOST_RUNS = 4
#: As many as ``happen`` tells apart; some stand for the same, so that it comes more often.
KINDS = 12

numbers = count()


@dataclass(frozen=True)
class Rules:
    """What keeps a history straight; each can be left out."""

    #: On a retry, a target that carries the capture's stamp is not written again.
    stamp: bool = True
    #: A retry goes on with the capture that the dead run left, rather than make its own.
    keep: bool = True
    #: A capture is recorded only if the checkpoint is at its start.
    at_checkpoint: bool = True
    #: A capture is recorded only if no other of the same table is pending: the store's unique index.
    alone: bool = True


@dataclass
class World:
    store: Store
    rules: Rules
    consumer: str = field(default_factory=lambda: f"consumer {next(numbers)}")
    #: The rows that each snapshot added; those of a compaction are none. The first snapshot is number 1.
    sources: dict[TableName, list[list[int]]] = field(default_factory=lambda: {PLAYBACK: [], MEMBERS: []})
    target: list[int] = field(default_factory=list)
    stamps: set[str] = field(default_factory=set)
    runs: dict[str, Generator[None]] = field(default_factory=dict)
    leases: dict[str, str] = field(default_factory=dict)

    def happen(self, number: int) -> None:
        kind, choice = number % KINDS, number // KINDS
        tables = list(self.sources)
        match kind:
            case 0 | 1:
                self.sources[tables[choice % 2]].append([next(numbers) for _ in range(1 + choice % 3)])
            case 2:
                self.sources[tables[choice % 2]].append([])
            case 3 | 4 if len(self.runs) < MOST_RUNS:
                self.start(WISHES[choice % len(WISHES)])
            case 5 if self.runs:
                self.runs.pop(self.one_of_the_runs(choice)).close()
            case 6:
                self.give_up()
            case _ if self.runs:
                self.go_on(self.one_of_the_runs(choice))

    def start(self, wanted: tuple[TableName, ...]) -> str:
        name = f"run {next(numbers)}"
        self.runs[name] = self.run(name, wanted)
        return name

    def one_of_the_runs(self, choice: int) -> str:
        return list(self.runs)[choice % len(self.runs)]

    def go_on(self, name: str) -> None:
        if next(self.runs[name], "ended") == "ended":
            del self.runs[name]

    def run(self, name: str, wanted: tuple[TableName, ...]) -> Generator[None]:
        """A run; it may die, and others may act, wherever it yields."""
        found = [self.store.pending(self.consumer, table) for table in wanted]
        capture = next(filter(None, found), None)
        yield
        if capture is None or not self.rules.keep:
            new = yield from self.next_capture(name, wanted)
            if new is None:
                return
            try:
                self.record(new)
                capture = new
            except CheckpointMoved:
                return
            except CapturePending as pending:
                capture = self.store.capture(pending.capture_id)
            yield
        if not self.lease(capture.id, name):
            return
        capture = self.store.capture(capture.id)
        if capture.state is CaptureState.PREPARING:
            yield
            self.store.mark_ready(capture.id, {})
        elif not capture.state.is_pending:
            return
        yield
        self.write(capture)
        yield
        try:
            self.store.commit(capture.id, by=name, now=NOW)
        except (CaptureSettled, CheckpointMoved):
            # With all rules this cannot be: nobody settles a capture that a living run holds.
            assert self.rules != Rules()

    def next_capture(self, name: str, wanted: tuple[TableName, ...]) -> Generator[None, None, Capture | None]:
        id = f"capture {next(numbers)}"
        parts = []
        for table in wanted:
            position = self.store.position(self.consumer, table)
            yield
            after, head = position or at(0), len(self.sources[table])
            new = self.sources[table][after.sequence_number : head]
            if not any(new):
                if new:
                    self.step_over(name, table, position, at(head))
                continue
            change_table = TableName("lake", ("changes",), f"{id} {table.name}")
            parts.append(CapturedTable(table, after, at(head), position is None, False, change_table, f"file:///{id}"))
        yield
        if not parts:
            return None
        return Capture(id, self.consumer, CaptureState.PREPARING, NOW, name, NOW + timedelta(days=7), tuple(parts))

    def step_over(self, name: str, table: TableName, expected: Position | None, to: Position) -> None:
        try:
            self.store.move_checkpoint(
                self.consumer, {table: (expected, to)}, by=name, now=NOW, reason="compaction only"
            )
        except (CheckpointMoved, CapturePending):
            return

    def record(self, new: Capture) -> None:
        if not self.rules.keep:
            for captured in new.tables:
                left = self.store.pending(self.consumer, captured.table)
                if left and self.leases.get(left.id) not in self.runs:
                    self.store.abandon(left.id, by=new.created_by, now=NOW, reason="I make my own")
        if self.rules.at_checkpoint:
            self.store.record_capture(new)
            return
        for captured in new.tables:
            if holder := self.store.pending(self.consumer, captured.table):
                raise CapturePending("", capture_id=holder.id)
        with self.store.database.writing() as connection:
            captures.add(connection, new)

    def lease(self, capture_id: str, name: str) -> bool:
        """One living run at a time works on a capture."""
        if self.leases.get(capture_id, name) != name and self.leases[capture_id] in self.runs:
            return False
        self.leases[capture_id] = name
        return True

    def write(self, capture: Capture) -> None:
        if capture.id in self.stamps and self.rules.stamp:
            return
        for captured in capture.tables:
            snapshots = self.sources[captured.table]
            for rows in snapshots[captured.after.sequence_number : captured.upto.sequence_number]:
                self.target.extend(rows)
        self.stamps.add(capture.id)

    def give_up(self) -> None:
        """An operator abandons what a dead run left, if it was not written."""
        for capture in self.store.captures(self.consumer, pending_only=True):
            if self.leases.get(capture.id) not in self.runs and capture.id not in self.stamps:
                self.store.abandon(capture.id, by="operator", now=NOW, reason="its run died")
                return

    def finish(self) -> None:
        while self.runs:
            for name in list(self.runs):
                self.go_on(name)
        # One run may have to finish what is pending, the next takes what is new, on each of two tables.
        for wanted in WISHES * 3:
            name = self.start(wanted)
            while name in self.runs:
                self.go_on(name)

    def faults(self) -> set[str]:
        expected = Counter(row for snapshots in self.sources.values() for rows in snapshots for row in rows)
        found = Counter(self.target)
        faults = set()
        if expected - found:
            faults.add("lost")
        if found - expected:
            faults.add("doubled")
        for table, snapshots in self.sources.items():
            position = self.store.position(self.consumer, table)
            if snapshots and (position is None or position.sequence_number != len(snapshots)):
                faults.add("stuck")
        return faults


def at(number: int) -> Position:
    return Position("uuid-1", "main", number or None, number, number or None, 0)


def faults(store: Store, rules: Rules, history: list[int]) -> set[str]:
    world = World(store, rules)
    for number in history:
        world.happen(number)
    world.finish()
    return world.faults()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One for all histories: each has a consumer of its own."""
    with opened(tmp_path_factory.mktemp("store") / "store.db") as store:
        yield store


@pytest.fixture(scope="module")
def store_without_the_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with opened(tmp_path_factory.mktemp("store") / "store.db") as store:
        with store.database.writing() as connection:
            connection.exec_driver_sql("DROP INDEX uq_capture_tables_pending")
        yield store


def opened(path: Path) -> Store:
    return Store.open(f"sqlite:///{path}")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=st.lists(st.integers(0, KINDS * 12 - 1), max_size=60))
def test_every_row_arrives_once(store: Store, history: list[int]) -> None:
    assert faults(store, Rules(), history) == set()


def test_every_row_arrives_once_in_long_histories(store: Store) -> None:
    """Those above shrink well but most are short; a fault needs several runs and deaths to come together."""
    for history in random_histories(100):
        assert faults(store, Rules(), history) == set(), history


@pytest.mark.parametrize(
    ("without", "expected"),
    [
        (Rules(stamp=False), {"doubled"}),
        (Rules(keep=False), {"doubled"}),
        (Rules(at_checkpoint=False), {"doubled", "stuck"}),
        (Rules(alone=False), {"doubled", "stuck"}),
    ],
    ids=["stamp", "keep", "at_checkpoint", "alone"],
)
def test_without_one_of_the_rules_it_does_not(
    store: Store, store_without_the_index: Store, without: Rules, expected: set[str]
) -> None:
    seen: set[str] = set()
    for history in random_histories(300):
        seen |= faults(store if without.alone else store_without_the_index, without, history)
        if seen >= expected:
            return
    pytest.fail(f"only {seen or 'nothing'} was seen: the check would not notice that a rule is missing")


def random_histories(how_many: int) -> Iterator[list[int]]:
    for seed in range(how_many):
        chance = random.Random(seed)
        yield [chance.randrange(KINDS * 12) for _ in range(60)]
