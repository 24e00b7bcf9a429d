"""Whatever was done to a table: each capture tells exactly the rows that differ between its two ends.

A sample is run with all tests. Many more: ``make prove-changes``, see CONTRIBUTING.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from dalsegno import Changes
from dalsegno.errors import HistoryLost, UnsupportedChange
from dalsegno.iceberg import manifest_copies
from dalsegno.iceberg.files import Files
from dalsegno.model.captures import ChangeKind
from tests.iceberg.histories import FieldRow, Told, expire
from tests.iceberg.support import CONSUMER, Place, Rows
from tests.iceberg.told_values import readable

pytestmark = pytest.mark.spark

_CAPTURES = 3
_KINDS = ["before_after", "before_after", "upserts", "keys"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    first, number = (metafunc.config.getoption(name) for name in ("--first-history", "--histories"))
    metafunc.parametrize("seed", range(first, first + number))


@pytest.fixture
def lake(request: pytest.FixtureRequest, seed: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """One that pins, and every third time one that may not; every other one as if it were in an object store."""
    if seed % 2:
        monkeypatch.setattr(Files, "is_local", False)
        monkeypatch.setattr(manifest_copies, "MANY", 2)
    yield request.getfixturevalue("place" if seed % 3 else "unpinned")


def test_a_history(lake: Place, seed: int) -> None:
    told = Told.begun(lake, seed)
    state, _ = told.state()
    assert not told.source.capture(start="latest", changes="before_after")
    for _ in range(_CAPTURES):
        for _ in range(told.chance.randint(1, 4)):
            told.go_on()
        told.steps.append("capture")
        try:
            state = captured(told, lake.lake.settings.catalog(lake.catalog).pin, state)
        except BaseException as error:
            error.add_note(f"History {seed}: {'; '.join(told.steps)}")
            raise
    told.sql("drop table {t}")


def captured(told: Told, is_pinned: bool, before: Counter[FieldRow]) -> Counter[FieldRow]:
    """Capture, compare with what truly differs, and commit; the state that the table is in."""
    kind, keys = told.chance.choice(_KINDS), [told.column(1)]
    if told.chance.random() < 0.3 and kind == "before_after":
        keys = []
    position = told.source.place.lake.position(CONSUMER, told.source.name)
    mark = None if position is None else position.snapshot_id
    is_kept = mark is None or any(raw["snapshot-id"] == mark for raw in told.source.metadata["snapshots"])
    assert is_kept or not is_pinned
    try:
        changes = told.source.capture(changes=kind, keys=keys)
    except (HistoryLost, UnsupportedChange) as error:
        assert told.is_retyped if isinstance(error, UnsupportedChange) else not is_kept
        told.is_retyped = False
        changes = told.source.capture(start="full", changes=kind, keys=keys)
        changes.commit()
        return told.state()[0]
    assert is_kept
    after, ids = told.state()
    truth = Difference.between(projected(before, ids), projected(after, ids))
    if not changes:
        assert truth == Difference(Counter(), Counter())
        return after
    if is_pinned and told.chance.random() < 0.3:
        expire(told)
        told.steps.append("expire before reading")
    check(changes, told, truth, projected(after, ids))
    if changes.deleted_keys:
        named = told.source.place.spark_rows(f"select * from {changes.deleted_keys}")
        assert named.total() == changes.details["deleted_keys"]["rows"]
    assert changes.commit().left_over == ()
    return after


def projected(state: Counter[FieldRow], ids: list[int]) -> Rows:
    """The rows as a reader of these columns sees them; a column that was not there yet has no value."""
    found: Rows = Counter()
    for row, times in state.items():
        values = dict(row)
        found[tuple(values.get(field_id) for field_id in ids)] += times
    return found


@dataclass(frozen=True)
class Difference:
    """The rows that one state has and the other has not, as often as that."""

    added: Rows
    removed: Rows

    @classmethod
    def between(cls, before: Rows, after: Rows) -> Difference:
        return cls(after - before, before - after)


def check(changes: Changes, told_of: Told, truth: Difference, after: Rows) -> None:
    """What a capture's query tells is what differs, or more where the capture says so."""
    (captured_table,) = changes.tables.values()
    spec = captured_table.spec
    shown = [readable(raw["name"], raw["type"]) for raw in told_of.fields]
    if spec.changes is ChangeKind.KEYS:
        shown = ["*"]
    elif not spec.needs_only_after:
        shown.append("_change_type")
    found = told_of.source.place.spark_rows(f"select {', '.join(shown)} from (\n{changes.query('spark')}\n)")
    may_be_more = captured_table.details["may_be_more"] is not None
    match spec.changes:
        case ChangeKind.KEYS:
            key = captured_table.details["columns"].index(spec.keys[0])
            wanted = {(row[key],) for row in truth.added + truth.removed}
            assert set(found) == wanted and not may_be_more
        case ChangeKind.UPSERTS:
            plain = sums((row[: len(captured_table.details["columns"])], n) for row, n in found.items())
            assert plain >= truth.added and plain <= after if may_be_more else plain == truth.added
        case _:
            sides = [
                sums((row[:-1], n) for row, n in found.items() if row[-1] in kinds)
                for kinds in (("insert", "update_after"), ("delete", "update_before"))
            ]
            told = Difference.between(sides[1], sides[0])
            assert told == truth
            assert may_be_more or told == Difference(*sides)


def sums(counts: Iterable[tuple[tuple[Any, ...], int]]) -> Rows:
    found: Rows = Counter()
    for row, times in counts:
        found[row] += times
    return found
