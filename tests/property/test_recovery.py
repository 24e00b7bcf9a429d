"""A store that is lost at any moment: checkpoints read back from the targets lose nothing and double nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import event, given
from hypothesis import strategies as st

from dalsegno.errors import DataError
from dalsegno.model.snapshots import History
from dalsegno.model.stamps import StampedRange, Write
from dalsegno.model.tables import TableName
from dalsegno.plan.recovery import recovered_position, written_by_source
from tests.unit.test_increments import history, snap

SOURCE = TableName.of("lake.db.plays")
COPIES, DAYS = TableName.of("lake.db.copies"), TableName.of("lake.db.days")
#: What a run does, one after the other: blind inserts, two of them into the same table.
STATEMENTS = ((COPIES, "1"), (COPIES, "2"), (DAYS, "3"))


@dataclass
class Pipeline:
    """A consumer whose runs capture, write statement by statement, and commit."""

    rows: int = 0
    checkpoint: int = 0
    pending: StampedRange | None = None
    writes: list[Write] = field(default_factory=list)

    @property
    def source(self) -> History:
        return history(*(snap(number, number - 1 or None) for number in range(1, self.rows + 1)))

    def run(self, dies_after: int | None) -> None:
        """One more row, and a run that may die after so many statements; after all of them, before the commit."""
        self.rows += 1
        if self.pending is None:
            name = f"{self.checkpoint}-{self.rows}-{len(self.writes)}"
            self.pending = StampedRange(name, "daily", SOURCE, "u", "main", self.checkpoint or None, self.rows)
        for done, (target, statement) in enumerate(STATEMENTS):
            if done == dies_after:
                return
            if not any(w.ranges[0] == self.pending and w.statement == statement for w in self.writes):
                at = len(self.writes) + 1
                self.writes.append(Write(target, at, at, "w", "write", statement, (self.pending,)))
        if dies_after is None:
            self.checkpoint, self.pending = self.pending.upto or 0, None

    def lose_store(self) -> bool:
        """Whether the checkpoint could be read back."""
        self.pending = None
        known = list(written_by_source(self.writes).values())
        if not known:
            self.checkpoint = 0
            return True
        try:
            self.checkpoint = recovered_position(self.source, known[0]).snapshot_id or 0
        except DataError:
            return False
        return True

    def rows_written(self, statement: str) -> list[int]:
        ranges = [write.ranges[0] for write in self.writes if write.statement == statement]
        return sorted(row for each in ranges for row in range((each.after or 0) + 1, (each.upto or 0) + 1))


deaths = st.one_of(st.none(), st.integers(0, len(STATEMENTS)))


@given(st.lists(deaths, max_size=8), st.lists(deaths, max_size=8))
def test_nothing_is_lost_and_nothing_doubled(before: list[int | None], after: list[int | None]) -> None:
    pipeline = Pipeline()
    # The first run of all ends: only then do the targets tell what a run writes.
    for dies_after in (None, *before):
        pipeline.run(dies_after)
    newest = {write.statement for write in pipeline.writes if write.ranges == pipeline.writes[-1].ranges}
    if not pipeline.lose_store():
        event("refused")
        assert len(newest) < len(STATEMENTS), "what was written whole must not be refused"
        return
    event("rebuilt")
    for dies_after in (*after, None, None):
        pipeline.run(dies_after)
    for _, statement in STATEMENTS:
        assert pipeline.rows_written(statement) == list(range(1, pipeline.rows + 1))
