"""The job templates that come with dalsegno: each gives what a full computation gives, however rows come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import pytest

from dalsegno.errors import UserError
from dalsegno.model.runs import RunStatus
from dalsegno.settings import Settings
from tests.acceptance.test_incremental import Place

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Case:
    #: Of the target.
    columns: str
    #: The step, in YAML.
    step: str
    #: What the target should hold.
    full: str
    capture: str = ""


CASES = {
    "append": Case(
        "id BIGINT, day DATE, seconds BIGINT",
        """type: IncrementalAppend
        target: lake.{ns}.append
        select: seconds, id, day
        where: id > 0 OR id IS NULL""",
        "SELECT id, day, seconds FROM lake.{ns}.plays WHERE id > 0 OR id IS NULL",
    ),
    "merge": Case(
        "id BIGINT, `odd ``name` STRING, day DATE, version INT, seconds BIGINT",
        """type: IncrementalMerge
        target: lake.{ns}.merge
        keys: [day, 'odd `name', id]
        order_by: [version, seconds]
        partition_filter: ${capture.partition_filter}""",
        """SELECT * EXCEPT (place) FROM (SELECT *, row_number() OVER (PARTITION BY day, `odd ``name`, id
        ORDER BY version DESC, seconds DESC) AS place FROM lake.{ns}.plays) WHERE place = 1""",
    ),
    "row_filter": Case(
        "plays BIGINT, day DATE, `odd ``name` STRING, ids BIGINT",
        """type: IncrementalRowFilter
        source: lake.{ns}.plays
        target: lake.{ns}.row_filter
        keys: [day, 'odd `name']
        partition_filter: ${capture.partition_filter}
        query: |
          SELECT day, `odd ``name`, count(*) AS plays, count(DISTINCT id) AS ids FROM touched
          WHERE seconds IS NULL OR seconds >= 0 GROUP BY day, `odd ``name`
        changes: ${capture.changes_view}""",
        """SELECT day, `odd ``name`, count(*) AS plays, count(DISTINCT id) AS ids FROM lake.{ns}.plays
        WHERE seconds IS NULL OR seconds >= 0 GROUP BY day, `odd ``name`""",
        ", changes: keys, keys: [day, 'odd `name']",
    ),
    "range": Case(
        "day DATE, plays BIGINT, ids BIGINT",
        """type: IncrementalRange
        source: lake.{ns}.plays
        target: lake.{ns}.range
        column: day
        first: ${capture.min_day}
        last: ${capture.max_day}
        days: 6
        query: |
          SELECT d.day, count(*) AS plays, count(DISTINCT p.id) AS ids
          FROM (SELECT DISTINCT day FROM touched) d
          JOIN touched p ON p.day BETWEEN date_sub(d.day, 6) AND d.day GROUP BY d.day""",
        """SELECT d.day, count(*) AS plays, count(DISTINCT p.id) AS ids
        FROM (SELECT DISTINCT day FROM lake.{ns}.plays) d
        JOIN lake.{ns}.plays p ON datediff(d.day, p.day) BETWEEN 0 AND 6 GROUP BY d.day""",
        ", range_columns: [day]",
    ),
}
ROUNDS = [
    """INSERT INTO lake.{ns}.plays VALUES (1, 'a', DATE'2026-01-01', 1, 5), (1, 'a', DATE'2026-01-01', 1, 5),
    (NULL, NULL, NULL, NULL, NULL), (2, NULL, DATE'2026-01-02', 1, 7), (3, 'b', DATE'2026-01-09', 1, 1)""",
    # Late rows, duplicates, newer and older versions, rows without a key.
    """INSERT INTO lake.{ns}.plays VALUES (1, 'a', DATE'2026-01-01', 2, 4), (2, NULL, DATE'2026-01-02', 0, 9),
    (NULL, NULL, NULL, 1, 3), (4, 'a', DATE'2025-06-01', 1, 2), (1, 'a', DATE'2026-01-01', 1, 5),
    (5, 'c', DATE'2026-01-05', NULL, -1), (-1, 'c', DATE'2026-01-05', NULL, NULL)""",
    "INSERT INTO lake.{ns}.plays VALUES (NULL, NULL, NULL, 1, 4), (6, 'a', DATE'2025-06-03', 1, 2)",
]
#: Groups vanish, and rows move to others: for what captures every change.
CHANGES = [
    "DELETE FROM lake.{ns}.plays WHERE day = DATE'2026-01-02' OR id IS NULL",
    "UPDATE lake.{ns}.plays SET `odd ``name` = NULL WHERE id = 4",
]


@pytest.fixture
def media(settings: Settings) -> Iterator[tuple[Place, str]]:
    place, ns = Place(settings), f"media_{uuid4().hex[:8]}"
    place.sql(
        f"CREATE NAMESPACE lake.{ns}",
        f"CREATE TABLE lake.{ns}.plays (id BIGINT, `odd ``name` STRING, day DATE, version INT, seconds BIGINT) "
        "USING iceberg PARTITIONED BY (day)",
    )
    yield place, ns
    place.operations.close()


@pytest.mark.parametrize("name", CASES)
def test_a_template_equals_a_full_computation(media: tuple[Place, str], name: str) -> None:
    place, ns = media
    case = CASES[name]
    place.sql(f"CREATE TABLE lake.{ns}.{name} ({case.columns}) USING iceberg PARTITIONED BY (day)")
    workflow = f"""Workflow:
  id: {ns}
  jobs:
    - job: {{id: capture, type: IpCapture, ip_capture: {{source_tables: [lake.{ns}.plays]{case.capture}}}}}
    - job:
        id: write
        {case.step.replace("{ns}", ns)}
    - job: {{id: commit, type: IpCommit, ip_commit: {{capture_step: capture}}}}
  dag: sequential
"""
    for change in (*ROUNDS, *(CHANGES if name == "row_filter" else ())):
        place.sql(change.replace("{ns}", ns))
        assert place.run(workflow) is RunStatus.SUCCEEDED, place.operations.runs.steps(ns)[1].failure
        full = case.full.replace("{ns}", ns)
        columns = ", ".join(
            f"`{str(row['col_name']).replace('`', '``')}`" for row in place.sql(f"DESCRIBE QUERY {full}")
        )
        assert not place.sql(
            f"SELECT {columns}, sum(n) AS net FROM (SELECT {columns}, 1 AS n FROM ({full}) UNION ALL "
            f"SELECT {columns}, -1 FROM lake.{ns}.{name}) GROUP BY {columns} HAVING sum(n) <> 0"
        ), change


def test_templates_are_listed_and_stay(media: tuple[Place, str]) -> None:
    templates = media[0].operations.templates
    assert {each.job_type for each in templates.list().items} >= {"IncrementalAppend", "IncrementalRange"}
    with pytest.raises(UserError, match="comes with dalsegno"):
        templates.delete("IncrementalAppend")
