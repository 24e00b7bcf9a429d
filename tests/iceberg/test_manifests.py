"""Manifests merged and rewritten, files compacted, history expired: what a range added is still found, or refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dalsegno.errors import HistoryLost
from dalsegno.iceberg.files import Files
from tests.iceberg.support import CONSUMER, MERGE_MANIFESTS, Place, Source, numbered

pytestmark = pytest.mark.spark


def expire_all(source: Source) -> None:
    """Java's expiry, as eager as it can be."""
    now = f"timestamp '{datetime.now(UTC):%F %T.%f}'"
    source.place.call(f"expire_snapshots(table => '{source.name}', older_than => {now}, retain_last => 1)")


def compact(source: Source) -> None:
    source.place.call(f"rewrite_data_files(table => '{source.name}', options => map('rewrite-all', 'true'))")
    assert source.operations[-1] == "replace"


def treatments(details: dict[str, object]) -> list[str]:
    return [item["treatment"] for item in details["snapshots"]]  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_merged_manifests_are_reduced_to_what_was_added(place: Place, version: int) -> None:
    source = place.table(
        "id int, part string",
        partitioned="part",
        version=version,
        properties=MERGE_MANIFESTS,
    )
    source.insert("1, 'a'", "2, 'b'", "3, 'c'")
    assert len(source.taken()) == 3
    source.insert("4, 'a'", "5, 'd'")
    source.insert("6, 'b'", "7, null")
    changes = source.capture(partitions=True)
    assert place.rows_of(changes) == source.rows("select * from {t} where id > 3")
    # Bounds of merged manifests would be too wide or, if left out of a copy, must not hide files from a filter.
    filtered = place.spark_rows(f"select id from {changes.table} where part in ('a', 'd')")
    assert filtered == numbered(4, 5)
    assert place.pyiceberg(changes.identifier).scan("part == 'd'").to_arrow()["id"].to_pylist() == [5]
    assert {item["values"]["part"]: item["novelty"] for item in changes.partitions or ()} == {
        "a": "reopened",
        "b": "reopened",
        "d": "new",
        None: "new",
    }


def test_manifests_rewritten_inside_the_range(place: Place) -> None:
    source = place.table()
    source.insert("1")
    source.taken()
    source.insert("2")
    place.call(f"rewrite_manifests('{source.name}')")
    source.insert("3")
    place.call(f"rewrite_manifests('{source.name}')")
    changes = source.capture()
    assert place.rows_of(changes) == numbered(2, 3)
    assert treatments(dict(changes.details)) == ["captured", "skipped: replace", "captured", "skipped: replace"]


@pytest.mark.parametrize("version", [2, 3])
def test_compaction_is_skipped_and_shown(place: Place, version: int) -> None:
    source = place.table(version=version)
    source.insert("1")
    source.taken()
    source.insert("2")
    source.insert("3")
    compact(source)
    source.insert("4")
    changes = source.capture()
    assert place.rows_of(changes) == numbered(2, 3, 4)
    assert treatments(dict(changes.details)) == ["captured", "captured", "skipped: replace", "captured"]
    assert (changes.details["captured_snapshots"], changes.details["skipped_snapshots"]) == (3, 1)
    changes.commit()
    compact(source)
    assert not source.capture(), "a compaction alone is nothing to process"
    source.insert("5")
    assert source.taken() == numbered(5)


@pytest.mark.parametrize("version", [2, 3])
def test_a_pinned_range_survives_compaction_and_expiry(place: Place, version: int) -> None:
    source = place.table(version=version)
    source.insert("1")
    source.taken()
    source.insert("2")
    source.insert("3")
    changes = source.capture()
    assert changes.details["pinned"]
    compact(source)
    expire_all(source)
    assert len(source.snapshots) == 4, "the checkpoint, the two of the range, and the head"
    assert place.rows_of(changes) == numbered(2, 3)
    assert source.capture().id == changes.id
    changes.commit()
    expire_all(source)
    source.insert("4")
    assert source.taken() == numbered(4)


def test_a_pin_lets_go_of_what_was_processed(place: Place) -> None:
    source = place.table()
    for number in range(1, 4):
        source.insert(str(number))
    assert source.taken() == numbered(1, 2, 3)
    expire_all(source)
    assert source.snapshots == [source.head]


def test_a_pin_ends_with_its_lifetime(place: Place) -> None:
    """Its age counts from the snapshot's time, not from the capture's, so the snapshot's age is added."""
    source = place.table()
    source.insert("1")
    source.capture()
    ref = source.metadata["refs"][f"dalsegno_{CONSUMER}"]
    (snapshot,) = source.metadata["snapshots"]
    ends = datetime.fromtimestamp((snapshot["timestamp-ms"] + ref["max-ref-age-ms"]) / 1000, UTC)
    assert abs(ends - datetime.now(UTC) - place.lake.settings.capture_lifetime) < timedelta(minutes=1)


def test_without_a_pin_lost_files_are_never_passed_over(unpinned: Place) -> None:
    source = unpinned.table()
    source.insert("1")
    source.taken()
    source.insert("2")
    source.insert("3")
    compact(source)
    expire_all(source)
    position = unpinned.lake.store.position(CONSUMER, unpinned.lake.name(source.name))
    with pytest.raises(HistoryLost, match="has expired history since the checkpoint"):
        source.capture()
    assert unpinned.lake.store.position(CONSUMER, unpinned.lake.name(source.name)) == position
    assert unpinned.lake.store.captures(CONSUMER, pending_only=True) == []
    assert unpinned.change_tables() == []
    assert source.taken(start="full") == numbered(1, 2, 3)


def test_without_a_pin_a_capture_says_so(unpinned: Place) -> None:
    source = unpinned.table()
    source.insert("1")
    changes = source.capture("says")
    assert not changes.details["pinned"]
    assert "pin = false" in changes.details["pin"]
    assert set(source.metadata["refs"]) == {"main"}
    changes.commit()


def test_a_source_that_may_not_be_written_is_captured_unpinned(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    source = place.table()
    source.insert("1")
    location, write = source.metadata["location"], Files.write

    def refusing(files: Files, path: str, content: bytes) -> None:
        if path.startswith(location):
            raise PermissionError(13, "Permission denied", path)
        write(files, path, content)

    monkeypatch.setattr(Files, "write", refusing)
    changes = source.capture("reader")
    assert place.rows_of(changes) == numbered(1)
    assert not changes.details["pinned"]
    assert "Permission denied" in changes.details["pin"]
    assert changes.commit().left_over == ()


def test_an_expired_checkpoint_is_proven_by_its_child(unpinned: Place) -> None:
    """Java leaves the parent's id in the child, so nothing can lie between the two."""
    source = unpinned.table()
    source.insert("1")
    source.insert("2")
    assert source.taken("child") == numbered(1, 2)
    source.insert("3")
    expire_all(source)
    assert len(source.snapshots) == 1
    changes = source.capture("child", partitions=True)
    assert unpinned.rows_of(changes) == numbered(3)
    assert [item["novelty"] for item in changes.partitions or ()] == ["unknown"]
    changes.commit()


def test_expiry_by_pyiceberg_is_refused(unpinned: Place) -> None:
    """PyIceberg takes the parent's id out of the child: a replaced table would look the same."""
    source = unpinned.table()
    source.insert("1")
    source.taken("py")
    source.insert("2")
    checkpoint = source.snapshots[0]
    source.pyiceberg.maintenance.expire_snapshots().by_id(checkpoint).commit()
    with pytest.raises(HistoryLost, match="was replaced, or its history expired") as refusal:
        source.capture("py")
    assert str(checkpoint) in str(refusal.value)
    assert "--from full" in str(refusal.value)
    assert source.taken("py", start="full") == numbered(1, 2)


@pytest.mark.parametrize("expired_by", ["java", "pyiceberg"])
def test_an_unproven_beginning_is_refused(unpinned: Place, expired_by: str) -> None:
    source = unpinned.table()
    source.insert("1")
    source.insert("2")
    if expired_by == "java":
        expire_all(source)
    else:
        source.pyiceberg.maintenance.expire_snapshots().by_id(source.snapshots[0]).commit()
    with pytest.raises(HistoryLost, match="which is not its first"):
        source.capture("late")
    assert source.taken("late", start="full") == numbered(1, 2)


def test_an_unproven_beginning_behind_merged_manifests_is_refused(unpinned: Place) -> None:
    source = unpinned.table(properties=MERGE_MANIFESTS)
    source.insert("1")
    source.insert("2")
    source.pyiceberg.maintenance.expire_snapshots().by_id(source.snapshots[0]).commit()
    with pytest.raises(HistoryLost, match="which is not its first"):
        source.capture("merged")
