"""Flink and Trino read change tables: the same rows as every other engine. What they drop, harms no source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.iceberg.engine_tables import MAKERS, EngineTable
from tests.iceberg.support import MERGE_ON_READ, Place, numbered, plain, rows
from tests.lakes.flink import Flink
from tests.lakes.trino import Trino, TrinoError

pytestmark = [pytest.mark.spark, pytest.mark.rest, pytest.mark.prove_lakes]

Query = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(scope="module", params=["flink", "trino"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def query(engine: str, request: pytest.FixtureRequest) -> Query:
    started: Flink | Trino = request.getfixturevalue(engine)
    return started.rows if isinstance(started, Flink) else started.sql


@pytest.fixture(scope="module", params=MAKERS)
def table(place: Place, request: pytest.FixtureRequest) -> EngineTable:
    return EngineTable.make(request.param, place)


def test_same_rows(table: EngineTable, engine: str, query: Query) -> None:
    read = f"SELECT * FROM {table.changes.table}"
    if (engine, table.name) == ("trino", "with_vectors"):
        # A later Trino may read them. None may pass over them.
        with pytest.raises(TrinoError, match="PUFFIN"):
            query(read)
    else:
        assert Counter(plain(row) for row in query(read)) == table.expected


def test_both_ends(place: Place, query: Query) -> None:
    """Position deletes of Spark, and the rows that changed by the SQL of the documentation."""
    source = place.table("id int, v string", properties=MERGE_ON_READ)
    source.sql("insert into {t} select /*+ coalesce(1) */ * from values (1, 'a'), (2, 'b'), (3, 'c')")
    source.capture(start="latest", changes="before_after", keys=["id"])
    source.sql("update {t} set v = 'B' where id = 2", "delete from {t} where id = 3")
    changes = source.capture(changes="before_after", keys=["id"])
    new, gone = (
        Counter(query(f"SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other}"))
        for one, other in ((changes.table, changes.before), (changes.before, changes.table))
    )
    assert (new, gone) == (rows((2, "B")), rows((2, "b"), (3, "c")))


def test_dropping_it_harms_nothing(place: Place, flink: Flink, trino: Trino, engine: str, query: Query) -> None:
    source = place.table(partitioned="id")
    source.insert("1", "2")
    changes = source.capture()
    drop: Callable[[str], object] = flink.sql if engine == "flink" else trino.sql
    drop(f"DROP TABLE {changes.table}")
    assert changes.identifier not in [name.identifier for name in place.change_tables()]
    assert source.rows() == numbered(1, 2)
    again = source.capture()
    assert (again.id, again.table) == (changes.id, changes.table)
    assert Counter(query(f"SELECT * FROM {again.table}")) == numbered(1, 2)
    again.commit()
    assert source.rows() == numbered(1, 2)


def test_maintenance_by_trino_harms_nothing(place: Place, trino: Trino) -> None:
    source = place.table(partitioned="id")
    source.insert("1", "2")
    changes = source.capture()
    maintain = f"ALTER TABLE {changes.table} EXECUTE {{}}(retention_threshold => '7d')"
    with pytest.raises(TrinoError, match="GC is disabled"):
        trino.sql(maintain.format("expire_snapshots"))
    trino.sql(maintain.format("remove_orphan_files"))
    assert place.rows_of(changes) == source.rows() == numbered(1, 2)
