"""Several tables in one capture: one cut, one checkpoint."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dalsegno.errors import UnsupportedChange
from tests.iceberg.support import CONSUMER, Place, Source, captured_from, numbered, rows

pytestmark = pytest.mark.spark


def committed_at(source: Source) -> datetime:
    latest = max(snapshot["timestamp-ms"] for snapshot in source.metadata["snapshots"])
    return datetime.fromtimestamp(latest / 1000, UTC)


def test_one_cut_and_one_checkpoint(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = place.table(), place.table()
    first.insert("1")
    second.insert("10")
    cut = committed_at(second) + timedelta(microseconds=500)
    first.insert("2")
    second.insert("20")
    monkeypatch.setattr(place.lake, "clock", lambda: cut)
    changes = place.lake.capture(first.name, second.name, consumer="both")
    assert place.rows_of_each(changes) == {first.name: numbered(1), second.name: numbered(10)}
    changes.commit()
    assert not place.lake.capture(first.name, second.name, consumer="both")
    monkeypatch.undo()
    changes = place.lake.capture(first.name, second.name, consumer="both")
    assert place.rows_of_each(changes) == {first.name: numbered(2), second.name: numbered(20)}
    changes.commit()
    moves = place.lake.history("both")
    assert [set(move.positions) for move in moves] == [{place.lake.name(first.name), place.lake.name(second.name)}] * 2


def test_unchanged_and_unwritten_tables_have_empty_change_tables(place: Place) -> None:
    busy, quiet, unwritten = place.table(), place.table("id int, v string", partitioned="v"), place.table(version=3)
    busy.insert("1")
    quiet.insert("1, 'a'")
    names = [busy.name, quiet.name, unwritten.name]
    place.lake.capture(*names, consumer="three").commit()
    busy.insert("2")
    changes = place.lake.capture(*names, consumer="three")
    assert place.rows_of_each(changes) == {busy.name: numbered(2), quiet.name: rows(), unwritten.name: rows()}
    assert captured_from(changes, quiet).details["rows"] == 0
    assert place.spark.table(str(captured_from(changes, quiet).change_table)).columns == ["id", "v"]
    changes.commit()
    unwritten.insert("7")
    changes = place.lake.capture(*names, consumer="three")
    assert place.rows_of_each(changes)[unwritten.name] == numbered(7)


def test_one_refusal_refuses_all(place: Place) -> None:
    good, bad = place.table(), place.table()
    for source in (good, bad):
        source.insert("1")
    place.lake.capture(good.name, bad.name, consumer="two").commit()
    before = place.change_tables()
    good.insert("2")
    bad.sql("delete from {t}")
    with pytest.raises(UnsupportedChange, match=bad.name):
        place.lake.capture(good.name, bad.name, consumer="two")
    assert place.change_tables() == before
    assert place.lake.store.captures("two", pending_only=True) == []
    assert good.taken("two") == numbered(2)


def test_a_clock_behind_the_checkpoint(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer's clock may be ahead of ours; what is processed already is no lost history."""
    first, second = place.table(), place.table()
    first.insert("1")
    second.insert("10")
    cut = committed_at(second)
    first.insert("2")
    assert first.taken() == numbered(1, 2)
    monkeypatch.setattr(place.lake, "clock", lambda: cut)
    changes = place.lake.capture(first.name, second.name, consumer=CONSUMER)
    assert place.rows_of_each(changes) == {first.name: rows(), second.name: numbered(10)}
    changes.commit()
    monkeypatch.undo()
    first.insert("3")
    changes = place.lake.capture(first.name, second.name, consumer=CONSUMER)
    assert place.rows_of_each(changes) == {first.name: numbered(3), second.name: rows()}


def test_names_that_become_the_same_word(place: Place) -> None:
    place.sql(f"create namespace {place.catalog}.a_b")
    place.sql(f"create namespace {place.catalog}.a")
    first, second = Source(place, "a_b.c"), Source(place, "a.b_c")
    for number, source in enumerate((first, second)):
        source.sql("create table {t} (id int) using iceberg")
        source.insert(str(number))
    changes = place.lake.capture(first.name, second.name, consumer="same")
    assert place.rows_of_each(changes) == {first.name: numbered(0), second.name: numbered(1)}
