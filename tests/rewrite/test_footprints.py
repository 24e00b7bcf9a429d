"""What a strategy reads and writes, as its own statements say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dalsegno.rewrite.analysis import analyse
from dalsegno.rewrite.footprints import Footprint, Near, Part, Read, Scope, Write, footprint, joins_of, marked
from dalsegno.rewrite.strategies import strategies_for
from dalsegno.rewrite.strategy import Changed, StrategyName
from dalsegno.rewrite.tables import Change, PartitionField, Reading, Table

PLAYS, TITLES, TARGET = ("lake", "db", "plays"), ("lake", "db", "titles"), ("lake", "db", "target")
TABLES = [
    Table(
        PLAYS,
        {"id": "bigint", "title": "bigint", "profile": "bigint", "day": "date", "seconds": "bigint"},
        (PartitionField("day"),),
    ),
    Table(TITLES, {"title": "bigint", "name": "string"}),
]
TOUCHED = "(`day` = DATE'2026-01-01' OR `day` IS NULL)"
DAILY = "SELECT day, count(seconds) AS seconds, count(*) AS n FROM lake.db.plays GROUP BY day"
VIEWERS = "SELECT day, count(DISTINCT profile) AS viewers, count(*) AS n FROM lake.db.plays GROUP BY day"
NAMED = (
    "SELECT p.id, p.day, t.name /* ) */ FROM lake.db.plays p JOIN lake.db.titles t ON p.title = t.title WHERE p.id > 1"
)
LATEST = """SELECT id, day, seconds FROM (
  SELECT *, row_number() OVER (PARTITION BY id, day ORDER BY seconds) AS n FROM lake.db.plays) WHERE n = 1"""


def found(
    query: str, name: StrategyName, kind: Changed, *, partitioned: bool = True, reopened: str | None = None
) -> Footprint:
    analysis = analyse(query, TABLES, current=("lake", "db"))
    columns = {output: analysis.kind(output) or "bigint" for output in analysis.outputs}
    target = Table(TARGET, columns, (PartitionField("day"),) if partitioned else ())
    analysis = analyse(query, TABLES, current=("lake", "db"), kinds=columns)
    is_any = kind is Changed.ANY
    change = Change("a", "b", "c" if is_any else None, "d", TOUCHED, reopened, "e" if is_any else None)
    change = replace(change, partitioned_by=frozenset({"day"}))
    [strategy] = [each for each in strategies_for(analysis, target, {PLAYS: kind}) if each.name is name]
    assert strategy.is_possible, strategy.why
    reading, sources = marked(Reading({PLAYS: change}), [PLAYS, TITLES])
    return footprint(strategy, target, reading, sources)


def plays(part: Part, scope: Scope = Scope.EVERYTHING) -> Read:
    return Read(PLAYS, part, scope)


def target(scope: Scope) -> Read:
    return Read(None, Part.AFTER, scope)


ALL_TITLES = Read(TITLES, Part.AFTER, Scope.EVERYTHING)


@pytest.mark.parametrize("kind", Changed)
def test_full_reads_and_writes_everything(kind: Changed) -> None:
    seen = found(NAMED, StrategyName.FULL, kind)
    assert seen.reads == {plays(Part.AFTER): 1, ALL_TITLES: 1}
    assert (seen.write, seen.written, seen.probe) == (Write.REPLACE, Scope.EVERYTHING, {})


def test_append_reads_what_was_added() -> None:
    seen = found(NAMED, StrategyName.APPEND, Changed.APPENDED)
    assert seen.reads == {plays(Part.ADDED): 1, ALL_TITLES: 1}
    assert seen.write is Write.APPEND


def test_touched_partitions_are_read_and_replaced() -> None:
    seen = found(DAILY, StrategyName.PARTITIONS, Changed.ANY)
    assert seen.reads == {plays(Part.AFTER, Scope.TOUCHED): 1}
    assert (seen.write, seen.written) == (Write.REPLACE, Scope.TOUCHED)


def test_a_delta_adds_what_changed_to_the_target() -> None:
    seen = found(DAILY, StrategyName.DELTA, Changed.ANY)
    assert seen.reads == {plays(Part.ADDED): 1, plays(Part.REMOVED): 1, target(Scope.TOUCHED): 1}
    assert (seen.write, seen.written) == (Write.REPLACE, Scope.TOUCHED)
    seen = found(DAILY, StrategyName.DELTA, Changed.APPENDED, partitioned=False)
    assert seen.reads == {plays(Part.ADDED): 1, target(Scope.TOUCHED): 1}
    assert seen.write is Write.MERGE


def test_distinct_counts_look_into_what_was_there() -> None:
    seen = found(VIEWERS, StrategyName.DELTA, Changed.APPENDED, reopened="`day` = DATE'2026-01-01'")
    assert seen.reads[plays(Part.BEFORE, Scope.REOPENED)] == 1
    assert plays(Part.BEFORE) not in seen.reads


def test_touched_keys_merge_within_partitions() -> None:
    seen = found(DAILY, StrategyName.KEYS, Changed.ANY)
    # Both images of changed rows are in one relation.
    assert seen.reads == {plays(Part.CHANGED): 1, plays(Part.AFTER, Scope.TOUCHED): 1, target(Scope.TOUCHED): 1}
    assert (seen.write, seen.written) == (Write.MERGE, Scope.TOUCHED)


def test_new_keys_are_looked_for_in_the_target() -> None:
    seen = found(LATEST, StrategyName.NEW_KEYS, Changed.APPENDED, reopened="false")
    assert seen.reads[target(Scope.REOPENED)] == 1
    assert seen.write is Write.APPEND
    assert target(Scope.REOPENED) in seen.probe


def test_a_filter_on_nothing_known_limits_nothing() -> None:
    analysis = analyse(DAILY, TABLES, current=("lake", "db"))
    into = Table(TARGET, {"day": "date", "seconds": "bigint", "n": "bigint"}, (PartitionField("day"),))
    analysis = analyse(DAILY, TABLES, current=("lake", "db"), kinds=into.columns)
    change = Change("a", "b", None, "d", "true", "true")
    reading, sources = marked(Reading({PLAYS: change}), [PLAYS, TITLES])
    for each in strategies_for(analysis, into, {PLAYS: Changed.APPENDED}):
        if each.is_possible:
            seen = footprint(each, into, reading, sources)
            assert {read.scope for read in seen.reads} == {Scope.EVERYTHING}
            assert seen.written is Scope.EVERYTHING


def test_ranges_of_changed_keys_limit_what_is_read() -> None:
    query = """SELECT p.title, t.name, count(p.seconds) AS seconds, count(*) AS n
      FROM lake.db.plays p JOIN lake.db.titles t ON p.title = t.title GROUP BY p.title, t.name"""
    columns = {"title": "bigint", "name": "string", "seconds": "bigint", "n": "bigint"}
    analysis, into = analyse(query, TABLES, current=("lake", "db"), kinds=columns), Table(TARGET, columns)
    change = Change("a", "b", None, "d", "true", None, None, {"title": "`title` BETWEEN 3 AND 5", "id": "true"})
    reading, sources = marked(Reading({PLAYS: change}), [PLAYS, TITLES])
    found = {
        each.name: footprint(each, into, reading, sources, joins_of(analysis))
        for each in strategies_for(analysis, into, {PLAYS: Changed.APPENDED})
        if each.is_possible
    }
    near = frozenset({Near("title", PLAYS, "title")})
    # Spark finds by itself what follows for the table that new rows are joined with.
    assert found[StrategyName.DELTA].reads[Read(TITLES, Part.AFTER, Scope.EVERYTHING, near)] == 1
    keys = found[StrategyName.KEYS].reads
    assert {read.near for read in keys if read.part is Part.AFTER and read.table is not None} == {near}
    assert {read.near for read in found[StrategyName.FULL].reads} == {frozenset()}
