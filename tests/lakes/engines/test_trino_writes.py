"""What Trino writes: captures report exactly what it changed."""

from __future__ import annotations

import pytest

from tests.iceberg.row_deltas import changed_rows
from tests.iceberg.support import Place, rows
from tests.lakes.trino import Trino

pytestmark = [pytest.mark.spark, pytest.mark.rest, pytest.mark.prove_lakes]


@pytest.mark.parametrize("partitioned", ["", "day"], ids=["unpartitioned", "partitioned"])
def test_all_statements(place: Place, trino: Trino, partitioned: str) -> None:
    source = place.table("id int, day string, v int", partitioned=partitioned)
    trino.sql(f"INSERT INTO {source.full} VALUES (1, 'd0', 1), (2, 'd1', 2), (3, NULL, 3), (4, 'd0', 4)")
    source.capture(start="latest", changes="before_after", keys=["id"])
    trino.sql(f"ALTER TABLE {source.full} EXECUTE optimize")
    assert changed_rows(source) == {}
    trino.sql(f"UPDATE {source.full} SET v = 10 WHERE id = 1")
    trino.sql(f"DELETE FROM {source.full} WHERE day IS NULL")
    trino.sql(f"INSERT INTO {source.full} VALUES (5, NULL, 5)")
    assert changed_rows(source) == {
        "update_before": rows((1, "d0", 1)),
        "update_after": rows((1, "d0", 10)),
        "delete": rows((3, None, 3)),
        "insert": rows((5, None, 5)),
    }
    trino.sql(f"""
        MERGE INTO {source.full} t USING (VALUES (2, 20), (4, NULL), (6, 60)) AS s (id, v) ON t.id = s.id
        WHEN MATCHED AND s.v IS NULL THEN DELETE
        WHEN MATCHED THEN UPDATE SET v = s.v
        WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'd0', s.v)
    """)
    trino.sql(f"ALTER TABLE {source.full} EXECUTE optimize")
    assert changed_rows(source) == {
        "update_before": rows((2, "d1", 2)),
        "update_after": rows((2, "d1", 20)),
        "delete": rows((4, "d0", 4)),
        "insert": rows((6, "d0", 60)),
    }


def test_appends(place: Place, trino: Trino) -> None:
    source = place.table("id int, v string")
    trino.sql(f"INSERT INTO {source.full} VALUES (1, 'ä')")
    assert source.taken() == rows((1, "ä"))
    trino.sql(f"INSERT INTO {source.full} VALUES (2, NULL)")
    trino.sql(f"INSERT INTO {source.full} SELECT id + 2, v FROM {source.full}")
    assert source.taken() == rows((2, None), (3, "ä"), (4, None))
