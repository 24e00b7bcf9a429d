"""Compare the target with a computation from scratch."""

import duckdb

from dalsegno import Lake

FULL = "SELECT event_day, title, count(*), count(DISTINCT member) FROM playback GROUP BY ALL"

with Lake.open() as lake:
    catalog = lake.catalog("lake").pyiceberg
    playback, titles = (catalog.load_table(f"media.{name}").scan().to_arrow() for name in ("playback", "titles_by_day"))
    expected = duckdb.sql(f"({FULL}) ORDER BY ALL").fetchall()
    found = duckdb.sql("SELECT * FROM titles ORDER BY ALL").fetchall()
    assert found == expected, f"expected {expected}, found {found}"
    print(len(found), "groups, all as they should be")
