"""``ALTER TABLE RENAME``: a checkpoint follows its table; what is not certain is refused; nothing is captured twice."""

from __future__ import annotations

import pytest

from dalsegno.errors import CapturePending, HistoryLost
from dalsegno.model.snapshots import Position
from dalsegno.triggers.table_triggers.capture import WatchedTables
from dalsegno.triggers.table_triggers.model import Watch
from tests.iceberg.support import CONSUMER, NAMESPACE, Place, Source, numbered

pytestmark = pytest.mark.spark


def rename(source: Source, name: str) -> Source:
    source.sql(f"alter table {{t}} rename to {NAMESPACE}.{name}")
    return Source(source.place, f"{NAMESPACE}.{name}")


def fresh(source: Source) -> str:
    return source.name.partition(".")[2] + "_new"


def begun(place: Place, *, version: int = 2) -> Source:
    """A table with one processed row and one that is not."""
    source = place.table(version=version)
    source.insert("1")
    assert source.taken() == numbered(1)
    source.insert("2")
    return source


def stored(source: Source) -> Position | None:
    return source.place.lake.store.position(CONSUMER, source.place.lake.name(source.name))


def waiting(source: Source) -> int | None:
    """The rows that a trigger finds."""
    watch = Watch(source.place.lake.name(source.name), CONSUMER)
    found = WatchedTables(source.place.lake.context).look([watch])[watch]
    return None if found is None else found.rows


@pytest.mark.parametrize("start", [None, "latest"])
def test_a_checkpoint_follows(place: Place, start: str | None, caplog: pytest.LogCaptureFixture) -> None:
    """As a step asks, which names in every run where the first one begins."""
    old = begun(place)
    new = rename(old, fresh(old))
    (plan,) = place.lake.plan(new.name, consumer=CONSUMER)
    assert plan.checkpoint and plan.refusal is None and plan.to_read and plan.to_read.rows == 1
    assert waiting(new) == 1
    assert place.lake.position(CONSUMER, new.name) is not None
    assert new.taken(start=start, is_start_for_first=True) == numbered(2)
    said = f"{place.catalog}.{old.name} was renamed to {place.catalog}.{new.name}"
    assert said in caplog.text
    assert [move.reason for move in place.lake.history(CONSUMER, new.name)] == ["capture committed", said]
    assert stored(old) is None
    assert not new.capture()
    assert waiting(new) is None
    # And back again.
    new.insert("3")
    back = rename(new, old.name.partition(".")[2])
    assert back.taken() == numbered(3)
    assert not back.capture()


def test_another_table_under_the_old_name(place: Place) -> None:
    old = begun(place)
    new = rename(old, fresh(old))
    old.sql(f"create table {{t}} using iceberg as select * from {new.full}")
    with pytest.raises(HistoryLost, match="created anew"):
        old.capture()
    assert new.taken() == numbered(2)
    with pytest.raises(HistoryLost, match=r"another table.*--from earliest"):
        old.capture()
    (plan,) = place.lake.plan(old.name, consumer=CONSUMER)
    assert plan.refusal and plan.refusal["code"] == "HistoryLost"
    assert old.taken(start="earliest") == numbered(1, 2)
    new.insert("3")
    old.insert("4")
    assert (new.taken(), old.taken()) == (numbered(3), numbered(4))


def test_swapped_names(place: Place) -> None:
    one, other = begun(place), begun(place)
    aside = rename(one, fresh(one))
    rename(other, one.name.partition(".")[2])
    rename(aside, other.name.partition(".")[2])
    one.insert("10")
    other.insert("20")
    assert one.taken() == numbered(2, 10)
    assert other.taken() == numbered(2, 20)
    assert not one.capture() and not other.capture()


def test_a_pending_capture_under_the_old_name(place: Place) -> None:
    old = begun(place)
    pending = old.capture()
    new = rename(old, fresh(old))
    new.insert("3")
    with pytest.raises(CapturePending, match=f"dalsegno abandon {pending.id}.*dalsegno commit {pending.id}"):
        new.capture()
    with pytest.raises(CapturePending):
        place.lake.set_checkpoint(new.name, consumer=CONSUMER, to="latest")
    assert place.rows_of(pending) == numbered(2)
    pending.commit()
    assert new.taken() == numbered(3)


def test_a_first_capture_that_was_given_up_under_the_old_name(place: Place) -> None:
    old = place.table()
    old.insert("1")
    start = old.head
    old.insert("2")
    old.capture(start=str(start))
    new = rename(old, fresh(old))
    with pytest.raises(CapturePending) as refused:
        new.capture()
    place.lake.abandon(refused.value.capture_id)
    assert new.taken() == numbered(2)


def test_a_copy_that_is_registered_under_another_name(place: Place) -> None:
    old = begun(place)
    copy = Source(place, f"{NAMESPACE}.{fresh(old)}")
    location = place.lake.load(place.lake.name(old.name)).metadata_location
    place.call(f"register_table('{copy.name}', '{location}')")
    with pytest.raises(HistoryLost, match=r"is unknown.*checkpoints set"):
        copy.capture()
    assert copy.taken(start="earliest") == numbered(1, 2)
    assert old.taken() == numbered(2)
    copy.insert("5")
    old.insert("6")
    assert (copy.taken(), old.taken()) == (numbered(5), numbered(6))


def test_a_checkpoint_that_was_set_under_the_new_name(place: Place) -> None:
    old = begun(place)
    new = rename(old, fresh(old))
    place.lake.set_checkpoint(new.name, consumer=CONSUMER, to="latest")
    new.insert("3")
    back = rename(new, old.name.partition(".")[2])
    assert back.taken() == numbered(3)
