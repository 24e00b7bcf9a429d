"""Incremental triggers: never for nothing, never too early, never too late, and not again and again for the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from dalsegno.triggers.table_triggers.model import Memory, Rules, Unprocessed
from dalsegno.triggers.table_triggers.plan.decisions import decide

BEGIN = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
TABLES = ("a", "b", "c")
SPANS = st.sampled_from([0, 5, 30, 120]).map(lambda seconds: seconds * SECOND)
COUNTS = st.one_of(st.none(), st.integers(1, 4))


@st.composite
def some_rules(draw: st.DrawFn) -> Rules:
    quiet, interval = draw(SPANS), draw(SPANS)
    max_wait = draw(st.one_of(st.none(), SPANS.map(lambda span: max(span, quiet, interval, SECOND))))
    return Rules(
        "some tables", draw(st.booleans()), quiet, interval, max_wait, draw(COUNTS), draw(COUNTS), draw(COUNTS), None
    )


#: What happens, and how many seconds later: somebody commits to a table, the open run ends, or nothing but time.
HAPPENINGS = st.lists(
    st.tuples(
        st.one_of(
            st.tuples(st.just("commit"), st.sampled_from(TABLES)),
            st.tuples(st.just("refused"), st.sampled_from(TABLES)),
            st.tuples(st.just("end"), st.sampled_from(["processed", "one", "failed"])),
            st.just(("look", "")),
        ),
        st.integers(0, 60),
    ),
    max_size=40,
)


@dataclass
class World:
    """Tables whose snapshots are numbers, and runs that end when they are told to."""

    rules: Rules
    tables: int
    now: datetime = BEGIN
    memory: Memory = field(default_factory=Memory)
    #: By table, the moments of what is unprocessed; the number of a snapshot is where it stands, from the beginning on.
    commits: dict[str, list[datetime]] = field(default_factory=dict)
    done: dict[str, int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    is_open: bool = False
    starts: list[datetime] = field(default_factory=list)

    @property
    def watched(self) -> tuple[str, ...]:
        return TABLES[: self.tables]

    def found(self) -> dict[str, Unprocessed | None]:
        return {table: self.of(table) for table in self.watched}

    def of(self, table: str) -> Unprocessed | None:
        commits, done = self.commits.get(table, []), self.done.get(table, 0)
        left = commits[done:]
        if not left:
            return None
        if table in self.refused:
            return Unprocessed((-1, done), left[-1], left[-1], 0, None, None, None, refusal="it was rolled back")
        count = len(left)
        return Unprocessed((done + 1, len(commits)), left[0], left[-1], count, count, 2 * count, None)

    def look(self) -> datetime | None:
        """Decide once; whatever is started must be allowed to, and the answer stays the same until then."""
        found = self.found()
        decision = decide(self.rules, self.memory, found, self.now, is_open=self.is_open)
        if decision.starts:
            assert not self.is_open
            assert any(found.values())
            if self.starts:
                assert self.now - self.starts[-1] >= self.rules.min_interval
            # Something has come or was processed since the last start, or it has waited once more.
            spans = {table: each.span for table, each in found.items() if each}
            has_news = any(self.memory.started_for.get(table) != span for table, span in spans.items())
            limit = self.rules.max_wait
            assert has_news or (limit is not None and self.now - self.starts[-1] >= limit)
            self.starts.append(self.now)
            self.is_open = True
        else:
            assert self.is_open or not self.is_overdue(found)
        self.memory = decision.memory
        # To ask again changes nothing.
        again = decide(self.rules, self.memory, found, self.now, is_open=self.is_open)
        assert not again.starts
        assert again.memory == self.memory
        return decision.again_at

    def is_overdue(self, found: dict[str, Unprocessed | None]) -> bool:
        since = [each.first for each in found.values() if each and not each.refusal]
        if self.rules.max_wait is None or not since:
            return False
        return self.now >= max([min(since), *self.starts[-1:]]) + self.rules.max_wait

    def pass_time(self, pause: timedelta) -> None:
        """Look at every moment at which time alone leads to a start, as the service does."""
        until = self.now + pause
        for _ in range(100):
            again_at = self.look()
            if again_at is None or again_at > until:
                break
            assert again_at > self.now
            self.now = again_at
        else:
            raise AssertionError("it does not come to rest")
        self.now = until

    def happen(self, kind: str, which: str) -> None:
        match kind:
            case "commit" | "refused":
                self.commits.setdefault(which, []).append(self.now)
                if kind == "refused":
                    self.refused.add(which)
            case "end" if self.is_open:
                self.is_open = False
                for table in self.watched if which != "failed" else ():
                    if table not in self.refused:
                        left = self.done.get(table, 0) + 1
                        every = len(self.commits.get(table, []))
                        self.done[table] = min(left, every) if which == "one" else every


@settings(deadline=None, max_examples=200)
@given(some_rules(), st.integers(1, 3), HAPPENINGS)
def test_whatever_happens(rules: Rules, tables: int, happenings: list[tuple[tuple[str, str], int]]) -> None:
    world = World(rules, tables)
    for (kind, which), pause in happenings:
        world.happen(kind, which)
        world.pass_time(pause * SECOND)


@settings(deadline=None, max_examples=100)
@given(some_rules(), st.lists(st.integers(0, 20), min_size=1, max_size=60))
def test_runs_that_fail_are_no_storm(rules: Rules, pauses: list[int]) -> None:
    """Somebody commits all the time, and every run fails at once: each start is twice as far from the last."""
    world = World(rules, 1)
    for pause in pauses:
        world.happen("commit", "a")
        world.happen("end", "failed")
        world.pass_time(pause * SECOND)
    gaps = [after - before for before, after in zip(world.starts, world.starts[1:], strict=False)]
    longest = rules.max_wait or timedelta(hours=1)
    for number, gap in enumerate(gaps):
        assert gap >= min(timedelta(minutes=1) * 2**number, longest, timedelta(hours=1))


@settings(deadline=None, max_examples=60)
@given(some_rules(), st.integers(1, 10**6))
def test_a_clock_that_is_put_back_holds_nothing_up_for_ever(rules: Rules, ahead: int) -> None:
    world = World(rules, 1, now=BEGIN + ahead * SECOND)
    for _ in range(4):
        world.happen("commit", "a")
    world.pass_time(timedelta(hours=1))
    started = len(world.starts)
    assert started
    world.happen("end", "processed")
    world.look()
    world.now, world.starts = BEGIN, []
    for _ in range(4):
        world.happen("commit", "a")
    world.pass_time(timedelta(hours=1))
    assert world.starts
