"""What Flink's upsert writer leaves in a table: captures of both ends report exactly what changed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.iceberg.row_deltas import changed_rows
from tests.iceberg.support import Place, Rows, Source, rows
from tests.lakes.flink import Event, Flink
from tests.lakes.trino import Trino

pytestmark = [pytest.mark.spark, pytest.mark.rest, pytest.mark.prove_lakes]

COLUMNS = {"id": "INT NOT NULL", "day": "STRING NOT NULL", "v": "INT"}
COMMITS, DAYS, IDS = 8, ("d0", "d'1/=%"), range(5)
Key = tuple[int, str]
Query = Callable[[str], list[tuple[Any, ...]]]


@dataclass
class Upserted:
    """A table that only Flink writes to, and the rows that it should have."""

    flink: Flink
    source: Source
    expected: dict[Key, int | None] = field(default_factory=dict)

    def apply(self, *events: Event) -> None:
        self.flink.upsert(self.source.full, COLUMNS, ["id", "day"], events)
        for kind, (id_, day, v) in events:
            if kind == "DELETE":
                self.expected.pop((id_, day), None)
            else:
                self.expected[id_, day] = v

    def rows(self) -> Rows:
        return rows(*((*key, v) for key, v in self.expected.items()))


def upserted(flink: Flink, place: Place, version: int, partitioned: str) -> Upserted:
    columns = "id int not null, day string not null, v int"
    properties = {"write.upsert.enabled": "true"}
    source = place.table(columns, partitioned=partitioned, version=version, properties=properties)
    source.sql("alter table {t} set identifier fields id, day")
    return Upserted(flink, source)


def files_of(source: Source) -> Counter[int]:
    """Live files of the table: data (0), position deletes (1), equality deletes (2)."""
    return Counter(content for (content,) in source.place.sql(f"select content from {source.full}.files"))


@pytest.mark.parametrize("version", [2, 3])
def test_one_of_each(flink: Flink, place: Place, version: int) -> None:
    table = upserted(flink, place, version, "")
    table.apply(("INSERT", (1, "d0", 1)), ("INSERT", (2, "d0", 2)), ("INSERT", (3, "d0", 3)))
    table.source.capture(start="latest", changes="before_after", keys=["id"])
    table.apply(("UPDATE_AFTER", (1, "d0", 10)), ("DELETE", (2, "d0", 2)), ("INSERT", (4, "d0", None)))
    # The same key twice in one commit: the writer deletes by position what it has just written.
    table.apply(("UPDATE_AFTER", (4, "d0", 40)), ("UPDATE_AFTER", (4, "d0", 41)))
    assert all(files_of(table.source)[content] for content in (0, 1, 2)), "Flink wrote deletes of both kinds"
    changes = table.source.capture(changes="before_after", keys=["id"])
    assert set(place.sql(f"select id from {changes.deleted_keys}")) == {(1,), (2,), (4,)}
    assert changed_rows(table.source) == {
        "update_before": rows((1, "d0", 1)),
        "update_after": rows((1, "d0", 10)),
        "delete": rows((2, "d0", 2)),
        "insert": rows((4, "d0", 41)),
    }
    whole = table.source.capture("whole", start="full")
    assert place.spark_rows(f"select * from {whole.table}") == table.rows()
    assert Counter(flink.rows(f"SELECT * FROM {whole.table}")) == table.rows()


def test_flinks_own_incremental_read_leaves_upserts_out(flink: Flink, place: Place) -> None:
    """Why the documentation says to read a capture instead: it gives neither the rows nor an error."""
    table = upserted(flink, place, 2, "")
    table.apply(("INSERT", (1, "d0", 1)))
    after = table.source.head
    table.source.insert("2, 'd0', 2")
    table.apply(("UPDATE_AFTER", (1, "d0", 10)))
    options = f"'start-snapshot-id' = '{after}', 'end-snapshot-id' = '{table.source.head}'"
    assert flink.rows(f"SELECT * FROM {table.source.full} /*+ OPTIONS({options}) */") == [(2, "d0", 2)]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("partitioned", ["", "day"], ids=["unpartitioned", "partitioned"])
def test_random_streams(flink: Flink, trino: Trino, place: Place, version: int, partitioned: str) -> None:
    # Trino cannot read the deletion vectors of version 3.
    readers = (flink.rows, trino.sql) if version == 2 else (flink.rows,)
    chance = random.Random(f"{version} {partitioned}")
    table = upserted(flink, place, version, partitioned)
    table.apply(*(("INSERT", (id_, chance.choice(DAYS), id_)) for id_ in IDS))
    table.source.capture(start="latest", changes="before_after", keys=["id", "day"])
    before = table.rows()
    for _ in range(COMMITS):
        table.apply(*(event(chance) for _ in range(chance.randrange(1, 5))))
        if chance.random() < 0.4:
            before = compare(table, before, readers)
    compare(table, before, readers)


def event(chance: random.Random) -> Event:
    kind = chance.choice(["INSERT", "UPDATE_AFTER", "UPDATE_AFTER", "DELETE"])
    return kind, (chance.choice(IDS), chance.choice(DAYS), chance.choice([None, *range(3)]))


def compare(table: Upserted, before: Rows, readers: Sequence[Query]) -> Rows:
    """Capture, compare with the truth, and commit; the rows that the table has now."""
    after = table.rows()
    changes = table.source.capture(changes="before_after", keys=["id", "day"])
    found: dict[str, Rows] = {"gone": Counter(), "new": Counter()}
    if changes:
        for row, times in table.source.place.spark_rows(changes.query()).items():
            found["new" if row[-1] in ("insert", "update_after") else "gone"][row[:-1]] += times
        for query in readers:
            is_now, was = (Counter(query(f"SELECT * FROM {name}")) for name in (changes.table, changes.before))
            assert (is_now - was, was - is_now) == (found["new"], found["gone"])
        changes.commit()
    assert found == {"gone": before - after, "new": after - before}
    return after
