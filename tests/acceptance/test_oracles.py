"""Audits by a SELECT of somebody's own, which finds what the workflow's SQL does wrong every time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dalsegno.audit.results import Audit, Basis
from dalsegno.cli import auditing
from dalsegno.errors import UserError
from dalsegno.settings import Settings
from tests.acceptance.test_audit import Lakeside, command

pytestmark = pytest.mark.spark

#: Days that are NULL are dropped by IN, and plays without a name by the join.
WRONG = """
Workflow:
  id: plays
  daily: lake.db.daily
  oracle:
    ${daily}: |
      SELECT day, count(*) AS plays, CAST(sum(seconds) AS DECIMAL(20, 1)) AS seconds FROM lake.db.plays GROUP BY day
    lake.db.named: $FILE{named.sql}
  jobs:
    - job:
        id: capture
        type: IpCapture
        ip_capture: {source_tables: [lake.db.plays]}
    - job:
        id: write
        type: Spark
        retry_policy: {error_retry_limit: 0}
        spark:
          script: |
            MERGE INTO ${daily} t USING (
              SELECT day, count(*) AS plays, sum(seconds) AS seconds FROM lake.db.plays
              WHERE day IN (SELECT day FROM ${capture.change_table}) GROUP BY day
            ) s ON t.day = s.day
            WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
            INSERT INTO lake.db.named
            SELECT p.id, name FROM ${capture.change_table} p JOIN lake.db.names n ON n.id = p.id;
            INSERT INTO lake.db.copies SELECT id, day, seconds, NULL FROM ${capture.change_table}
    - job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}
  dag: sequential
"""
NAMED = "SELECT p.id, name FROM lake.db.plays p LEFT JOIN lake.db.names n ON n.id = p.id"


class Story(Lakeside):
    """Two runs: in the first all days and names are known, in the second some are not."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, "oracles")
        self.write(
            "CREATE TABLE lake.db.named (id BIGINT, name STRING) USING iceberg",
            "CREATE TABLE lake.db.names USING iceberg AS SELECT 1L AS id, 'Ada' AS name",
            "INSERT INTO lake.db.plays VALUES (1, '2026-01-01', 10)",
        )
        (settings.root / "named.sql").write_text(self.own(NAMED), encoding="utf-8")
        file = settings.root / "oracles.yaml"
        file.write_text(self.own(WRONG), encoding="utf-8")
        self.operations.workflows.push_file(file)
        self.operations.runs.finish(self.operations.runs.start("oracles", {}).id)
        self.write("INSERT INTO lake.db.plays VALUES (1, '2026-01-01', 5), (2, NULL, 20)")
        self.operations.runs.finish(self.operations.runs.start("oracles", {}).id)
        # What comes after the last run is not what the oracle reads.
        self.write("INSERT INTO lake.db.plays VALUES (3, '2026-01-01', 50)")
        self.found = self.audit()

    def audited(self, name: str, query: str, **options: object) -> Audit:
        return self.audit(target=f"oracles.{name}", query=self.own(query), **options)


@pytest.fixture(scope="module")
def story(settings: Settings) -> Iterator[Story]:
    told = Story(settings)
    yield told
    told.operations.close()


def test_a_mistake_in_the_sql_is_found(story: Story) -> None:
    daily, named, copies = story.found.targets
    assert (daily.basis, named.basis, copies.basis) == (Basis.ORACLE, Basis.ORACLE, Basis.WORKFLOW_SQL)
    assert (daily.is_equal, named.is_equal, copies.is_equal) == (False, False, True)
    [difference] = daily.comparison.differences
    assert (difference.kind, difference.key) == ("missing", {"day": None})
    assert [each.expected for each in named.comparison.differences] == [({"id": 2, "name": None},)]
    # The first run was as it should be: its days and names were known.
    for target in (daily, named):
        assert target.culprit
        assert (target.culprit.run, target.culprit.last_good_run) == ("oracles/2", "oracles/1")
    assert any("as they are now" in note and "lake.oracles.names" in note for note in story.found.notes)


def test_it_is_said_what_the_target_was_compared_with(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    lines = auditing.text(story.found).splitlines()
    assert "✘ lake.oracles.named differs from its oracle: 1 row missing, 0 superfluous" in lines
    assert f"  oracle      {story.own(NAMED)}" in lines
    assert "✔ lake.oracles.copies matches the workflow's SQL: 3 rows in 2 partitions, 4 columns" in lines
    assert story.found.cannot_see in lines
    one = command(story, capsys, "--target", "oracles.named")
    assert one.code == 5, one.out
    found = one.json()
    assert found["cannot_see"] is None
    assert [(each["basis"], each["query"]) for each in found["targets"]] == [("oracle", story.own(NAMED))]


def test_a_query_wins_over_the_oracle(story: Story) -> None:
    """Its types are those that the target would make of it."""
    found = story.audited("named", "SELECT INT(1) AS ID, 'Ada' AS name FROM lake.db.plays WHERE id = 1")
    assert found.is_equal, found
    assert (found.targets[0].basis, found.cannot_see) == (Basis.QUERY, None)


@pytest.mark.parametrize(
    ("query", "because"),
    [
        ("SELECT id FROM lake.db.plays", "does not give name"),
        ("SELECT id, upper('x') FROM lake.db.plays", "does not give name"),
        ("SELECT id, 'x' AS name, 1 AS n FROM lake.db.plays", "gives n, which lake.oracles.named does not have"),
        ("SELECT p.id, n.name FROM lake.db.plays p, lake.db.named n", "reads lake.oracles.named itself"),
    ],
)
def test_a_query_that_proves_nothing_is_refused(story: Story, query: str, because: str) -> None:
    with pytest.raises(UserError, match=because):
        story.audited("named", query)


def test_a_value_in_the_wrong_column_is_seen(story: Story) -> None:
    """Rows that differ in where they have nulls alone, by pairs that agree column by column."""
    story.write(
        "CREATE TABLE lake.db.flags (k INT, a INT, b INT, c INT, d INT, e ARRAY<INT>) USING iceberg",
        "INSERT INTO lake.db.flags VALUES (1, 1, 1, NULL, NULL, array(1, NULL)), (2, NULL, NULL, 1, 1, NULL)",
    )
    values = "SELECT * FROM VALUES (1, {}, array(1, NULL)), (2, {}, NULL) AS t(k, a, b, c, d, e)"
    assert story.audited("flags", values.format("1, 1, NULL, NULL", "NULL, NULL, 1, 1")).is_equal
    assert not story.audited("flags", values.format("1, NULL, 1, NULL", "NULL, 1, NULL, 1")).is_equal
    swapped = values.format("1, 1, NULL, NULL", "NULL, NULL, 1, 1").replace("array(1, NULL)", "array(NULL, 1)")
    assert not story.audited("flags", swapped).is_equal
