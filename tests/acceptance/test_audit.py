"""Audits on a real Spark: what incremental runs made of a table, against what the whole of it gives."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from dalsegno import Lake
from dalsegno.audit.results import Audit, AuditRequest
from dalsegno.capture.scratch import Scratch, is_scratch
from dalsegno.cli import auditing
from dalsegno.clock import utc_now
from dalsegno.errors import UserError
from dalsegno.model.runs import RunStatus
from dalsegno.settings import Settings
from tests.acceptance.conftest import Commands, Done
from tests.acceptance.test_incremental import Place

pytestmark = pytest.mark.spark

WORKFLOW = """
Workflow:
  id: plays
  jobs:
    - job:
        id: capture
        type: IpCapture
        ip_capture: {source_tables: [lake.db.plays], range_columns: [day]}
    - job:
        id: write
        type: Spark
        retry_policy: {error_retry_limit: 0}
        spark:
          script: |
            INSERT INTO lake.db.copies SELECT id, day, seconds * 2, map('a', id) FROM ${capture.change_table};
            CREATE OR REPLACE TEMPORARY VIEW touched AS SELECT DISTINCT day FROM ${capture.change_table};
            MERGE INTO lake.db.latest USING (
              SELECT id, max(seconds) AS seconds FROM ${capture.change_table} GROUP BY id
            ) s ON latest.id = s.id
            WHEN MATCHED THEN UPDATE SET seconds = greatest(latest.seconds, s.seconds) WHEN NOT MATCHED THEN INSERT *
    - job:
        id: aggregate
        type: Spark
        spark:
          script: |
            MERGE INTO lake.db.daily t USING (
              SELECT day, count(*) AS plays, sum(seconds) AS seconds FROM lake.db.plays
              WHERE day IN (SELECT day FROM ${capture.change_table}) GROUP BY day
            ) s ON t.day = s.day AND t.day BETWEEN '${capture.min_day}' AND '${capture.max_day}'
            WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
    - job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}
  dag: sequential
"""


class Lakeside(Place):
    """A project whose tables are in a namespace of a test's own."""

    def __init__(self, settings: Settings, namespace: str) -> None:
        super().__init__(settings)
        self.namespace = namespace
        partitioned = "USING iceberg PARTITIONED BY (day)"
        self.write(
            f"CREATE NAMESPACE lake.{namespace}",
            f"CREATE TABLE lake.db.plays (id BIGINT, day STRING, seconds BIGINT) {partitioned}",
            "CREATE TABLE lake.db.copies (id BIGINT, day STRING, seconds BIGINT, m MAP<STRING, BIGINT>) "
            "USING iceberg PARTITIONED BY (day, bucket(2, id))",
            "CREATE TABLE lake.db.latest (id BIGINT, seconds BIGINT) USING iceberg",
            f"CREATE TABLE lake.db.daily (day STRING, plays BIGINT, seconds BIGINT) {partitioned}",
        )

    def own(self, text: str) -> str:
        return text.replace("lake.db.", f"lake.{self.namespace}.").replace("id: plays", f"id: {self.namespace}")

    def write(self, *statements: str) -> None:
        self.sql(*map(self.own, statements))

    def add(self, *rows: tuple[int, str, int]) -> None:
        self.write(f"INSERT INTO lake.db.plays VALUES {', '.join(map(str, rows))}")

    def process(self, text: str = WORKFLOW) -> None:
        assert self.run(self.own(text)) is RunStatus.SUCCEEDED

    def audit(self, **options: object) -> Audit:
        found = self.operations.audits.run(AuditRequest(self.namespace, **options))  # type: ignore[arg-type]
        assert not found.left_over
        assert not self.clones()
        return found

    def clones(self) -> list[str]:
        with Lake.open(self.settings) as lake:
            return [each[0] for each in lake.catalog("lake").namespaces() if is_scratch(each[0])]


class Story(Lakeside):
    """Two good runs, and an audit; then somebody else's hand, a wrong version, a mended one, and another audit."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, "drift")
        self.add((1, "2026-01-01", 10), (2, "2026-01-01", 20), (3, "2026-01-02", 30))
        self.process()
        self.add((4, "2026-01-02", 40), (1, "2026-01-04", 15))
        self.process()
        # What comes after the last run is none of the audit's business.
        self.add((5, "2026-01-01", 50))
        self.good = self.audit()
        self.write("DELETE FROM lake.db.copies WHERE id = 2")
        self.process(WORKFLOW.replace("sum(seconds) AS seconds", "sum(seconds) + 1 AS seconds"))
        self.add((6, "2026-01-03", 60))
        self.process()
        self.bad = self.audit()


@pytest.fixture(scope="module")
def story(settings: Settings) -> Iterator[Story]:
    told = Story(settings)
    yield told
    told.operations.close()


def test_runs_gave_what_the_whole_gives(story: Story) -> None:
    """Appended, merged and re-aggregated; from the snapshots that the runs consumed, not from what came later."""
    found = story.good
    assert found.is_equal
    assert (found.run, found.runs) == ("drift/2", 2)
    counts = {each.table.name: (each.comparison.expected_rows, each.comparison.found_rows) for each in found.targets}
    assert counts == {"copies": (5, 5), "latest": (4, 4), "daily": (3, 3)}
    assert all(column.is_equal for each in found.targets for column in each.comparison.columns)
    assert {each.table.name: each.keys for each in found.targets} == {
        "copies": (),
        "latest": ("id",),
        "daily": ("day",),
    }
    assert not found.notes


def test_a_run_that_went_wrong_is_named(story: Story) -> None:
    copies, latest, daily = story.bad.targets
    assert (story.bad.is_equal, copies.is_equal, latest.is_equal, daily.is_equal) == (False, False, True, False)
    assert {column.name for column in daily.comparison.columns if not column.is_equal} == {"seconds"}
    [difference] = daily.comparison.differences
    assert (difference.kind, difference.key) == ("changed", {"day": "2026-01-01"})
    assert (difference.expected[0]["seconds"], difference.found[0]["seconds"]) == (80, 81)
    assert daily.culprit
    assert (daily.culprit.run, daily.culprit.version, daily.culprit.is_run) == ("drift/3", 2, True)
    assert daily.culprit.last_good_run == "drift/2"


def test_a_write_of_somebody_else_is_named(story: Story) -> None:
    copies, _, _ = story.bad.targets
    assert (copies.comparison.missing_rows, copies.comparison.superfluous_rows) == (1, 0)
    [partition] = copies.comparison.differing_partitions
    assert (partition.values["day"], set(partition.values)) == ("2026-01-01", {"day", "id_bucket"})
    assert [(each.kind, each.key["id"]) for each in copies.comparison.differences] == [("missing", 2)]
    assert copies.culprit
    assert (copies.culprit.run, copies.culprit.is_run) == ("drift/2", False)
    assert (copies.culprit.last_good_run, copies.culprit.is_certain) == ("drift/2", True)


def test_what_people_read(story: Story) -> None:
    lines = auditing.text(story.bad).splitlines()
    assert "✔ lake.drift.latest matches the workflow's SQL: 6 rows, 2 columns" in lines
    assert "✘ lake.drift.daily differs from the workflow's SQL: 1 row missing, 1 superfluous" in lines
    assert any(line.startswith("A mistake in the SQL itself is made on both sides") for line in lines)
    assert "    changed     day=2026-01-01: seconds expected 80, found 81" in lines
    assert any("The first run that went wrong is drift/3 (version 2: snapshot" in line for line in lines)
    assert any("Somebody else changed it after drift/2: snapshot" in line for line in lines)


def test_a_sample(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    """In which nothing is wrong, because what is wrong is in a column that is left out."""
    daily = ("--target", "drift.daily", "--without", "seconds")
    sampled = command(story, capsys, "--sample", "3", *daily)
    assert sampled.code == 0, sampled.out
    [target] = sampled.json()["targets"]
    assert len(target["looked_at"]) == target["comparison"]["partitions"] == 3
    refused = command(story, capsys, "--sample", "2", "--target", "drift.latest")
    assert (refused.code, refused.json()["error"]["code"]) == (2, "UserError")


def command(place: Lakeside, capsys: pytest.CaptureFixture[str], *options: str) -> Done:
    file = place.settings.root / "dalsegno.toml"
    file.touch()
    return Commands(place.settings.root, capsys)("audit", place.namespace, *options, "--json", "--settings", str(file))


BY_HAND = (
    WORKFLOW[: WORKFLOW.index("    - job:\n        id: write")]
    + """
    - job: {id: write, type: Shell, shell: {script: "true"}}
    - job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}
  dag: sequential
"""
)


def test_a_job_that_is_not_sql_needs_a_query(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    place = Lakeside(settings, "by_hand")
    place.write("INSERT INTO lake.db.latest VALUES (1, 10), (2, 20)")
    place.add((1, "2026-01-01", 10), (2, "2026-01-01", 20))
    place.process(BY_HAND)
    with pytest.raises(UserError, match=r"no SQL of Spark.*write \(Shell\)") as refused:
        place.audit()
    assert "--query" in str(refused.value.hint)
    query = place.own("SELECT id, max(seconds) AS seconds FROM lake.db.plays GROUP BY id")
    place.add((3, "2026-01-01", 30))
    assert place.audit(query=query, target="by_hand.latest").is_equal
    place.write("UPDATE lake.db.latest SET seconds = 21 WHERE id = 2")
    only = ("--target", "by_hand.latest", "--key", "id", "--partition", "id=2")
    wrong = command(place, capsys, "--query", query, *only)
    assert wrong.code == 5, wrong.out
    [target] = wrong.json()["targets"]
    assert [(each["kind"], each["key"]) for each in target["comparison"]["differences"]] == [("changed", {"id": 2})]
    assert (target["culprit"]["is_run"], target["culprit"]["last_good_run"]) == (False, "by_hand/1")
    with pytest.raises(UserError, match="one SELECT"):
        place.audit(query="DROP TABLE lake.by_hand.latest", target="by_hand.latest")
    place.operations.close()


NAMED = """
Workflow:
  id: plays
  jobs:
    - job:
        id: capture
        type: ICDC
        icdc: {sourceTable: lake.db.plays, targetTable: lake.db.new_plays}
    - job:
        id: write
        type: Spark
        spark:
          script: INSERT INTO lake.db.copies SELECT id, day, seconds, NULL FROM lake.db.new_plays
  dag: sequential
"""


def test_a_change_table_of_one_name(settings: Settings) -> None:
    """Its name is written in the SQL, and the checkpoint moved with the run."""
    place = Lakeside(settings, "named")
    for number in (1, 2):
        place.add((number, "2026-01-01", 10))
        place.process(NAMED)
    assert place.audit().is_equal
    place.write("DELETE FROM lake.db.copies WHERE id = 1")
    assert not place.audit().is_equal
    place.operations.close()


def test_a_workflow_that_began_later(settings: Settings) -> None:
    """What was in the target before stays, and what the source held before is none of the workflow's."""
    place = Lakeside(settings, "later")
    begin, end = WORKFLOW.index("            CREATE OR REPLACE TEMPORARY"), WORKFLOW.index("    - job: {id: commit")
    text = (WORKFLOW[:begin] + WORKFLOW[end:]).replace("range_columns: [day]", "from: latest")
    place.add((1, "2026-01-01", 10))
    place.process(text)
    place.write("INSERT INTO lake.db.copies VALUES (0, '2025-12-31', 1, NULL)")
    place.add((2, "2026-01-01", 20))
    place.process(text)
    found = place.audit()
    assert found.is_equal, found
    assert any("before the first run is not audited" in note for note in found.notes)
    place.operations.close()


def test_an_audit_that_is_interrupted_leaves_nothing(story: Story) -> None:
    seen = []

    def interrupt(line: str) -> None:
        if line.startswith("Executing"):
            seen.extend(story.clones())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        story.operations.audits.run(AuditRequest("drift"), say=interrupt)
    assert len(seen) == 4
    assert not story.clones()


def test_what_an_audit_left_is_cleaned(story: Story) -> None:
    with Lake.open(story.settings) as lake:
        table = lake.load(lake.name("drift.plays"))
        files = {file for file in table.files.list(table.metadata["location"])}
        position = lake.store.positions("drift")[0].position
        clone = Scratch(lake.context).clone(table, position).tables[0]
        lake.clean()
        assert lake.catalog("lake").has(clone.change_table)
        lake.clock = lambda: utc_now() + lake.settings.capture_lifetime + timedelta(seconds=1)
        assert lake.clean().scratch == (f"lake.{clone.change_table.namespace[0]}",)
        assert not lake.catalog("lake").has(clone.change_table)
        assert not table.files.list(clone.location)
        assert {file for file in table.files.list(table.metadata["location"])} == files
