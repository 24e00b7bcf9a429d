"""Statements under other names: only names are replaced, and what may write elsewhere is told."""

from __future__ import annotations

import pytest

from dalsegno.spark.rewriting import Effect, Stand, equal_columns, literal, quoted, renamed, understood

NAMES = dict.fromkeys([("lake", "db", "plays"), ("db", "plays"), ("plays",)], Stand("`s`.`plays`", 12))


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT * FROM lake.db.plays", "SELECT * FROM `s`.`plays`"),
        ("SELECT * FROM `lake`.db . `plays` p", "SELECT * FROM `s`.`plays` p"),
        ("SELECT lake.db.plays.id FROM db.plays", "SELECT `s`.`plays`.id FROM `s`.`plays`"),
        ("SELECT * FROM lake.db.plays.snapshots", "SELECT * FROM `s`.`plays`.snapshots"),
        # A single word is a table only where tables are named.
        ("SELECT plays, plays.id FROM plays JOIN plays2", "SELECT plays, plays.id FROM `s`.`plays` JOIN plays2"),
        ("SELECT x.db.plays FROM t", "SELECT x.db.plays FROM t"),
        ("SELECT 'lake.db.plays' -- lake.db.plays", "SELECT 'lake.db.plays' -- lake.db.plays"),
        ("SELECT 1 /* FROM lake.db.plays */", "SELECT 1 /* FROM lake.db.plays */"),
        ("SELECT * FROM lake.db.plays2, lake.db2.plays", "SELECT * FROM lake.db.plays2, lake.db2.plays"),
        ("SELECT * FROM lake.db.plays VERSION AS OF 12 p", "SELECT * FROM `s`.`plays` p"),
        ("SELECT * FROM plays FOR SYSTEM_VERSION AS OF '12'", "SELECT * FROM `s`.`plays`"),
        ("SELECT * FROM lake.db.plays VERSION AS OF 13", "SELECT * FROM `s`.`plays` VERSION AS OF 13"),
        ("SELECT version AS of FROM t JOIN plays", "SELECT version AS of FROM t JOIN `s`.`plays`"),
        ("MERGE INTO plays t USING (SELECT 1.5 FROM x)", "MERGE INTO `s`.`plays` t USING (SELECT 1.5 FROM x)"),
    ],
)
def test_only_names_are_replaced(statement: str, expected: str) -> None:
    assert renamed(statement, NAMES) == expected


@pytest.mark.parametrize(
    ("statement", "effect", "table"),
    [
        ("SELECT 1", Effect.NONE, None),
        ("WITH a AS (SELECT 1) SELECT * FROM a", Effect.NONE, None),
        ("WITH a AS (SELECT 1) INSERT INTO lake.db.t SELECT * FROM a", Effect.WRITES, ("lake", "db", "t")),
        ("WITH a AS (SELECT 1) DELETE FROM IDENTIFIER('x')", Effect.UNCLEAR, None),
        ("INSERT OVERWRITE `lake`.`db`.`t` SELECT 1", Effect.WRITES, ("lake", "db", "t")),
        ("CREATE TABLE IF NOT EXISTS lake.db.t (id INT)", Effect.WRITES, ("lake", "db", "t")),
        ("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1", Effect.NONE, None),
        ("CREATE OR REPLACE GLOBAL TEMPORARY VIEW v AS SELECT 1", Effect.UNCLEAR, None),
        ("CREATE VIEW lake.db.v AS SELECT 1", Effect.UNCLEAR, None),
        ("DROP TABLE IF EXISTS lake.db.t", Effect.WRITES, ("lake", "db", "t")),
        ("DROP VIEW lake.db.v", Effect.UNCLEAR, None),
        ("TRUNCATE TABLE lake.db.t", Effect.WRITES, ("lake", "db", "t")),
        ("ALTER TABLE lake.db.t ADD COLUMN c INT", Effect.WRITES, ("lake", "db", "t")),
        ("ALTER TABLE lake.db.t RENAME TO lake.db.u", Effect.UNCLEAR, None),
        ("INSERT INTO lake.db.t WITH (`branch` = 'b') SELECT 1", Effect.UNCLEAR, None),
        ("SELECT reflect('java.lang.System', 'exit', 1)", Effect.UNCLEAR, None),
        ("EXPLAIN EXECUTE IMMEDIATE 'DROP TABLE t'", Effect.UNCLEAR, None),
        ("CALL lake.system.rewrite_data_files('db.t')", Effect.MAINTAINS, None),
        ("CALL lake.system.rollback_to_snapshot('db.t', 1)", Effect.UNCLEAR, None),
        ("FROM a INSERT INTO b SELECT 1", Effect.UNCLEAR, None),
        ("INSERT INTO IDENTIFIER('lake.db.t') SELECT 1", Effect.UNCLEAR, None),
        ("BEGIN INSERT INTO lake.db.t SELECT 1; END", Effect.UNCLEAR, None),
        ("EXECUTE IMMEDIATE 'DROP TABLE t'", Effect.UNCLEAR, None),
        ("", Effect.UNCLEAR, None),
    ],
)
def test_what_a_statement_does(statement: str, effect: Effect, table: tuple[str, ...] | None) -> None:
    found = understood(statement)
    assert (found.effect, found.table) == (effect, table)


@pytest.mark.parametrize(
    ("statement", "keys"),
    [
        ("MERGE INTO t USING s ON t.id = s.id AND t.`Day` <=> s.day WHEN MATCHED THEN DELETE", ("id", "Day")),
        ("MERGE INTO t USING (SELECT * FROM a JOIN b ON a.x = b.x) s ON t.id = s.id AND t.n > 1 WHEN", ("id",)),
        ("MERGE INTO t USING s ON t.id = s.other WHEN", ()),
        ("INSERT INTO t SELECT * FROM a JOIN b ON a.x = b.x", ()),
    ],
)
def test_the_keys_of_a_merge(statement: str, keys: tuple[str, ...]) -> None:
    assert equal_columns(statement) == keys


def test_quotes() -> None:
    assert quoted("a", "b`; DROP") == "`a`.`b``; DROP`"
    assert literal("it's \\ here") == r"'it\'s \\ here'"
