"""Views in a query, and the table that a query is about."""

from __future__ import annotations

import pytest

from dalsegno.errors import UserError
from dalsegno.rewrite.leading import leading_table
from dalsegno.rewrite.tables import Name
from dalsegno.rewrite.views import View, without_views


def _view(name: str, sql: str, *columns: str, query_columns: tuple[str, ...] = (), current: str = "lake.db") -> View:
    return View(tuple(name.split(".")), sql, tuple(current.split(".")), columns, query_columns)


VIEWS = {
    view.name: view
    for view in (
        _view("lake.db.plain", "SELECT a, b FROM t -- the end", "a", "b"),
        _view("lake.db.named", "SELECT count(*), max(u.b) FROM u", "n", "m"),
        _view("lake.db.star", "SELECT * FROM t", "a", "b", query_columns=("a", "b")),
        _view("lake.db.hard_star", "SELECT DISTINCT * FROM t", "x", "y", query_columns=("a", "b")),
        _view("lake.db.nested", "WITH t AS (SELECT 1 AS one) SELECT p.a FROM plain p JOIN t", "a"),
        _view("lake.db.elsewhere", "SELECT x FROM t JOIN other.u JOIN cold.db.v", "x", current="cold.far"),
        _view("lake.db.itself", "SELECT a FROM round", "a"),
        _view("lake.db.round", "SELECT a FROM itself", "a"),
    )
}


def _resolve(name: Name, current: Name) -> Name:
    is_full = len(name) > 2 and name[0] in ("lake", "cold")
    return name if is_full else (current[0], *(name if len(name) > 1 else (*current[1:], *name)))


def expanded(query: str) -> str:
    return without_views(query, ("lake", "db"), _resolve, VIEWS.get)


@pytest.mark.parametrize(
    ("query", "result"),
    [
        ("SELECT a FROM t /* plain */", "SELECT a FROM t"),
        ("SELECT a FROM plain", "SELECT a FROM (SELECT a, b FROM `lake`.`db`.`t`) `plain`"),
        ("SELECT p.a FROM lake.db.plain AS p", "SELECT p.a FROM (SELECT a, b FROM `lake`.`db`.`t`) AS p"),
        (
            "SELECT lake.db.plain.a, db.plain.b FROM db.plain",
            "SELECT plain.a, plain.b FROM (SELECT a, b FROM `lake`.`db`.`t`) `plain`",
        ),
        (
            "SELECT n FROM named",
            "SELECT n FROM (SELECT `n`, `m` FROM (SELECT count(*), max(u.b) FROM `lake`.`db`.`u`) AS `v`(`n`, `m`)) "
            "`named`",
        ),
        # Columns that the table got later are not the view's.
        ("SELECT a FROM star", "SELECT a FROM (SELECT `a`, `b` FROM `lake`.`db`.`t`) `star`"),
        (
            "SELECT x FROM hard_star",
            "SELECT x FROM (SELECT `a` AS `x`, `b` AS `y` FROM (SELECT DISTINCT * FROM `lake`.`db`.`t`)) `hard_star`",
        ),
        # The CTE of a view is its own; so is that of the query.
        (
            "WITH u AS (SELECT 1) SELECT a FROM nested",
            "WITH u AS (SELECT 1) SELECT a FROM (WITH t AS (SELECT 1 AS one) SELECT p.a FROM "
            "(SELECT a, b FROM `lake`.`db`.`t`) p JOIN t) `nested`",
        ),
        ("WITH plain AS (SELECT 1 AS a) SELECT a FROM plain", "WITH plain AS (SELECT 1 AS a) SELECT a FROM plain"),
        (
            "SELECT x FROM elsewhere",
            "SELECT x FROM (SELECT x FROM `cold`.`far`.`t` JOIN `cold`.`other`.`u` JOIN `cold`.`db`.`v`) `elsewhere`",
        ),
    ],
)  # fmt: skip
def test_views_are_expanded(query: str, result: str) -> None:
    assert expanded(query) == result


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT a FROM itself", "The view lake.db.itself reads itself"),
        ("SELECT a FROM plain VERSION AS OF 5", "reads the view lake.db.plain .* with VERSION"),
        ("SELECT a FROM plain TABLESAMPLE (5 ROWS)", "with SAMPLE"),
    ],
)
def test_views_that_are_refused(query: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        expanded(query)


@pytest.mark.parametrize(
    ("query", "leading"),
    [
        ("SELECT a FROM facts f JOIN dims d ON f.a = d.a", "facts"),
        ("SELECT a FROM (SELECT * FROM lake.db.facts) JOIN dims", "lake.db.facts"),
        ("WITH f AS (SELECT * FROM facts JOIN x), g AS (SELECT * FROM f) SELECT * FROM g JOIN dims", "facts"),
        ("WITH facts AS (SELECT * FROM facts) SELECT * FROM facts", "facts"),
        ("SELECT a FROM facts UNION ALL SELECT a FROM facts JOIN dims", "facts"),
        ("SELECT a FROM facts UNION ALL SELECT a FROM others", None),
        ("SELECT a FROM VALUES (1) AS v(a) JOIN facts", None),
        ("SELECT 1", None),
        ("SELECT a FROM range(5) JOIN facts", None),
    ],
)
def test_the_leading_table(query: str, leading: str | None) -> None:
    assert leading_table(query) == (None if leading is None else tuple(leading.split(".")))
