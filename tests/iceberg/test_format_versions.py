"""Format versions 1, 2 and 3, upgrades inside a range, and the row lineage of version 3."""

from __future__ import annotations

import pytest

from tests.iceberg.support import MERGE_MANIFESTS, MERGE_ON_READ, Place, Rows, Source, numbered, rows

pytestmark = pytest.mark.spark

LINEAGE = "select id, _row_id, _last_updated_sequence_number from {t}"


def lineage(place: Place, table: str, only: str = "true") -> Rows:
    return place.spark_rows(f"{LINEAGE.replace('{t}', table)} where {only}")


def manifests_of(source: Source) -> list[tuple[int, int, int]]:
    """Added, existing and deleted files of each manifest that the table has now."""
    query = "select added_data_files_count, existing_data_files_count, deleted_data_files_count from {t}.manifests"
    return sorted(source.place.sql(query.replace("{t}", source.full)))


@pytest.mark.parametrize("merging", [False, True], ids=["apart", "merged"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_range_of_appends(place: Place, version: int, merging: bool) -> None:
    source = place.table(version=version, properties=MERGE_MANIFESTS if merging else {})
    source.insert("1", "2")
    assert source.taken() == numbered(1, 2)
    source.insert("3")
    source.insert("3", "4")
    changes = source.capture()
    assert place.rows_of(changes) == numbered(3, 3, 4)
    assert place.metadata(changes.identifier)["format-version"] == version
    assert (changes.files, changes.rows) == (len(source.place.sql(f"select * from {changes.table}.files")), 3)
    changes.commit()
    assert not source.capture()


def test_row_lineage_is_the_sources(place: Place) -> None:
    source = place.table(version=3)
    source.insert("1", "2", "3")
    source.taken()
    source.insert("4", "5")
    source.insert("6")
    changes = source.capture()
    expected = lineage(place, source.full, "id > 3")
    assert {row_id for _, row_id, _ in expected} == {3, 4, 5}
    assert lineage(place, changes.table) == expected


def test_row_lineage_through_merged_manifests(place: Place) -> None:
    """Rows inherit their ids from the entries before them, which a filtered manifest no longer has."""
    source = place.table(version=3, properties=MERGE_MANIFESTS)
    source.insert("1", "2", "3")
    source.taken()
    source.insert("4", "5")
    source.insert("6")
    source.insert("7", "8")
    assert len(manifests_of(source)) == 1
    changes = source.capture()
    assert lineage(place, changes.table) == lineage(place, source.full, "id > 3")
    assert place.rows_of(changes) == numbered(4, 5, 6, 7, 8)


def test_row_lineage_of_rows_compacted_since(place: Place) -> None:
    source = place.table(version=3)
    source.insert("1")
    source.taken()
    source.insert("2")
    source.insert("3", "4")
    expected = lineage(place, source.full, "id > 1")
    place.call(f"rewrite_data_files(table => '{source.name}', options => map('rewrite-all', 'true'))")
    changes = source.capture()
    assert lineage(place, changes.table) == expected == lineage(place, source.full, "id > 1")


def test_row_lineage_of_a_whole_table(place: Place) -> None:
    """Rows that were updated and compacted carry their ids in the files; the others inherit them."""
    source = place.table("id int, v string", version=3, properties=MERGE_MANIFESTS | MERGE_ON_READ)
    source.insert("1, 'a'", "2, 'b'")
    source.sql("update {t} set v = 'z' where id = 1")
    place.call(f"rewrite_data_files(table => '{source.name}', options => map('rewrite-all', 'true'))")
    source.insert("3, 'c'", "4, 'd'")
    source.sql("delete from {t} where id = 3")
    changes = source.capture(start="full")
    expected = lineage(place, source.full)
    assert expected.total() == 3
    assert lineage(place, changes.table) == expected
    assert place.rows_of(changes) == source.rows()


@pytest.mark.parametrize("merging", [False, True], ids=["apart", "merged"])
def test_upgrade_from_1_to_2_inside_the_range(place: Place, merging: bool) -> None:
    source = place.table(version=1, properties=MERGE_MANIFESTS if merging else {})
    source.insert("1")
    source.taken()
    source.insert("2")
    source.sql("alter table {t} set tblproperties ('format-version' = '2')")
    source.insert("3")
    assert source.taken() == numbered(2, 3)
    source.insert("4")
    assert source.taken() == numbered(4)


def test_upgrade_from_2_to_3_inside_the_range(place: Place) -> None:
    source = place.table(version=2)
    source.insert("1", "2")
    source.taken()
    source.insert("3", "4")
    source.sql("alter table {t} set tblproperties ('format-version' = '3')")
    source.insert("5", "6")
    changes = source.capture()
    assert lineage(place, changes.table) == lineage(place, source.full, "id > 2")
    assert place.rows_of(changes) == numbered(3, 4, 5, 6)
    changes.commit()
    source.insert("7")
    changes = source.capture()
    assert lineage(place, changes.table) == lineage(place, source.full, "id > 6")


def test_upgrade_from_2_to_3_after_manifests_were_merged(place: Place) -> None:
    """The manifest to filter is of version 2 and cannot name row ids, but the list that names it is of version 3."""
    source = place.table(version=2, properties=MERGE_MANIFESTS)
    source.insert("1", "2")
    source.taken()
    source.insert("3", "4")
    source.sql("alter table {t} set tblproperties ('format-version' = '3', 'commit.manifest-merge.enabled' = 'false')")
    source.insert("5", "6")
    assert sorted(manifests_of(source)) == [(2, 0, 0), (2, 2, 0)]
    changes = source.capture()
    assert lineage(place, changes.table) == lineage(place, source.full, "id > 2")
    assert place.rows_of(changes) == numbered(3, 4, 5, 6)


def test_upgrade_from_2_to_3_and_manifests_merged_since(place: Place) -> None:
    """Rows of before the upgrade had no ids when they were appended: theirs are unknown, never another row's."""
    source = place.table(version=2)
    source.insert("1", "2")
    source.taken()
    source.insert("3", "4")
    source.sql("alter table {t} set tblproperties ('format-version' = '3', 'commit.manifest.min-count-to-merge' = '2')")
    source.insert("5", "6")
    source.insert("7")
    assert len(manifests_of(source)) == 1
    changes = source.capture()
    assert place.rows_of(changes) == numbered(3, 4, 5, 6, 7)
    expected = lineage(place, source.full, "id > 4") + rows((3, None, None), (4, None, None))
    assert lineage(place, changes.table) == expected


def test_upgrade_without_a_snapshot_since(place: Place) -> None:
    """Nothing has a row id yet, in the source neither."""
    source = place.table(version=2)
    source.insert("1")
    source.sql("alter table {t} set tblproperties ('format-version' = '3')")
    changes = source.capture()
    assert lineage(place, changes.table) == lineage(place, source.full)
    assert place.rows_of(changes) == numbered(1)
