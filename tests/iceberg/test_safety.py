"""A change table borrows its files: nothing that is done to it, or after it, may harm the source."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from dalsegno.model.captures import CapturedTable
from tests.iceberg.support import MERGE_ON_READ, Place, Source, captured_from, files_below, numbered, rows

pytestmark = pytest.mark.spark


def source_files(source: Source) -> set[Path]:
    """All files of a table but those that every commit, also of a pin, adds."""
    folder = source.place.folder / "warehouse" / Path(*source.name.split("."))
    found = files_below(folder, lambda path: not path.name.endswith((".metadata.json", ".crc")))
    assert found
    return found


def own_files(captured: CapturedTable) -> set[Path]:
    return files_below(Path(captured.location))


def ready(place: Place, version: int = 2) -> Source:
    source = place.table(version=version, properties=MERGE_ON_READ)
    source.insert("1")
    source.taken()
    source.insert("2")
    return source


@pytest.mark.parametrize("version", [2, 3])
def test_purge_is_refused(place: Place, version: int) -> None:
    source = ready(place, version)
    changes = source.capture()
    before = source_files(source)
    with pytest.raises(Py4JJavaError, match="GC is disabled"):
        place.sql(f"drop table {changes.table} purge")
    assert source_files(source) == before
    assert place.rows_of(changes) == numbered(2)


@pytest.mark.parametrize("procedure", ["expire_snapshots", "remove_orphan_files"])
def test_maintenance_of_a_change_table_is_refused(place: Place, procedure: str) -> None:
    source = ready(place)
    changes = source.capture()
    with pytest.raises(Py4JJavaError, match="GC is disabled"):
        place.call(f"{procedure}(table => '{'.'.join(changes.identifier)}', older_than => timestamp '2026-01-01')")
    assert place.rows_of(changes) == numbered(2)
    assert source.rows() == numbered(1, 2)


def test_a_dropped_change_table_is_made_anew(place: Place) -> None:
    source = ready(place)
    changes = source.capture()
    before = source_files(source)
    place.sql(f"drop table {changes.table}")
    assert source_files(source) == before
    assert source.rows() == numbered(1, 2)
    again = source.capture()
    assert (again.id, again.table, again.is_resumed) == (changes.id, changes.table, True)
    assert place.rows_of(again) == numbered(2)
    assert again.commit().left_over == ()
    assert own_files(captured_from(changes, source)) == set()


def test_a_dropped_change_table_of_a_range_that_was_compacted_since(place: Place) -> None:
    source = ready(place)
    changes = source.capture()
    place.sql(f"drop table {changes.table}")
    place.call(f"rewrite_data_files(table => '{source.name}', options => map('rewrite-all', 'true'))")
    place.call(f"expire_snapshots(table => '{source.name}', older_than => now(), retain_last => 1)")
    assert place.rows_of(source.capture()) == numbered(2)


@pytest.mark.parametrize("end", ["commit", "abandon"])
@pytest.mark.parametrize("start", [None, "full"])
def test_nothing_of_the_source_is_deleted(place: Place, end: str, start: str | None) -> None:
    source = ready(place)
    if start == "full":
        source.sql("delete from {t} where id = 1")
    expected = source.rows()
    before = source_files(source)
    changes = source.capture(start=start)
    captured = captured_from(changes, source)
    assert source_files(source) == before
    assert own_files(captured)
    assert all(path.name.startswith(f"{changes.id}-") for path in own_files(captured))
    if end == "commit":
        changes.commit()
    else:
        changes.abandon()
    place.lake.clean()
    assert source_files(source) == before
    assert source.rows() == expected
    assert not Path(captured.location).exists()
    assert captured.change_table not in place.change_tables()


def test_what_is_not_ours_in_the_folder_stays(place: Place) -> None:
    """Somebody wrote into the change table, or beside it: only files that the capture wrote are deleted."""
    source = ready(place)
    changes = source.capture()
    captured = captured_from(changes, source)
    place.sql(f"insert into {changes.table} values (99)")
    assert place.rows_of(changes) == numbered(2, 99)
    foreign = {path for path in own_files(captured) if not path.name.startswith(f"{changes.id}-")}
    assert foreign
    source.capture().commit()
    assert own_files(captured) == foreign
    assert source.rows() == numbered(1, 2)


def test_all_files_lie_in_a_folder_of_its_own(place: Place) -> None:
    source = ready(place)
    before = files_below(place.folder / "warehouse")
    changes = source.capture()
    location = Path(captured_from(changes, source).location)
    added = files_below(place.folder / "warehouse") - before
    pin = {path for path in added if path.name.endswith(".metadata.json") and location not in path.parents}
    assert len(pin) == 1
    assert all(location in path.parents for path in added - pin)
    assert Path(source.metadata["location"]) not in location.parents
    metadata = place.metadata(changes.identifier)
    (snapshot,) = metadata["snapshots"]
    named = {snapshot["manifest-list"], *(row[0] for row in place.sql(f"select path from {changes.table}.manifests"))}
    assert all(Path(path) in added for path in named), "no manifest of the source is shared"
    assert metadata["metadata-log"] == []
    assert metadata.get("statistics", []) == []


@pytest.mark.parametrize("version", [2, 3])
def test_maintenance_of_the_source_leaves_it_readable(place: Place, version: int) -> None:
    source = ready(place, version)
    changes = source.capture()
    # An orphan must be a day old, and the data files of the change table are none.
    orphans = place.call(f"remove_orphan_files(table => '{source.name}', dry_run => true)")
    assert orphans == []
    place.call(f"rewrite_data_files(table => '{source.name}', options => map('rewrite-all', 'true'))")
    changes.commit()
    place.call(f"expire_snapshots(table => '{source.name}', older_than => now(), retain_last => 1)")
    place.call(f"remove_orphan_files(table => '{source.name}')")
    assert source.rows() == numbered(1, 2)
    source.insert("3")
    assert source.taken() == numbered(3)


def test_a_pin_changes_nothing_else(place: Place) -> None:
    source = place.table("id int, v string", version=3)
    source.insert("1, 'a'")
    before = source.metadata
    source.capture()
    after = source.metadata
    changed = {key for key in before | after if before.get(key) != after.get(key)}
    assert changed == {"refs", "metadata-log"}
    assert set(after["refs"]) == {"main", "dalsegno_c"}
    source.insert("2, 'b'")
    assert source.rows() == rows((1, "a"), (2, "b"))
