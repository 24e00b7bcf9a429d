"""Change tables that every engine has to read alike, with the rows that it has to find there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dalsegno import Changes
from tests.iceberg.row_deltas import row_delta
from tests.iceberg.support import MERGE_MANIFESTS, MERGE_ON_READ, Place, Rows, numbered, rows

CONSUMER = "engines"
COLUMNS = (
    "id bigint, day date, at timestamp, ntz timestamp_ntz, amount decimal(9, 2), name string, "
    "ratio double, small float, yes boolean, raw binary"
)


#: A capture, and the rows of its change table.
Made = tuple[Changes, Rows]


@dataclass(frozen=True)
class EngineTable:
    name: str
    changes: Changes
    expected: Rows

    @classmethod
    def make(cls, name: str, place: Place) -> EngineTable:
        changes, expected = MAKERS[name](place)
        return cls(name, changes, expected)


def row(id_: int, day: str = "date '2026-11-15'", name: str = "'a'") -> str:
    return (
        f"{id_}, {day}, timestamp '2026-11-15 23:59:59.999999', timestamp_ntz '1969-07-20 20:17:00', {id_}.25, {name}, "
        f"{id_} / 8, {id_} / 4, true, X'00FF'"
    )


def appended(place: Place) -> Made:
    """Rows of many types and none, over two partition specs, with columns renamed and added on the way."""
    source = place.table(COLUMNS, partitioned="day", properties=MERGE_MANIFESTS)
    source.insert(row(1))
    source.taken(CONSUMER)
    source.insert(row(2), row(3, "date '2026-11-16'", "null"))
    source.sql("alter table {t} add partition field bucket(2, name)")
    source.insert(row(4, "null", "'äöü/=%'"), ", ".join(["5", *["null"] * 9]))
    source.sql("alter table {t} rename column name to title", "alter table {t} add column extra string")
    source.insert(f"{row(6)}, 'extra'")
    expected = source.rows("select * from {t} where id > 1")
    assert expected.total() == 5
    return source.capture(CONSUMER), expected


def evolved(place: Place) -> Made:
    """A column that was dropped and added again."""
    source = place.table("a int, b int, c int")
    source.insert("1, 10, 100")
    source.taken(CONSUMER)
    source.insert("2, 20, 200")
    source.sql("alter table {t} drop column b", "alter table {t} add column b int first")
    source.insert("30, 3, 300")
    return source.capture(CONSUMER), rows((None, 2, 200), (30, 3, 300))


def whole(place: Place) -> Made:
    """A whole table with deleted rows."""
    source = place.table("id int, part string", partitioned="part", properties=MERGE_ON_READ)
    source.sql("insert into {t} select /*+ coalesce(1) */ * from values (1, 'a'), (2, 'a'), (3, 'b'), (4, 'b')")
    source.sql("delete from {t} where id in (1, 4)")
    return source.capture(CONSUMER, start="full"), rows((2, "a"), (3, "b"))


def with_vectors(place: Place) -> Made:
    """A whole table of version 3 with deletion vectors."""
    source = place.table("id int", version=3, properties=MERGE_ON_READ)
    source.sql("insert into {t} select /*+ coalesce(1) */ * from values (1), (2), (3)", "delete from {t} where id = 2")
    return source.capture(CONSUMER, start="full"), numbered(1, 3)


def with_equality_deletes(place: Place) -> Made:
    """A whole table that was upserted to, as Flink does."""
    source = place.table("id bigint, v string")
    source.insert("1, 'a'", "2, 'b'", "3, 'c'")
    row_delta(source, deletes=[(2,), (3,), (4,)], inserts=[(3, "C"), (4, "D")])
    return source.capture(CONSUMER, start="full"), rows((1, "a"), (3, "C"), (4, "D"))


def of_version_3(place: Place) -> Made:
    source = place.table("id int, v string", version=3, properties=MERGE_MANIFESTS)
    source.insert("1, 'a'")
    source.taken(CONSUMER)
    source.insert("2, 'b'")
    source.insert("3, null")
    return source.capture(CONSUMER), rows((2, "b"), (3, None))


def empty(place: Place) -> Made:
    """The change table of a table that was not written to, while another was."""
    busy, quiet = place.table(), place.table("id int, v string", partitioned="v")
    busy.insert("1")
    changes = place.lake.capture(busy.name, quiet.name, consumer=CONSUMER)
    assert changes.capture is not None
    only = tuple(captured for captured in changes.capture.tables if captured.table == place.lake.name(quiet.name))
    return replace(changes, capture=replace(changes.capture, tables=only)), rows()


MAKERS: dict[str, Callable[[Place], Made]] = {
    maker.__name__: maker
    for maker in (appended, evolved, whole, with_vectors, with_equality_deletes, of_version_3, empty)
}
