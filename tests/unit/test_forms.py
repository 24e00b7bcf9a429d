"""What a statement will do, by its text: doubt is said, never guessed away."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalsegno.spark.forms import Effect, Form, form_of

LAKE = ("lake", "db", "t")


@pytest.mark.parametrize(
    ("statement", "name", "target"),
    [
        ("INSERT INTO lake.db.t SELECT 1", "INSERT INTO", LAKE),
        ("insert into table Lake.DB.t values (1)", "INSERT INTO", ("Lake", "DB", "t")),
        ("INSERT INTO lake.db.2024_sales SELECT 1", "INSERT INTO", ("lake", "db", "2024_sales")),
        ("INSERT INTO lake.1db.t SELECT 1", "INSERT INTO", ("lake", "1db", "t")),
        ("INSERT INTO 1db.2t SELECT 1.5, .5, 1e3, 5L", "INSERT INTO", ("1db", "2t")),
        ("INSERT INTO `a.b`.`c``d`.`x;y` VALUES (1)", "INSERT INTO", ("a.b", "c`d", "x;y")),
        ("INSERT INTO t.branch_b SELECT * FROM t", "INSERT INTO", ("t", "branch_b")),
        ("INSERT INTO /* x */ t -- y \\\n z\n SELECT 'INSERT INTO u; --' ;", "INSERT INTO", ("t",)),
        ("INSERT INTO t (a, b) SELECT /*+ BROADCAST(s) */ 1, 2 FROM s", "INSERT INTO", ("t",)),
        ("INSERT INTO t BY NAME SELECT 1 AS a", "INSERT INTO", ("t",)),
        ("INSERT INTO TABLE t PARTITION (p = 'x', q) SELECT 1", "INSERT INTO", ("t",)),
        ("INSERT INTO t REPLACE WHERE a = 1 SELECT 1", "INSERT INTO … REPLACE WHERE", ("t",)),
        ("INSERT INTO t WITH c AS (SELECT 1) SELECT * FROM c", "INSERT INTO", ("t",)),
        ("INSERT INTO t TABLE s", "INSERT INTO", ("t",)),
        ("INSERT INTO t FROM s |> WHERE a > 1", "INSERT INTO", ("t",)),
        ("INSERT INTO t SELECT r'\\', \"it's\" FROM IDENTIFIER('s')", "INSERT INTO", ("t",)),
        ("WITH a AS (SELECT 1), b(x) AS (SELECT 2) INSERT INTO t SELECT * FROM a", "INSERT INTO", ("t",)),
        ("FROM x INSERT INTO a SELECT 1", "FROM … INSERT INTO", ("a",)),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *", "MERGE", ("t",)),
        ("MERGE INTO t x USING s ON true WHEN NOT MATCHED BY SOURCE THEN DELETE", "MERGE", ("t",)),
        ("MERGE WITH SCHEMA EVOLUTION INTO t USING s ON true WHEN NOT MATCHED THEN INSERT *", "MERGE", ("t",)),
        ("UPDATE lake.db.t AS x SET x.a = 1, b.c = 2 WHERE id IN (SELECT id FROM s)", "UPDATE", LAKE),
        ("CREATE TABLE t USING iceberg AS SELECT 1", "CREATE TABLE … AS SELECT", ("t",)),
        ("CREATE TABLE t SELECT 1", "CREATE TABLE … AS SELECT", ("t",)),
        ("CREATE OR REPLACE TABLE t AS VALUES (1)", "CREATE OR REPLACE TABLE … AS SELECT", ("t",)),
        ("REPLACE TABLE lake.db.t AS SELECT 1", "REPLACE TABLE … AS SELECT", LAKE),
    ],
)
def test_writes_that_leave_a_stamp(statement: str, name: str, target: tuple[str, ...]) -> None:
    found = form_of(statement)
    assert (found.effect, found.name, found.target) == (Effect.STAMPED, name, target)
    assert not found.moves_names
    assert found.creates == found.name.endswith("AS SELECT")


@pytest.mark.parametrize(
    ("statement", "overwrites", "fixed_columns"),
    [
        ("INSERT OVERWRITE t SELECT 1", True, 0),
        ("INSERT OVERWRITE TABLE t PARTITION (p = 1, q) SELECT 1", True, 0),
        ("INSERT OVERWRITE TABLE t PARTITION (p = 1, q = 'x') SELECT 1", True, 2),
        ("INSERT OVERWRITE TABLE t PARTITION (p = 1) IF NOT EXISTS SELECT 1", True, 1),
        ("FROM x INSERT OVERWRITE a SELECT 1", True, 0),
        ("INSERT INTO t PARTITION (p) SELECT 1", False, 0),
        ("INSERT INTO t REPLACE WHERE true SELECT 1", False, 0),
    ],
)
def test_overwriting(statement: str, *, overwrites: bool, fixed_columns: int) -> None:
    found = form_of(statement)
    assert (found.effect, found.overwrites, found.fixed_columns) == (Effect.STAMPED, overwrites, fixed_columns)


@pytest.mark.parametrize(
    ("statement", "because"),
    [
        ("", "there is none"),
        ("INSERT INTO a SELECT 1; INSERT INTO b SELECT 2", "it is more than one statement"),
        ("BEGIN INSERT INTO t SELECT 1; END", "it is a script of statements"),
        ("label: BEGIN INSERT INTO t SELECT 1; END label", "it is a script of statements"),
        ("EXECUTE IMMEDIATE 'DROP TABLE t'", "its SQL is known only when it is executed"),
        ("INSERT INTO IDENTIFIER('a.b') SELECT 1", "IDENTIFIER(…) names something when it is executed"),
        ("INSERT INTO lake.IDENTIFIER('a').b SELECT 1", "IDENTIFIER(…) names something when it is executed"),
        ("WITH a AS (SELECT 1) DELETE FROM IDENTIFIER('x')", "IDENTIFIER(…) names something when it is executed"),
        ("TRUNCATE TABLE IDENTIFIER('x')", "IDENTIFIER(…) names something when it is executed"),
        ("CREATE TABLE IDENTIFIER('x') AS SELECT 1", "IDENTIFIER(…) names something when it is executed"),
        ("DROP TABLE IDENTIFIER('x')", "IDENTIFIER(…) names something when it is executed"),
        ("INSERT INTO t WITH (`branch` = 'b') SELECT 1", "it sets options of the write, which may lead it to a branch"),
        ("INSERT OVERWRITE DIRECTORY '/x' USING parquet SELECT 1", "it writes to a directory"),
        ("INSERT OVERWRITE LOCAL DIRECTORY '/x' SELECT 1", "it writes to a directory"),
        ("FROM x INSERT INTO a SELECT 1 INSERT INTO b SELECT 2", "it writes to several tables"),
        ("SELECT reflect('a', 'b')", "reflect(…) may call anything"),
        ("INSERT INTO t SELECT system.builtin.`java_method`('a', 'b')", "`java_method`(…) may call anything"),
        ("SELECT TRANSFORM(a) USING 'cat' AS (b) FROM t", "it hands its rows to a script"),
        ("FROM t MAP a USING 'cat'", "it hands its rows to a script"),
        ("INSERT INTO ${spark.t} SELECT 1", "Spark puts the value of a setting into it"),
        ("SELECT '${env:HOME}'", "Spark puts the value of a setting into it"),
        ("INSERT INTO t SELECT 'open\\'", "a quote is not closed"),
        ("INSERT INTO t SELECT 1 )", None),
        ("INSERT INTO 'a' SELECT 1", None),
        ('INSERT INTO "a" SELECT 1', None),
        ("INSERT INTO :t SELECT 1", None),
        ("INSERT INTO a-b SELECT 1", None),
        ("COPY INTO t FROM 'x'", None),
        ("CALL lake.other.f('t')", "only the procedures of Iceberg are known"),
        ("CALL lake.system.made_later('t')", "the procedure 'made_later' is not known"),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", None),
        ("CREATE STREAMING TABLE t", None),
        ("ANALYZE TABLES IN db COMPUTE STATISTICS", None),
        ("DELETE t WHERE id = 1", None),
        ("INSERT t SELECT 1", None),
        ("EXPLAIN EXECUTE IMMEDIATE 'x'", None),
        ("COMMIT", None),
        ("dfs -rm x", None),
    ],
)
def test_doubt(statement: str, because: str | None) -> None:
    found = form_of(statement)
    assert (found.effect, found.target, found.moves_names) == (Effect.UNKNOWN, (), True)
    assert found.because == because or (because is None and found.because)


def test_several_targets_are_named() -> None:
    found = form_of("FROM x INSERT INTO a.b SELECT 1 INSERT OVERWRITE c SELECT (SELECT 2) WHERE true")
    assert found.targets == (("a", "b"), ("c",))


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "with a AS (SELECT 1) SELECT * FROM a",
        "VALUES (1)",
        "TABLE t",
        "(SELECT 1) UNION (SELECT 2)",
        "FROM t SELECT *",
        "FROM t |> WHERE a > 1",
        "SELECT update, delete FROM merge",
        "SELECT * FROM IDENTIFIER('t')",
        "SELECT transform(a, x -> x + 1), java FROM t JOIN s USING (id)",
        "SHOW TABLES IN lake.db",
        "DESCRIBE TABLE t",
        "DESC t",
        "LIST JARS",
        "EXPLAIN INSERT INTO t SELECT 1",
        "EXPLAIN EXTENDED DELETE FROM t",
        "SET",
        "SET -v",
        "SET spark.sql.ansi.enabled",
        "CALL lake.system.ancestors_of('db.t')",
    ],
)
def test_queries(statement: str) -> None:
    assert form_of(statement).effect is Effect.READ


@pytest.mark.parametrize(
    ("condition", "is_idempotent"),
    [
        ("", True),
        ("WHERE id = 1", True),
        ("WHERE day BETWEEN date'2024-01-01' AND date '2024-01-31' AND upper(a) LIKE 'X%' OR b IS NULL", True),
        ("WHERE id % 7 = pmod(3, 5) AND a IN ('x', 'y')", True),
        ("WHERE id = rand()", False),
        ("WHERE a = uuid()", False),
        ("WHERE day = current_date()", False),
        ("WHERE day = current_date", False),
        # One of two executions deletes all that both delete.
        ("WHERE at < now() - INTERVAL '3' DAY AND a = 'x'", True),
        ("WHERE day <= date_sub(current_date(), 30)", True),
        ("WHERE day < CAST(current_timestamp AS DATE)", True),
        # Two moments make a window that moves.
        ("WHERE at < now() AND at > now() - INTERVAL 1 HOUR", False),
        ("WHERE at > CAST(now() AS TIME)", False),
        ("WHERE id < hour(now())", False),
        ("WHERE NOT (day < current_date() AND a = 1)", False),
        ("WHERE day < current_date() OR day = 1", False),
        ("WHERE a < current_user()", False),
        ("WHERE day = date'today'", False),
        ("WHERE at = CAST(' Yesterday UTC' AS TIMESTAMP)", False),
        ("WHERE day < date'today'", True),
        ("WHERE my_function(id)", False),
        ("WHERE x < (SELECT avg(x) FROM t)", False),
    ],
)
def test_deletes_that_may_be_executed_again(condition: str, *, is_idempotent: bool) -> None:
    found = form_of(f"DELETE FROM lake.db.t {condition}")
    assert (found.effect, found.target) == (Effect.UNSTAMPED, LAKE)
    assert found.is_idempotent == is_idempotent
    assert not found.is_ddl


@pytest.mark.parametrize(
    ("condition", "effect"),
    [
        ("id IN (SELECT id FROM s)", Effect.STAMPED),
        ("id NOT IN (SELECT id FROM s) AND a = 1", Effect.STAMPED),
        ("(a, x.b) IN (SELECT a, b FROM s)", Effect.STAMPED),
        ("EXISTS (SELECT 1 FROM s WHERE s.id = x.id)", Effect.STAMPED),
        ("a = 1 AND (NOT EXISTS (SELECT 1 FROM s WHERE s.id = x.id))", Effect.STAMPED),
        # Spark may know the value of these before it decides how to delete.
        ("1 IN (SELECT 1)", Effect.UNSTAMPED),
        ("EXISTS (SELECT 1 FROM s)", Effect.UNSTAMPED),
        ("EXISTS (SELECT 1 FROM s AS X WHERE x.id = 1)", Effect.UNSTAMPED),
        ("EXISTS (SELECT 1 FROM (SELECT 1 AS id) x WHERE x.id = 1)", Effect.UNSTAMPED),
        ("EXISTS (WITH x AS (SELECT 1 AS id) SELECT 1 FROM x WHERE x.id = 1)", Effect.UNSTAMPED),
        ("a = (SELECT 'b')", Effect.UNSTAMPED),
        ("true OR id IN (SELECT id FROM s)", Effect.UNSTAMPED),
        ("NOT (id IN (SELECT id FROM s) AND a = 1)", Effect.UNSTAMPED),
    ],
)
def test_deletes_with_a_subquery(condition: str, effect: Effect) -> None:
    found = form_of(f"DELETE FROM lake.db.t AS x WHERE {condition}")
    assert (found.effect, found.target, found.is_idempotent) == (effect, LAKE, False)


@pytest.mark.parametrize(
    ("statement", "name", "is_idempotent"),
    [
        ("TRUNCATE TABLE lake.db.t", "TRUNCATE TABLE", True),
        ("CREATE TABLE IF NOT EXISTS lake.db.t (id INT) USING iceberg", "CREATE TABLE", True),
        ("CREATE TABLE lake.db.t (`select` MAP<STRING, INT>, f STRING COMMENT 'from')", "CREATE TABLE", False),
        ("CREATE TABLE lake.db.t LIKE s", "CREATE TABLE", False),
        ("CREATE OR REPLACE TABLE lake.db.t (id INT)", "CREATE OR REPLACE TABLE", True),
        ("REPLACE TABLE lake.db.t (id INT)", "REPLACE TABLE", True),
        ("CREATE OR REPLACE VIEW lake.db.t AS SELECT 1", "CREATE VIEW", True),
        ("CREATE VIEW lake.db.t AS SELECT 1", "CREATE VIEW", False),
        ("CREATE NAMESPACE IF NOT EXISTS lake.db.t", "CREATE NAMESPACE", True),
        ("CREATE FUNCTION lake.db.t AS 'a.B' USING JAR 'x.jar'", "CREATE FUNCTION", False),
        ("DROP TABLE lake.db.t", "DROP TABLE", False),
        ("DROP TABLE IF EXISTS lake.db.t PURGE", "DROP TABLE", True),
        ("ALTER TABLE lake.db.t ADD COLUMN c INT", "ALTER TABLE", False),
        ("ALTER TABLE lake.db.t SET TBLPROPERTIES ('a' = 'b')", "ALTER TABLE", True),
        ("ALTER TABLE lake.db.t WRITE ORDERED BY id", "ALTER TABLE", True),
        ("ALTER TABLE lake.db.t CREATE BRANCH b", "ALTER TABLE", False),
        ("ALTER TABLE lake.db.t CREATE BRANCH IF NOT EXISTS b", "ALTER TABLE", True),
        ("ALTER TABLE lake.db.t CREATE OR REPLACE BRANCH b", "ALTER TABLE", True),
        ("ALTER TABLE lake.db.t RENAME TO lake.db.u", "ALTER TABLE", False),
        ("COMMENT ON TABLE lake.db.t IS 'x'", "COMMENT ON TABLE", True),
        ("ANALYZE TABLE lake.db.t COMPUTE STATISTICS", "ANALYZE TABLE", True),
        ("MSCK REPAIR TABLE lake.db.t", "MSCK REPAIR TABLE", True),
        ("LOAD DATA LOCAL INPATH 'x' OVERWRITE INTO TABLE lake.db.t", "LOAD DATA", False),
        ("CALL lake.system.rewrite_data_files('db.t')", "CALL rewrite_data_files", True),
        ("CALL lake.system.expire_snapshots(retain_last => 1, table => 'lake.db.t')", "CALL expire_snapshots", True),
        ("CALL lake.SYSTEM.Add_Files(table => 'db.t', source_table => '`parquet`.`x`')", "CALL add_files", False),
        ("CALL lake.system.snapshot('a.b', 'db.t')", "CALL snapshot", False),
    ],
)
def test_changes_that_may_leave_no_stamp(statement: str, name: str, *, is_idempotent: bool) -> None:
    found = form_of(statement)
    assert (found.effect, found.name, found.target) == (Effect.UNSTAMPED, name, LAKE)
    assert found.is_idempotent == is_idempotent
    assert found.is_ddl == (name != "TRUNCATE TABLE")
    assert found.drops == ("DROP TABLE" in name or "RENAME" in statement)
    assert found.creates == (
        name.endswith(("TABLE", "snapshot")) and ("CREATE" in name or "REPLACE" in name or "snap" in name)
    )


@pytest.mark.parametrize(
    ("statement", "target"),
    [
        ("CALL system.expire_snapshots('t')", ("t",)),
        ('CALL system.expire_snapshots(`table` => "db.`a.b`")', ("db", "a.b")),
        ("CALL lake.system.expire_snapshots('t')", ()),
        ("CALL lake.system.expire_snapshots(concat('db', '.t'))", ()),
        ("CALL lake.system.expire_snapshots('db.' 't')", ()),
        ("CALL lake.system.expire_snapshots(:t)", ()),
        ("CALL lake.system.expire_snapshots()", ()),
    ],
)
def test_the_table_of_a_procedure(statement: str, target: tuple[str, ...]) -> None:
    found = form_of(statement)
    assert (found.effect, found.target) == (Effect.UNSTAMPED, target)


@pytest.mark.parametrize(
    ("statement", "is_replayable", "variables"),
    [
        ("SET spark.wap.branch = b", True, ()),
        ("SET spark.sql.iceberg.snapshot-property.x=it's", True, ()),
        ("SET TIME ZONE 'UTC'", True, ()),
        ("RESET spark.wap.branch", True, ()),
        ("ADD JAR /x/y.jar", True, ()),
        ("CREATE TEMPORARY VIEW v AS SELECT rand() FROM t", True, ()),
        ("CREATE OR REPLACE TEMP VIEW v USING parquet OPTIONS (path '/x')", True, ()),
        ("CREATE GLOBAL TEMPORARY VIEW v AS SELECT 1", False, ()),
        ("CREATE OR REPLACE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN x + 1", True, ()),
        ("DROP TEMPORARY FUNCTION f", True, ()),
        ("DROP TEMPORARY VARIABLE IF EXISTS x", True, ()),
        ("CACHE TABLE x AS SELECT * FROM t", False, ()),
        ("CACHE LAZY TABLE x", False, ()),
        ("UNCACHE TABLE IF EXISTS x", True, ()),
        ("CLEAR CACHE", True, ()),
        ("REFRESH TABLE t", True, ()),
        ("DECLARE x INT", True, ()),
        ("DECLARE OR REPLACE VARIABLE x DECIMAL(10, 2) DEFAULT 1.5 + CAST('2' AS INT)", True, ()),
        ("DECLARE a, `b c` STRING = uuid()", False, ("a", "b c")),
        ("SET VAR x = -5", True, ()),
        ("SET VAR session.x = (SELECT max(a) FROM t), y = date'2024-01-01'", False, ("x",)),
        ("SET VARIABLE (a, b) = (SELECT 1, 2)", False, ("a", "b")),
        ("SET VAR x = x + 1", False, ("x",)),
        ("SET VAR x = current_timestamp(), y = DEFAULT", False, ("x", "y")),
        ("SET VAR x = my_function(1)", False, ("x",)),
        ("SET VAR x = timestamp'now'", False, ("x",)),
        ("CALL lake.system.create_changelog_view('db.t')", False, ()),
    ],
)
def test_state_of_the_session(statement: str, *, is_replayable: bool, variables: tuple[str, ...]) -> None:
    found = form_of(statement)
    assert found.effect is Effect.SESSION
    assert (found.is_replayable, found.variables, found.moves_names) == (is_replayable, variables, False)


@pytest.mark.parametrize(
    "statement",
    [
        "USE lake.db",
        "USE NAMESPACE db",
        "USE IDENTIFIER('x')",
        "SET CATALOG lake",
        "SET CATALOG 'lake'",
        "SET CATALOG IDENTIFIER(x)",
        "SET spark.sql.defaultCatalog=lake",
        "SET `spark.sql.catalog.x`=y",
        "RESET spark.sql.defaultCatalog",
        "RESET",
    ],
)
def test_what_moves_names(statement: str) -> None:
    found = form_of(statement)
    assert (found.effect, found.moves_names) == (Effect.SESSION, True)
    assert found.is_replayable == ("IDENTIFIER" not in statement)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES " + ", ".join(f"({number}, 'x', -1.5)" for number in range(20_000)),
        "DELETE FROM t WHERE id IN (" + ", ".join(f"'{number}'" for number in range(20_000)) + ")",
        "DELETE FROM t WHERE " + " OR ".join(f"id = {number}" for number in range(2_000)),
    ],
    ids=["rows", "values", "conditions"],
)
def test_long_statements(statement: str) -> None:
    assert form_of(statement).target == ("t",)


def test_deep_statements_are_in_doubt() -> None:
    found = form_of("INSERT INTO t SELECT " + "(" * 3000 + "1" + ")" * 3000)
    assert (found.effect, found.because) == (Effect.UNKNOWN, "it is nested too deeply")


_PIECES = [
    "INSERT INTO",
    "lake.db.t",
    "SELECT",
    "FROM",
    "(",
    ")",
    "WITH",
    "a AS",
    "'x'",
    "`y`",
    "1",
    ",",
    "DELETE",
    "SET",
]
_PIECES += [
    "CREATE",
    "TABLE",
    "VIEW",
    "MERGE",
    "USING",
    "/* */",
    "-- x\n",
    "/*",
    "'",
    "`",
    ";",
    "CALL",
    "IDENTIFIER",
    "\\",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=12).map(" ".join) | st.text(max_size=40))
def test_any_text_has_a_form(text: str) -> None:
    found = form_of(text)
    assert isinstance(found, Form)
    assert bool(found.because) == (found.effect is Effect.UNKNOWN)
    assert found.target or found.effect is not Effect.STAMPED
