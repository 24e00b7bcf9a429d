"""Facts that authors state: how they are written, what follows from them, and how they are checked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dalsegno.errors import UserError
from dalsegno.rewrite import Change, Changed, PartitionField, Reading, Strategy, StrategyName, Table, analyse
from dalsegno.rewrite.checks import checks_for
from dalsegno.rewrite.facts import Fact, FactKind, closure, fact_of
from dalsegno.rewrite.stated import stated_facts, with_facts
from dalsegno.rewrite.strategies import strategies_for

EVENTS = Table(
    ("lake", "db", "events"),
    {"id": "string", "day": "date", "at": "bigint", "v": "int", "x": "double", "kind": "string"},
    (PartitionField("day"),),
)
KINDS = Table(("lake", "db", "kinds"), {"kind": "string", "name": "string"})
TARGET = Table(("lake", "db", "firsts"), {"id": "string", "day": "date", "v": "int"}, (PartitionField("day"),))
NUMBERED = "SELECT *, row_number() OVER (PARTITION BY id ORDER BY at) AS n FROM events"
FIRST = f"SELECT id, day, v FROM ({NUMBERED}) WHERE n = 1"
CHANGE = Change("AFTER", "ADDED", None, "BEFORE", "`day` IN (1)", "`day` IN (2)", partitioned_by=frozenset({"day"}))


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("id -> day", Fact(FactKind.DETERMINES, ("id",), ("day",))),
        ("id,`in`->  day , `a``b c`", Fact(FactKind.DETERMINES, ("id", "in"), ("day", "a`b c"))),
        ("unique id in lake.db.events", Fact(FactKind.UNIQUE, ("id",), (), ("lake", "db", "events"))),
        ("UNIQUE größe, v", Fact(FactKind.UNIQUE, ("größe", "v"))),
        ("no ties", Fact(FactKind.NO_TIES)),
        ("trusted no ties", Fact(FactKind.NO_TIES, is_trusted=True)),
        ("trusted: id -> day in events", Fact(FactKind.DETERMINES, ("id",), ("day",), ("events",), True)),
        ("`unique` -> `trusted`", Fact(FactKind.DETERMINES, ("unique",), ("trusted",))),
    ],
)
def test_facts_are_written(text: str, fact: Fact) -> None:
    assert fact_of(text) == fact
    assert fact_of(str(fact)) == fact


@pytest.mark.parametrize(
    "text",
    [
        "",
        "id",
        "id ->",
        "-> day",
        "unique",
        "unique id day",
        "id -> day -> v",
        "no",
        "id - > day in",
        "trusted",
        "a.b -> c",
    ],
)
def test_what_is_not_a_fact(text: str) -> None:
    with pytest.raises(UserError, match="is not understood"):
        fact_of(text)


def test_facts_find_their_source() -> None:
    [found] = stated_facts(["ID -> Day"], [EVENTS, KINDS])
    assert (found.table, found.columns, found.determined) == (EVENTS.name, ("id",), ("day",))
    with pytest.raises(
        UserError,
        match=r"must be about one source that has all of its columns, found lake\.db\.events, lake\.db\.kinds",
    ):
        stated_facts(["unique kind"], [EVENTS, KINDS])
    assert stated_facts(["unique kind in db.kinds"], [EVENTS, KINDS])[0].table == KINDS.name
    with pytest.raises(UserError, match="found none"):
        stated_facts(["id -> name"], [EVENTS, KINDS])
    with pytest.raises(UserError, match="a table that the query does not read"):
        stated_facts(["unique kind in db.kind"], [EVENTS, KINDS])


def test_facts_follow_from_each_other() -> None:
    facts = [fact_of("a -> b"), fact_of("b, c -> d"), fact_of("unique d")]
    assert closure(["A"], facts, ["a", "b", "c", "d", "e"]) == {"a", "b"}
    assert closure(["a", "c"], facts, ["a", "b", "c", "d", "e"]) == {"a", "b", "c", "d", "e"}


def offered(query: str, *facts: str, target: Table = TARGET, kind: Changed = Changed.ANY) -> dict[str, Strategy]:
    tables = with_facts([EVENTS, KINDS], stated_facts(facts, [EVENTS, KINDS]))
    analysis = analyse(query, tables, current=("lake", "db"), kinds=target.columns)
    return {each.name.value: each for each in strategies_for(analysis, target, {EVENTS.name: kind})}


def test_a_dependency_leads_through_a_window() -> None:
    assert not offered(FIRST)["touched partitions"].is_possible
    found = offered(FIRST, "id -> day")["touched partitions"]
    assert found.is_possible and str(found.facts[0]) == "id -> day in lake.db.events"
    [statement] = found.statements(Reading({EVENTS.name: CHANGE}))
    # Spark does not push the filter through the window by itself.
    assert "FROM AFTER s WHERE s.`day` IN (1)" in statement
    assert offered(FIRST, "unique id")["touched partitions"].is_possible
    # Neither the other way around, nor of another column.
    assert not offered(FIRST, "day -> id")["touched partitions"].is_possible
    assert not offered(FIRST, "id -> kind")["touched partitions"].is_possible


def test_a_fact_that_is_not_needed_is_not_named() -> None:
    query = FIRST.replace("PARTITION BY id", "PARTITION BY id, day")
    assert all(fact.kind is FactKind.NO_TIES for fact in offered(query, "id -> day")["touched partitions"].facts)


@pytest.mark.parametrize(
    "query",
    [
        # The sides of a union may differ.
        FIRST.replace("FROM events", "FROM (SELECT * FROM events UNION ALL SELECT * FROM events)"),
        # A missing row and one of NULLs look alike.
        "SELECT id, day, v FROM (SELECT e.*, row_number() OVER (PARTITION BY e.id ORDER BY e.at) AS n "
        "FROM kinds k LEFT JOIN events e ON e.kind = k.kind) WHERE n = 1",
        # How often a column is there is not determined by what determines the column.
        "SELECT id, day, v FROM (SELECT id, d AS day, v, row_number() OVER (PARTITION BY id ORDER BY v) AS n FROM "
        "(SELECT id, v, date(timestamp_seconds(count(day))) AS d FROM events GROUP BY id, v)) WHERE n = 1",
    ],
)  # fmt: skip
def test_where_a_dependency_does_not_lead(query: str) -> None:
    assert not offered(query, "id -> day")["touched partitions"].is_possible


def test_new_keys_are_looked_for_in_their_partitions() -> None:
    strategy = offered(FIRST, "id -> day", kind=Changed.APPENDED)[StrategyName.NEW_KEYS.value]
    assert strategy.key == ("id", "day")
    reading = Reading({EVENTS.name: CHANGE})
    assert all("t.`day` IN (2)" in sql for sql in (strategy.probe(reading) or "", strategy.statements(reading)[0]))
    assert "t.`day`" not in offered(FIRST, kind=Changed.APPENDED)["append new keys"].statements(reading)[0]


# Checks.


def checked(query: str, *texts: str, change: Change = CHANGE, known: bool = True, target: Table = TARGET) -> list[str]:
    facts = stated_facts(texts, [EVENTS, KINDS])
    analysis = analyse(query, with_facts([EVENTS, KINDS], facts), current=("lake", "db"))
    found = checks_for(analysis, target, facts, Reading({EVENTS.name: change}), known=frozenset(facts if known else ()))
    return [each.sql for each in found]


def test_where_a_violation_is_looked_for() -> None:
    # The target has each key once.
    [sql] = checked(FIRST, "id -> day")
    assert "FROM ADDED UNION ALL SELECT t.`id` AS `id`, t.`day` AS `day` FROM `lake`.`db`.`firsts` t" in sql
    assert "AFTER" not in sql
    # It says nothing of rows that were there, and are gone.
    [sql] = checked(FIRST, "id -> day", change=replace(CHANGE, removed="REMOVED"))
    assert "FROM AFTER s LEFT SEMI JOIN (SELECT DISTINCT `id` FROM ADDED) k ON s.`id` <=> k.`id`" in sql
    # It does not have rows that the query leaves out.
    [sql] = checked(FIRST.replace("FROM events", "FROM events WHERE v > 1"), "id -> day")
    assert "FROM AFTER s LEFT SEMI JOIN" in sql
    # Nobody has checked it before.
    [sql] = checked(FIRST, "id -> day", known=False)
    assert "FROM AFTER s) GROUP BY `id`" in sql
    assert checked(FIRST, "trusted id -> day", known=False) == []
    # No row of it changed.
    assert checked(FIRST, "unique name") == []


@pytest.mark.parametrize(("query", "words"), [(FIRST, " WHERE `_dalsegno_place` = 1"), (NUMBERED, "")])
def test_ties_matter_where_they_are_taken(query: str, words: str) -> None:
    target = Table(TARGET.name, {**EVENTS.columns, "n": "int"}) if query is NUMBERED else TARGET
    [sql] = checked(query, "no ties", change=replace(CHANGE, removed="REMOVED"), target=target)
    assert ("`_dalsegno_place` = 1" in sql) == bool(words)
    # A row that went may have hidden a tie.
    assert "FROM ADDED s UNION SELECT" in sql and "FROM REMOVED s" in sql
    assert "rank() OVER (PARTITION BY s.`id` ORDER BY s.`at` ASC NULLS FIRST)" in sql


def test_a_unique_order_has_no_ties() -> None:
    assert len(checked(FIRST, "no ties", "unique at")) == 1
    assert len(checked(FIRST, "no ties", "unique v")) == 2


@pytest.mark.parametrize(
    ("where", "written"),
    [
        ("v > 1 AND id IS NOT NULL", "(s.`v` > 1) AND (NOT (s.`id` IS NULL))"),
        ("kind = 'play' OR NOT v <> -1", None),
        ("kind = 'play' OR v <= 2.5", "(s.`kind` = 'play') OR (s.`v` <= 2.5)"),
        (r"kind = 'it\'s'", None),
        ("my_udf(v)", None),
    ],
)
def test_ties_behind_a_filter(where: str, written: str | None) -> None:
    query = FIRST.replace("FROM events", f"FROM events WHERE {where}")
    if written is None:
        with pytest.raises(UserError, match="'no ties' cannot be checked"):
            checked(query, "no ties")
    else:
        [sql] = checked(query, "no ties")
        assert f" WHERE ({written})" in sql


def test_what_cannot_be_checked() -> None:
    with pytest.raises(UserError, match="cannot be checked: x has the type double"):
        checked(FIRST, "id -> x")
    assert checked(FIRST, "trusted id -> x") == []
    joined = (
        "SELECT id, day, v FROM (SELECT e.*, row_number() OVER (PARTITION BY id ORDER BY at) AS n FROM events e "
        "JOIN kinds k ON e.kind = k.kind) WHERE n = 1"
    )
    with pytest.raises(UserError, match="'no ties' cannot be checked"):
        checked(joined, "no ties")
    named = (
        "SELECT id, day, v FROM (SELECT *, row_number() OVER w AS n FROM events WINDOW w AS (PARTITION BY id "
        "ORDER BY at)) WHERE n = 1"
    )
    with pytest.raises(UserError, match="'no ties' cannot be checked"):
        checked(named, "no ties")
