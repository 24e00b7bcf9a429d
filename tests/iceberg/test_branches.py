"""Branches other than main, and snapshots that were staged and picked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dalsegno.errors import UserError
from tests.iceberg.support import MERGE_MANIFESTS, Place, Source, numbered, rows

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("version", [2, 3])
def test_a_branch_is_a_source_of_its_own(place: Place, version: int) -> None:
    source = place.table(version=version, properties=MERGE_MANIFESTS)
    source.insert("1")
    source.sql("alter table {t} create branch audit")
    source.insert("2")
    source.insert("10", into="{t}.branch_audit")
    assert source.taken("audit", branch="audit") == numbered(1, 10)
    assert source.taken("main") == numbered(1, 2)
    source.insert("3")
    source.insert("20", into="{t}.branch_audit")
    assert source.taken("audit", branch="audit") == numbered(20)
    assert source.taken("main") == numbered(3)
    assert not source.capture("audit", branch="audit")


def test_a_branch_is_read_with_the_tables_schema(place: Place) -> None:
    source = place.table("id int, v string")
    source.insert("1, 'a'")
    source.sql("alter table {t} create branch audit", "alter table {t} add column n int")
    source.insert("2, 'b', 20")
    changes = source.capture(branch="audit")
    expected = place.spark_rows(f"select * from {source.full}.branch_audit")
    assert place.rows_of(changes) == expected == rows((1, "a", None))


def test_a_consumer_stays_on_its_branch(place: Place) -> None:
    source = place.table()
    source.insert("1")
    source.sql("alter table {t} create branch audit")
    source.taken()
    with pytest.raises(UserError, match="is on branch 'main', not on 'audit'"):
        source.capture(branch="audit")


def test_a_fast_forward_brings_the_branchs_rows(place: Place) -> None:
    source = place.table()
    source.insert("1")
    source.taken()
    source.sql("alter table {t} create branch audit")
    source.insert("2", into="{t}.branch_audit")
    source.insert("3", into="{t}.branch_audit")
    assert not source.capture()
    place.call(f"fast_forward('{source.name}', 'main', 'audit')")
    assert source.taken() == numbered(2, 3)


@contextmanager
def staged(source: Source, wap_id: str) -> Iterator[None]:
    """Writes inside are staged: nobody reads them until they are published."""
    conf = source.place.spark.conf
    conf.set("spark.wap.id", wap_id)
    try:
        yield
    finally:
        conf.unset("spark.wap.id")


@pytest.mark.parametrize("since", ["nothing", "an append"])
def test_a_picked_snapshot_is_captured_once(place: Place, since: str) -> None:
    """Picked onto its own parent it is just moved to; onto another it is added under a new id."""
    source = place.table(properties={"write.wap.enabled": "true"})
    source.insert("1")
    source.taken()
    with staged(source, "w1"):
        source.insert("2")
    assert not source.capture(), "staged is not published"
    if since == "an append":
        source.insert("3")
        assert source.taken() == numbered(3)
    picked = next(s for s in source.metadata["snapshots"] if s["summary"].get("wap.id") == "w1")["snapshot-id"]
    place.call(f"cherrypick_snapshot('{source.name}', {picked})")
    changes = source.capture()
    assert place.rows_of(changes) == numbered(2)
    assert changes.files == 1
    changes.commit()
    assert not source.capture()
    source.insert("4")
    assert source.taken() == numbered(4)


def test_published_changes(place: Place) -> None:
    source = place.table(properties={"write.wap.enabled": "true"})
    source.insert("1")
    source.taken()
    for number, wap_id in ((2, "w2"), (3, "w3")):
        with staged(source, wap_id):
            source.insert(str(number))
    place.call(f"publish_changes('{source.name}', 'w3')")
    place.call(f"publish_changes('{source.name}', 'w2')")
    assert source.taken() == numbered(2, 3)
    assert source.taken("all") == numbered(1, 2, 3)
