"""A file that a table names more than once, as ``add_files`` without its check allows: its rows count as often."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.iceberg.support import COPY_ON_WRITE, MERGE_MANIFESTS, Place, Source, rows
from tests.iceberg.test_changes import Told

pytestmark = pytest.mark.spark

UPSERTS: dict[str, Any] = {"changes": "upserts", "keys": ["id"]}


def adding(place: Place, folder: Path, source: Source) -> str:
    """The call that adds the same file of two rows every time."""
    where = folder / source.name
    place.spark.sql("select 1 as id, 'a' as name union all select 2, 'b'").coalesce(1).write.parquet(str(where))
    return f"add_files(table => '{source.name}', source_table => '`parquet`.`{where}`', check_duplicate_files => false)"


@pytest.mark.parametrize(
    ("version", "merging"), [(1, MERGE_MANIFESTS), (2, {}), (2, MERGE_MANIFESTS), (3, MERGE_MANIFESTS)]
)
def test_a_file_that_is_added_again(place: Place, tmp_path: Path, version: int, merging: dict[str, str]) -> None:
    source = place.table("id int, name string", version=version, properties=COPY_ON_WRITE | merging)
    call = adding(place, tmp_path, source)
    place.call(call)
    kinds: dict[str, dict[str, Any]] = {"both": {"changes": "before_after"}, "new": UPSERTS, "added": {}}
    for consumer, wishes in kinds.items():
        source.capture(consumer, start="latest", **wishes)

    place.call(call)
    added = rows((1, "a"), (2, "b"))
    told = Told.by(place, changes := source.capture("both", changes="before_after"))
    assert (told.added, told.removed) == (added, {})
    changes.commit()
    upserts = source.capture("new", **UPSERTS)
    assert rows(*(row[:2] for row in place.spark_rows(upserts.query()).elements())) == added
    assert place.spark_rows(f"select * from {source.capture('added').table}") == added

    if version == 3:
        return  # Where Iceberg rewrites one of the copies, the ids of its rows are no longer unique.
    before = source.rows()
    place.call(call)
    source.sql("delete from {t} where id = 1")
    # Which of the copies Iceberg removes is its own business.
    told, after = Told.by(place, changes := source.capture("both", changes="before_after")), source.rows()
    assert (told.added - told.removed, told.removed - told.added) == (after - before, before - after)
    changes.commit()
