"""Stamps are where forms promise them, on real tables of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from dalsegno.model.tables import TableName
from dalsegno.spark.forms import Effect, form_of
from tests.iceberg.support import COPY_ON_WRITE, MERGE_ON_READ, Place, fresh_name, sqlite_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

STAMP = "dalsegno.x"
_NUMBERS = count(1)


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("forms")
    made = Place.make(spark, folder, sqlite_settings(folder, fresh_name()))
    yield made
    made.lake.close()


class Target:
    """A table, and what one statement after the other leaves in its metadata."""

    def __init__(self, place: Place, properties: dict[str, str], branch: str = "") -> None:
        self.place = place
        self.table = f"t{next(_NUMBERS)}"
        self.name = f"{place.catalog}.db.{self.table}"
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        columns = "(id int, p string) using iceberg partitioned by (p)"
        place.sql(f"create table {self.name} {columns} tblproperties ({listed})")
        self.execute("INSERT INTO t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'a'), (3, 'b'), (4, 'c')")
        if branch:
            place.sql(f"alter table {self.name} create branch {branch}")
            self.name += f".branch_{branch}"

    def metadata(self) -> dict[str, Any]:
        return dict(self.place.lake.load(TableName(self.place.catalog, ("db",), self.table)).metadata)

    def execute(self, statement: str) -> tuple[list[bool], list[str]]:
        """For each new snapshot whether it carries the stamp, and which references moved."""
        before = self.metadata()
        key, stamp = f"spark.sql.iceberg.snapshot-property.{STAMP}", str(next(_NUMBERS))
        self.place.spark.conf.set(key, stamp)
        try:
            self.place.sql(statement.replace(" t ", f" {self.name} "))
        finally:
            self.place.spark.conf.unset(key)
        after = self.metadata()
        known = {snapshot["snapshot-id"] for snapshot in before.get("snapshots", [])}
        new = [snapshot for snapshot in after["snapshots"] if snapshot["snapshot-id"] not in known]
        heads = before.get("refs", {})
        moved = [name for name, ref in after["refs"].items() if ref != heads.get(name)]
        return [snapshot["summary"].get(STAMP) == stamp for snapshot in new], moved


STAMPED, UNSTAMPED, NONE = [True], [False], list[bool]()
#: What each leaves in the table, also where it changes no row.
ON_ROWS = [
    ("INSERT INTO t SELECT * FROM t WHERE false", STAMPED),
    ("UPDATE t SET id = 10 WHERE id = 1", STAMPED),
    ("UPDATE t SET id = 10 WHERE id = 999", STAMPED),
    ("MERGE INTO t USING (SELECT 999 AS other) ON id = other WHEN MATCHED THEN DELETE", STAMPED),
    ("MERGE INTO t USING (SELECT 3 AS other) ON id = other WHEN MATCHED THEN UPDATE SET id = 4", STAMPED),
    # A file has other rows, too.
    ("DELETE FROM t WHERE id = 2", STAMPED),
    # A file has no others, or nothing is deleted.
    ("DELETE FROM t WHERE p = 'c'", UNSTAMPED),
    ("DELETE FROM t WHERE id = 999", UNSTAMPED),
    ("TRUNCATE TABLE t ", UNSTAMPED),
    ("TRUNCATE TABLE t ", UNSTAMPED),
    ("INSERT OVERWRITE t SELECT * FROM t WHERE false", STAMPED),
]
ELSEWHERE = [
    ("INSERT INTO t SELECT * FROM t WHERE false", STAMPED),
    ("UPDATE t SET id = 10 WHERE id = 1", STAMPED),
    ("DELETE FROM t WHERE p = 'c'", UNSTAMPED),
    ("TRUNCATE TABLE t ", UNSTAMPED),
    ("INSERT OVERWRITE t SELECT * FROM t WHERE false", STAMPED),
]


def check(target: Target, facts: list[tuple[str, list[bool]]], heads: list[str]) -> None:
    for statement, stamps in facts:
        assert (target.execute(statement), statement) == ((stamps, heads), statement)
        if form_of(statement).effect is Effect.STAMPED:
            assert all(stamps)


@pytest.mark.parametrize(
    ("version", "properties"), [("1", {}), ("2", COPY_ON_WRITE), ("2", MERGE_ON_READ), ("3", MERGE_ON_READ)]
)
def test_stamps_in_all_kinds_of_tables(place: Place, version: str, properties: dict[str, str]) -> None:
    check(Target(place, {"format-version": version, **properties}), ON_ROWS, ["main"])


def test_stamps_in_a_branch(place: Place) -> None:
    check(Target(place, MERGE_ON_READ, branch="b"), ELSEWHERE, ["b"])


def test_stamps_with_a_branch_of_the_session(place: Place) -> None:
    target = Target(place, {"write.wap.enabled": "true"})
    place.spark.conf.set("spark.wap.branch", "b")
    try:
        check(target, ELSEWHERE, ["b"])
    finally:
        place.spark.conf.unset("spark.wap.branch")


def test_staged_snapshots_are_stamped_and_deletes_by_metadata_are_not_staged(place: Place) -> None:
    target = Target(place, {"write.wap.enabled": "true"})
    place.spark.conf.set("spark.wap.id", "w")
    try:
        check(target, [fact for fact in ELSEWHERE if fact[1] == STAMPED], [])
        check(target, [fact for fact in ELSEWHERE if fact[1] == UNSTAMPED], ["main"])
    finally:
        place.spark.conf.unset("spark.wap.id")


def test_other_forms(place: Place) -> None:
    target = Target(place, MERGE_ON_READ)
    other = f"{target.name}_other"
    place.sql(f"create table {other} using iceberg as select 'b' as p, 1 as id")
    facts = [
        ("INSERT INTO t REPLACE WHERE p = 'x' SELECT 1, 'x' WHERE false", STAMPED),
        ("FROM t INSERT INTO t SELECT * WHERE id = 1", STAMPED),
        # Whole files, but by a subquery.
        (f"DELETE FROM t WHERE p IN (SELECT p FROM {other})", STAMPED),
        ("DELETE FROM t AS x WHERE EXISTS (SELECT 1 FROM (SELECT 'b' AS q) WHERE q = x.p)", STAMPED),
        (f"DELETE FROM t WHERE p NOT IN (SELECT p FROM {other} WHERE false) AND p = 'c'", STAMPED),
        # Spark puts the value of the subquery there.
        ("DELETE FROM t WHERE p = (SELECT 'a')", UNSTAMPED),
        ("DELETE FROM t WHERE false", NONE),
        ("EXPLAIN INSERT INTO t SELECT 1, 'x'", NONE),
        ("EXPLAIN TRUNCATE TABLE t ", NONE),
        # Options of the write have precedence over the session's.
        (f"INSERT INTO t WITH (`snapshot-property.{STAMP}` = 'x') SELECT 1, 'x'", UNSTAMPED),
        ("CREATE OR REPLACE TABLE t USING iceberg AS SELECT 1 AS id WHERE false", STAMPED),
        ("CREATE TABLE IF NOT EXISTS t USING iceberg AS SELECT 1 AS id", NONE),
        ("CREATE OR REPLACE TABLE t (id int) USING iceberg", NONE),
    ]
    for statement, stamps in facts:
        found, _ = target.execute(statement)
        assert (found, statement) == (stamps, statement)
        if form_of(statement).effect is Effect.STAMPED:
            assert all(found)
    # EXPLAIN executes what EXECUTE IMMEDIATE names.
    assert target.execute(f"EXPLAIN EXECUTE IMMEDIATE 'INSERT INTO {target.name} SELECT 1'") == (STAMPED, ["main"])
    assert form_of("EXPLAIN EXECUTE IMMEDIATE 'x'").effect is Effect.UNKNOWN


def test_overwriting_no_partition_leaves_nothing(place: Place) -> None:
    target = Target(place, MERGE_ON_READ)
    place.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        assert target.execute("INSERT OVERWRITE t SELECT * FROM t WHERE false") == (NONE, [])
        assert target.execute("INSERT OVERWRITE t SELECT 9, 'b'") == (STAMPED, ["main"])
    finally:
        place.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


def test_reset_takes_the_stamp_away(place: Place) -> None:
    key = f"spark.sql.iceberg.snapshot-property.{STAMP}"
    session = place.spark.newSession()
    session.conf.set(key, "x")
    session.sql("RESET")
    assert session.conf.get(key, None) is None


def test_definitions_and_maintenance(place: Place) -> None:
    target = Target(place, MERGE_ON_READ)
    name = target.name.removeprefix(f"{place.catalog}.")
    target.execute("INSERT INTO t VALUES (5, 'a')")
    compacts = (
        f"CALL {place.catalog}.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
    )
    assert target.execute(compacts) == (UNSTAMPED, ["main"])
    assert target.execute(f"CALL {place.catalog}.system.rewrite_manifests('{name}')") == (UNSTAMPED, ["main"])
    assert target.execute("ALTER TABLE t ADD COLUMN more INT") == (NONE, [])
    assert target.execute("ALTER TABLE t CREATE BRANCH b") == (NONE, ["b"])

    place.sql(f"drop table {target.name}")
    place.sql(f"create table {target.name} (id int) using iceberg")
    assert target.execute("ALTER TABLE t CREATE BRANCH b") == (UNSTAMPED, ["b"])

    key = f"spark.sql.iceberg.snapshot-property.{STAMP}"
    place.sql(f"drop table {target.name}")
    place.spark.conf.set(key, "x")
    try:
        place.sql(f"create table {target.name} using iceberg as select 1 as id where false")
    finally:
        place.spark.conf.unset(key)
    assert [snapshot["summary"][STAMP] for snapshot in target.metadata()["snapshots"]] == ["x"]
