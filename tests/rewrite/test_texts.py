"""The user's text with other relations in the place of tables: nothing else in it changes."""

from __future__ import annotations

import pytest

from dalsegno.rewrite.analysis import analyse, expanded, tables_in
from dalsegno.rewrite.partitions import renamed
from dalsegno.rewrite.slices import SelectSlices, distinct_argument
from dalsegno.rewrite.tables import Change, Reading, Table, with_columns
from dalsegno.rewrite.texts import QueryText
from dalsegno.rewrite.writing import Writer

FACTS = Table(
    ("lake", "db", "facts"), {"id": "int", "day": "date", "odd `name": "string", "s": "struct<a:int,b:string>"}
)
DIMS = Table(("lake", "db", "dims"), {"id": "int", "name": "string", "Tags": "array<string>"})
CURRENT = ("lake", "db")


def rewritten(query: str) -> str:
    """The query with ``F`` for facts and ``D`` for dims."""
    analysis = analyse(query, [FACTS, DIMS], current=CURRENT)
    target = Table(("t",), {name: "int" for name in analysis.outputs})
    reading = Reading({FACTS.name: Change("F", "A")}, {DIMS.name: "D"})
    return Writer(analysis, target, reading).query()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT id FROM facts", "SELECT id FROM (SELECT s.`id` FROM F s) `facts`"),
        ("SELECT facts.id FROM lake.db.facts", "SELECT facts.id FROM (SELECT s.`id` FROM F s) `facts`"),
        ("SELECT f.id FROM db.facts AS f", "SELECT f.id FROM (SELECT s.`id` FROM F s) AS f"),
        ("SELECT db.facts.id FROM db.facts", "SELECT facts.id FROM (SELECT s.`id` FROM F s) `facts`"),
        ("SELECT lake.db.facts.s.a FROM facts", "SELECT facts.s.a FROM (SELECT s.`s` FROM F s) `facts`"),
        ("SELECT s.a AS x FROM facts", "SELECT s.a AS x FROM (SELECT s.`s` FROM F s) `facts`"),
        ("SELECT ID FROM `LAKE`.`DB`.`Facts`", "SELECT ID FROM (SELECT s.`id` FROM F s) `Facts`"),
        (
            "SELECT `odd ``name` AS n FROM facts;",
            "SELECT `odd ``name` AS n FROM (SELECT s.`odd ``name` FROM F s) `facts`",
        ),
        ("SELECT count(*) AS n FROM facts", "SELECT count(*) AS n FROM (SELECT 1 AS _dalsegno_row FROM F s) `facts`"),
        (
            "select id -- from facts\nfrom facts /* facts; it's /* nested */ */ where day > DATE'2026-01-01' -- end",
            "select id -- from facts\nfrom (SELECT s.`id`, s.`day` FROM F s) `facts` /* facts; it's /* nested */ */ "
            "where day > DATE'2026-01-01'",
        ),
        (
            "SELECT 'from facts' AS a, 'it\\'s facts' AS b, \"facts\" AS c, id FROM facts",
            "SELECT 'from facts' AS a, 'it\\'s facts' AS b, \"facts\" AS c, id FROM (SELECT s.`id` FROM F s) `facts`",
        ),
        (
            "SELECT /*+ BROADCAST(dims) */ f.id FROM facts f JOIN dims ON dims.id = f.id",
            "SELECT /*+ BROADCAST(dims) */ f.id FROM (SELECT s.`id` FROM F s) f JOIN (SELECT s.`id` FROM D s) `dims` "
            "ON dims.id = f.id",
        ),
        (
            "WITH facts AS (SELECT id FROM dims) SELECT id FROM facts",
            "WITH facts AS (SELECT id FROM (SELECT s.`id` FROM D s) `dims`) SELECT id FROM facts",
        ),
        (
            "WITH facts AS (SELECT id FROM facts) SELECT f.id FROM facts f",
            "WITH facts AS (SELECT id FROM (SELECT s.`id` FROM F s) `facts`) SELECT f.id FROM facts f",
        ),
        (
            "SELECT a.id FROM facts a JOIN facts b USING (id)",
            "SELECT a.id FROM (SELECT s.`id` FROM F s) a JOIN (SELECT s.`id` FROM F s) b USING (id)",
        ),
        (
            "SELECT t.tag FROM dims LATERAL VIEW explode(tags) t AS tag",
            "SELECT t.tag FROM (SELECT s.`Tags` FROM D s) `dims` LATERAL VIEW explode(tags) t AS tag",
        ),
        (
            "SELECT 'ü😀\t' AS `名`,\r\n\tid FROM facts",
            "SELECT 'ü😀\t' AS `名`,\r\n\tid FROM (SELECT s.`id` FROM F s) `facts`",
        ),
        ("FROM facts SELECT id", "FROM (SELECT s.`id` FROM F s) `facts` SELECT id"),
    ],
)
def test_tables_are_replaced(query: str, expected: str) -> None:
    assert rewritten(query) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM dims", "SELECT `dims`.`id`, `dims`.`name`, `dims`.`Tags` FROM dims"),
        ("SELECT 1 AS x, d.* FROM dims d", "SELECT 1 AS x, `d`.`id`, `d`.`name`, `d`.`Tags` FROM dims d"),
        (
            "SELECT * FROM (SELECT * FROM dims) q",
            "SELECT `q`.`id`, `q`.`name`, `q`.`tags` "
            "FROM (SELECT `dims`.`id`, `dims`.`name`, `dims`.`Tags` FROM dims) q",
        ),
        ("SELECT count(*) AS n FROM dims", "SELECT count(*) AS n FROM dims"),
        # Only whether there are rows counts: no column is read, and none of the inner ones is among the outputs.
        (
            "SELECT * FROM dims d WHERE NOT EXISTS (SELECT * FROM dims e WHERE e.id = d.id)",
            "SELECT `d`.`id`, `d`.`name`, `d`.`Tags` FROM dims d "
            "WHERE NOT EXISTS (SELECT 1 FROM dims e WHERE e.id = d.id)",
        ),
        (
            "SELECT * FROM dims WHERE id IN (SELECT id FROM dims)",
            "SELECT `dims`.`id`, `dims`.`name`, `dims`.`Tags` FROM dims WHERE id IN (SELECT id FROM dims)",
        ),
    ],
)
def test_stars_are_expanded(query: str, expected: str) -> None:
    assert expanded(query, [DIMS], current=CURRENT) == expected


def test_stars_read_the_frozen_columns() -> None:
    """A column that was added later is not read, whatever the table has by now."""
    assert rewritten("SELECT * FROM dims") == "SELECT * FROM (SELECT s.`id`, s.`name`, s.`Tags` FROM D s) `dims`"


def test_tables_in_a_query() -> None:
    query = (
        "WITH a AS (SELECT 1 AS x FROM db.b) SELECT x FROM a JOIN lake.db.c USING (x) WHERE x IN (SELECT x FROM `d e`)"
    )
    assert tables_in(query) == (("db", "b"), ("lake", "db", "c"), ("d e",))


def test_columns_that_a_snapshot_did_not_have() -> None:
    had, wanted = {"ID": "int", "v": "int"}, {"id": "int", "v": "bigint", "new": "string"}
    expected = (
        "(SELECT s.`ID` AS `id`, CAST(s.`v` AS bigint) AS `v`, CAST(NULL AS string) AS `new` FROM t VERSION AS OF 1 s)"
    )
    assert with_columns("t VERSION AS OF 1", had, wanted) == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("true", "true"),
        ("false", "false"),
        ("`a` = 1", "t.`x` = 1"),
        ("`b` = 1", "true"),
        ("`s`.`a` = 1", "true"),
        ("(`a` IN (1, 2) OR `a` IS NULL)", "(t.`x` IN (1, 2) OR t.`x` IS NULL)"),
        ("(`a` = 1 AND `b` = 'x) OR (')", "t.`x` = 1"),
        ("(`a` = 1 OR `b` = 2)", "true"),
        ("((`a` = 1 AND `b` = 1) OR (`a` = 2 AND `b` IS NULL))", "(t.`x` = 1 OR t.`x` = 2)"),
        ("`a` BETWEEN 1 AND 2", "t.`x` BETWEEN 1 AND 2"),
        ("(`a` BETWEEN 1 AND 2 AND `b` = 1)", "t.`x` BETWEEN 1 AND 2"),
        (
            "(`a` >= DATE'2026-01-01' AND `a` < DATE'2026-01-02')",
            "(t.`x` >= DATE'2026-01-01' AND t.`x` < DATE'2026-01-02')",
        ),
    ],
)
def test_predicates_on_other_columns(predicate: str, expected: str) -> None:
    assert renamed(predicate, {"a": "t.`x`"}) == expected


@pytest.mark.parametrize(
    ("query", "outputs", "argument"),
    [
        ("SELECT a, COUNT(DISTINCT b) AS n FROM t GROUP BY a", ["a", "COUNT(DISTINCT b)"], "b"),
        (
            "select a x, count( distinct f(b, c) ) n from t where x = 1 group by 1",
            ["a", "count( distinct f(b, c) )"],
            "f(b, c)",
        ),
        (
            "WITH c AS (SELECT 1 AS x FROM u) SELECT /*+ HINT(c) */ x, COUNT(DISTINCT x) FROM c",
            ["x", "COUNT(DISTINCT x)"],
            "x",
        ),
        (
            "SELECT CASE WHEN a THEN b END AS k, COUNT(DISTINCT a, b) AS n FROM t",
            ["CASE WHEN a THEN b END", "COUNT(DISTINCT a, b)"],
            None,
        ),
        ("SELECT CASE WHEN a THEN b END k, m['x'] y FROM t", ["CASE WHEN a THEN b END", "m['x']"], None),
    ],
)
def test_slices_of_a_select(query: str, outputs: list[str], argument: str | None) -> None:
    text = QueryText.of(query)
    slices = SelectSlices.of(text)
    assert slices is not None
    assert [query[span.start : span.end] for span in slices.outputs] == outputs
    found = distinct_argument(text, slices.outputs[-1])
    assert (None if found is None else query[found.start : found.end]) == argument


@pytest.mark.parametrize(
    ("query", "output", "expected"),
    [
        ("SELECT id FROM facts", "id", {"lake.db.facts.id"}),
        (
            "SELECT concat(f.day, d.name) AS x FROM facts f JOIN dims d ON d.id = f.id",
            "x",
            {"lake.db.facts.day", "lake.db.dims.name"},
        ),
        ("WITH c AS (SELECT id + 1 AS y FROM facts) SELECT max(y) AS x FROM c GROUP BY y", "x", {"lake.db.facts.id"}),
        ("SELECT id AS x FROM facts UNION ALL SELECT id FROM dims", "x", {"lake.db.facts.id", "lake.db.dims.id"}),
        ("SELECT 1 AS x FROM facts", "x", set()),
        ("SELECT t.x FROM dims LATERAL VIEW explode(tags) t AS x", "x", None),
        ("SELECT (SELECT max(name) FROM dims) AS x FROM facts", "x", None),
        ("SELECT id AS x FROM facts LIMIT 1", "x", None),
    ],
)
def test_origins_of_outputs(query: str, output: str, expected: set[str] | None) -> None:
    found = analyse(query, [FACTS, DIMS], current=CURRENT).origins(output)
    assert (None if found is None else {str(origin) for origin in found}) == expected


def test_grouping() -> None:
    assert analyse("SELECT count(*) AS n, Day FROM facts GROUP BY ALL", [FACTS], current=CURRENT).grouping == ("Day",)
    assert analyse("SELECT count(*) AS n FROM facts", [FACTS], current=CURRENT).grouping == ()
    assert analyse("SELECT id FROM facts", [FACTS], current=CURRENT).grouping is None
