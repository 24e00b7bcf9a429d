"""Forms say what Spark's own parser says: made-up statements with odd names, and their targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dalsegno.spark.forms import Effect, form_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def one_of(*texts: str) -> st.SearchStrategy[str]:
    """One of the texts between the bars."""
    return st.sampled_from([text for line in texts for text in line.split(" | ")])


NAMES = one_of(
    "t | lake.db.t | lake.db.2024_sales | 1db.t | lake.1db.t | `a.b`.`c``d` | `x;y`.t | t.branch_b | _1.`1` | é.ü",
    "IDENTIFIER('t') | lake.IDENTIFIER('x').t | identifier | `IDENTIFIER` | update.merge | into | table.t | table",
    "${x} | 't' | a-b | directory | local.t | values | partition | t.1e5 | t.1d | lake . /* x */ `t`",
    "from | `a`/**/.b",
)
QUERIES = one_of(
    "SELECT 1 | SELECT /*+ COALESCE(1) */ 'INSERT INTO x; --' AS a | VALUES (1) | TABLE s | (SELECT 1)",
    "FROM s SELECT *",
    "WITH c AS (SELECT 1) SELECT * FROM c | FROM s |> WHERE a = 1 | SELECT r'\\', \"it's\", `b;` FROM s -- \\\n;\n",
    "SELECT 1 UNION SELECT 2 | (TABLE s) | SELECT insert, into FROM s | SELECT * FROM a JOIN b USING (id)",
    "SELECT (SELECT max(a) FROM s), 1.5, .5, 1e3, 5L, X'1F' | SELECT a FROM s WHERE b IN (SELECT 1) ORDER BY 1 LIMIT 1",
)
CTES = one_of(
    " |  | WITH c AS (SELECT 1)  | WITH c(x) AS (SELECT 1), d AS (TABLE s)  | with recursive r as (select 1) "
)
CLAUSES = one_of(
    " |  |  (a, b) |  BY NAME |  PARTITION (p = 1) |  PARTITION (p, q = 'x') |  REPLACE WHERE a = 1 |  WITH |  /* ; */",
    " PARTITION (p = 1) IF NOT EXISTS |  WITH (`a` = 'b')",
)
VERBS = one_of("INSERT INTO  | INSERT OVERWRITE  | INSERT INTO TABLE  | insert /* x */ overwrite table ")
INSERTS = st.builds("{}{}{} ".format, VERBS, NAMES, CLAUSES)
SETS = one_of(" SET a = 1 |  AS x SET x.a = 1 WHERE id IN (SELECT 1) |  x SET a.b = 'SET' -- y")
CONDITIONS = one_of(" |  WHERE a = 1 |  x WHERE EXISTS (SELECT 1 FROM s WHERE s.a = x.a) |  AS x WHERE b = '--'")
MERGES = one_of(
    " USING s ON true WHEN MATCHED THEN DELETE",
    " AS x USING (SELECT 1 AS id) s ON x.id = s.id WHEN NOT MATCHED THEN INSERT *",
)
STATEMENTS = st.one_of(
    st.builds("{}{}{}".format, CTES, INSERTS, QUERIES),
    st.builds("{}FROM s {}SELECT *".format, CTES, INSERTS),
    st.builds("{}FROM s {}SELECT * {}SELECT 1".format, CTES, INSERTS, INSERTS),
    st.builds("{}UPDATE {}{}".format, CTES, NAMES, SETS),
    st.builds("{}DELETE FROM {}{}".format, CTES, NAMES, CONDITIONS),
    st.builds("{}MERGE INTO {}{}".format, CTES, NAMES, MERGES),
    st.builds("MERGE WITH SCHEMA EVOLUTION INTO {}{}".format, NAMES, MERGES),
    st.builds("{}{}".format, CTES, QUERIES),
    st.builds("TRUNCATE TABLE {}".format, NAMES),
    st.builds("CREATE TABLE {}{}{}".format, NAMES, one_of("  |  USING iceberg AS  |  (`from` INT) "), QUERIES),
    st.builds("CREATE TABLE {} (a MAP<STRING, INT>, b INT)".format, NAMES),
    st.builds("CREATE OR REPLACE TABLE {} AS {}".format, NAMES, QUERIES),
    st.builds("REPLACE TABLE {} USING iceberg AS {}".format, NAMES, QUERIES),
    st.builds("DROP TABLE IF EXISTS {}".format, NAMES),
    st.builds("{}{}".format, INSERTS, one_of("'open |  | ) | ; SELECT 1")),
)

#: Plans of Spark's parser that write, and where they have their table.
WRITING = {
    "InsertIntoStatement": "table",
    "OverwriteByExpression": "table",
    "UpdateTable": "table",
    "DeleteFromTable": "table",
    "MergeIntoTable": "targetTable",
    "TruncateTable": "table",
    "CreateTable": "name",
    "CreateTableAsSelect": "name",
    "ReplaceTable": "name",
    "ReplaceTableAsSelect": "name",
    "DropTable": "child",
}
STAMPED = {"InsertIntoStatement", "OverwriteByExpression", "UpdateTable", "MergeIntoTable"}
STAMPED |= {"CreateTableAsSelect", "ReplaceTableAsSelect"}


def parsed(spark: SparkSession, statement: str) -> tuple[str, tuple[str, ...]] | None:
    """What Spark's own parser makes of a statement: its plan and the table's name; None if it does not parse."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import ParseException

    try:
        plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(statement)
    except (Py4JJavaError, ParseException):
        return None
    while plan.getClass().getSimpleName() == "UnresolvedWith":
        plan = plan.child()
    kind = plan.getClass().getSimpleName()
    if kind not in WRITING:
        return kind, ()
    table = getattr(plan, WRITING[kind])()
    while table.getClass().getSimpleName() == "SubqueryAlias":
        table = table.child()
    if table.getClass().getSimpleName() == "PlanWithUnresolvedIdentifier":
        return kind, ()
    is_new = table.getClass().getSimpleName() == "UnresolvedIdentifier"
    name = table.nameParts() if is_new else table.multipartIdentifier()
    return kind, tuple(name.apply(at) for at in range(name.size()))


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(statement=STATEMENTS)
def test_targets_are_those_of_sparks_parser(spark: SparkSession, statement: str) -> None:
    form, truth = form_of(statement), parsed(spark, statement)
    if truth is None or form.effect is Effect.UNKNOWN:
        return
    kind, target = truth
    assert form.target == target
    assert (form.effect is Effect.READ) == (kind not in WRITING)
    is_by_rows = kind == "DeleteFromTable" and "EXISTS" in statement
    assert (form.effect is Effect.STAMPED) == (kind in STAMPED or is_by_rows)


BETWEEN = st.sampled_from(
    [
        *(
            " ",
            "\t",
            "\x0b",
            "\r\n",
            "\xa0",
            "\u2003",
            "/**/",
            "/*/ */",
            "/* /* ; */ ' */",
            "/*\n`*/",
            "/*--*/",
            "/*\\*/",
        ),
        *("-- '\n", "--/*\n", "--\\\n INTO x\n", "\x85"),
    ]
)
WORDS = st.sampled_from(
    [
        "INSERT INTO lake . 1db . t SELECT 'a;' , `b` FROM s",
        "WITH c AS ( SELECT 1 ) INSERT OVERWRITE TABLE t TABLE c",
        "DELETE FROM t WHERE a = '/*' AND b = \"--\"",
        "UPDATE `/*` SET a = 1",
        "FROM s INSERT INTO t SELECT 1",
        "TRUNCATE TABLE `a--b` . c",
    ]
).map(str.split)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(words=WORDS, data=st.data())
def test_comments_and_blanks_are_those_of_sparks_lexer(
    spark: SparkSession, words: list[str], data: st.DataObject
) -> None:
    statement = words[0] + "".join(data.draw(BETWEEN) + word for word in words[1:])
    form, truth = form_of(statement), parsed(spark, statement)
    if truth is not None:
        assert (form.target, form.effect is Effect.UNKNOWN) == (truth[1], False)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO lake.1db.2024_sales BY NAME SELECT 1 AS a",
        "WITH c AS (SELECT 1) FROM c INSERT INTO t SELECT *",
        "INSERT INTO t REPLACE WHERE a = 1 SELECT 1",
        "INSERT OVERWRITE t PARTITION (p = 1) IF NOT EXISTS SELECT 1",
        "MERGE WITH SCHEMA EVOLUTION INTO `a.b`.t USING s ON true WHEN MATCHED THEN DELETE",
    ],
)
def test_what_is_ordinary_is_not_in_doubt(spark: SparkSession, statement: str) -> None:
    truth = parsed(spark, statement)
    assert truth is not None
    assert form_of(statement).target == truth[1]
