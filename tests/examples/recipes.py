"""The SQL that pages tell people to write, with data as it really comes: see ``hostile``."""

from __future__ import annotations

from pathlib import Path

from tests.docs.markdown import ROOT, Block, Remark, parts
from tests.examples.hostile import Case

HOW_TO = ROOT / "docs" / "how-to"

TABLES = """
CREATE NAMESPACE IF NOT EXISTS lake.media;
CREATE TABLE lake.media.playback (event_day DATE, title STRING, seconds BIGINT)
  USING iceberg PARTITIONED BY (event_day);
CREATE TABLE lake.media.playback_daily (event_day DATE, title STRING, seconds BIGINT)
  USING iceberg PARTITIONED BY (event_day);
CREATE TABLE lake.media.playback_by_title (title STRING, seconds BIGINT) USING iceberg;
CREATE TABLE lake.media.playback_by_day (event_day DATE, seconds BIGINT) USING iceberg PARTITIONED BY (event_day)
"""
BY_TITLE = {
    "lake.media.playback_by_title": "SELECT title, sum(seconds) AS seconds FROM lake.media.playback GROUP BY title"
}
BY_DAY = {
    "lake.media.playback_by_day": """SELECT event_day, sum(seconds) AS seconds FROM lake.media.playback
    GROUP BY event_day"""
}
#: No two rows have the same day and title.
FIRST = """INSERT INTO lake.media.playback VALUES (D1, 'Ran', 5), (D1, NULL, 1), (D2, 'Ran', NULL), (NULL, 'Ran', 7),
  (NULL, NULL, NULL), (D3, 'Solo', 1), (D2, 'Mirror', 4), (NULL, 'Lost', 1)"""
LATE = (
    "INSERT INTO lake.media.playback VALUES (OLD, NULL, 2), (OLD, 'New', NULL), (D1, 'Late', 3), (NULL, 'Late', NULL)"
)
#: What is NULL gets a value and what has one loses it, in keys and measures; rows, groups and partitions vanish.
CHANGES = """UPDATE lake.media.playback SET seconds = NULL WHERE title = 'Ran' AND event_day = D1;
  UPDATE lake.media.playback SET seconds = 8 WHERE title IS NULL AND event_day IS NULL;
  UPDATE lake.media.playback SET event_day = D1 WHERE title = 'Lost';
  UPDATE lake.media.playback SET title = NULL WHERE title = 'Mirror';
  DELETE FROM lake.media.playback WHERE event_day = D3"""
GONE = """DELETE FROM lake.media.playback WHERE title IS NULL;
  DELETE FROM lake.media.playback WHERE event_day IS NULL"""
AGAIN = "INSERT INTO lake.media.playback VALUES (D1, 'Ran', 5), (D1, 'Ran', 5), (NULL, NULL, 1), (NULL, NULL, 1)"

#: Workflows of the pages.
WORKFLOWS = Case(
    ["by_day.yaml", "by_title.yaml"],
    ["playback.by_day", "playback.by_title"],
    [f"{FIRST}; {AGAIN}", f"{CHANGES}; {LATE}; {AGAIN}", GONE],
    {**BY_DAY, **BY_TITLE},
    tables="tables.sql",
)


def write_files(page: str, folder: Path) -> None:
    """The files that a page tells people to write."""
    name = None
    for part in parts((HOW_TO / page).read_text(encoding="utf-8")):
        if isinstance(part, Block) and name:
            (folder / name).write_text(part.text, encoding="utf-8")
        name = part.text if isinstance(part, Remark) and part.kind == "file" else None


def blocks(page: str, *words: str) -> list[str]:
    """The blocks of a page that have Spark write something, by the words in them."""
    found = [part.text for part in parts((HOW_TO / page).read_text(encoding="utf-8")) if isinstance(part, Block)]
    return [next(text for text in found if word in text and "spark.sql" in text) for word in words]
