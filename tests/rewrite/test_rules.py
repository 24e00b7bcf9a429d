"""Each rule that carries the correctness, broken once: random histories of a query must show it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from dalsegno.rewrite import (
    attempts,
    deduplication,
    delta,
    expressions,
    keys,
    linear,
    measures,
    partitions,
    ranges,
    reading,
    selects,
    terms,
    touching,
    writing,
)
from dalsegno.rewrite.relations import Block, Item, Join, Scan, Union
from dalsegno.rewrite.texts import QueryText
from tests.rewrite.queries import Made
from tests.rewrite.test_many_rewrites import one_history

MOST_HISTORIES = 300
Patch = pytest.MonkeyPatch


def plain_equality(patch: Patch) -> None:
    """NULL keys are compared with ``=``."""
    merge = writing.Writer.merge
    patch.setattr(writing.Writer, "merge", lambda *args: merge(*args).replace("<=> s.", "= s."))


def keys_of_new_rows_alone(patch: Patch) -> None:
    """What is gone touches no key."""
    changed = writing.Writer._changed
    patch.setattr(writing.Writer, "_changed", lambda *args: changed(*args).split(" UNION ALL ")[0])


def keys_that_windows_do_not_have(patch: Patch) -> None:
    below = keys._below
    patch.setattr(keys, "_below", lambda block, each: below(replace(block, windows=[]), each))


def keys_of_the_nullable_side(patch: Patch) -> None:
    placed = keys._placed

    def anywhere(block: Block, expression: exp.Expr) -> dict[Item, exp.Expr]:
        patched = {item: item.join for item in block.items}
        for item in block.items:
            item.join = Join.INNER if item.join is Join.LEFT else item.join
        try:
            return placed(block, expression)
        finally:
            for item, join in patched.items():
                item.join = join

    patch.setattr(keys, "_placed", anywhere)


def restrictions_taken_for_exact(patch: Patch) -> None:
    patch.setattr(touching, "_is_exact", lambda *_: True)


def one_read_of_two_restricted(patch: Patch) -> None:
    """A CTE that is read twice is restricted as its first read may be."""
    patch.setattr(touching, "_same", lambda *_: True)
    restrictions = keys.restrictions

    def first(*args: Any) -> list[tuple[Scan, Any]]:
        seen: dict[int, Any] = {}
        return [(scan, seen.setdefault(scan.occurrence, parts)) for scan, parts in restrictions(*args)]

    patch.setattr(touching, "restrictions", first)


def other_sides_of_joins_as_linear(patch: Patch) -> None:
    def items(block: Block, siblings: linear.Siblings) -> Iterator[tuple[Scan, linear.Siblings]]:
        for item in block.items:
            yield from linear._linear(item.relation, siblings)

    patch.setattr(linear, "_linear_items", items)


def distinct_rows_as_linear(patch: Patch) -> None:
    origin = linear._linear

    def every(relation: Any, siblings: linear.Siblings) -> Iterator[tuple[Scan, linear.Siblings]]:
        is_distinct = isinstance(relation, Block | Union) and relation.is_distinct
        return origin(replace(relation, is_distinct=False) if is_distinct else relation, siblings)

    patch.setattr(linear, "_linear", every)


def other_sides_of_unions_read(patch: Patch) -> None:
    origin = terms._term
    patch.setattr(
        terms,
        "_term",
        lambda w, order, pairs, scan, siblings, changed: origin(w, order, pairs, scan, frozenset(), changed),
    )


def other_tables_read_as_they_are(patch: Patch) -> None:
    """New rows of two tables are joined twice."""
    origin = terms._term

    def term(writer: Any, order: list[int], pairs: Any, scan: Scan, siblings: Any, changed: str) -> Any:
        others = [each for each in order if each != scan.occurrence]
        return origin(writer, [*others, scan.occurrence], pairs, scan, siblings, changed)

    patch.setattr(terms, "_term", term)


def ranges_of_one_table_alone(patch: Patch) -> None:
    patch.setattr(ranges, "any_of", lambda predicates: predicates[0])


def ranges_without_null(patch: Patch) -> None:
    origin = partitions.renamed
    patch.setattr(ranges, "renamed", lambda *args: re.sub(r" OR \S+ IS NULL", "", origin(*args)))


def replays_without_what_is_gone(patch: Patch) -> None:
    origin = writing.Writer._replayed

    def replayed(self: writing.Writer, scan: Scan) -> Callable[[Any], str | None]:
        inner = origin(self, scan)
        return lambda occurrence: inner(occurrence) if occurrence.number == scan.occurrence else None

    patch.setattr(writing.Writer, "_replayed", replayed)


def deltas_that_take_nothing_away(patch: Patch) -> None:
    origin = measures.Measure.signed
    patch.setattr(measures.Measure, "signed", lambda self, alias, is_removed: origin(self, alias, is_removed=False))


def deltas_of_hidden_groups(patch: Patch) -> None:
    def grouped(analysis: Any) -> Block:
        block = analysis.root
        if not isinstance(block, Block) or block.groups is None or block.windows or block.is_distinct:
            raise delta._unproven("", "")
        return block

    patch.setattr(delta, "_grouped", grouped)


def smallest_values_of_what_is_left(patch: Patch) -> None:
    """MIN and MAX are brought up to date after deletes."""
    origin = measures.measures_of

    def found(*args: Any, removes: bool) -> Any:
        made, rows = origin(*args, removes=False)
        if removes and (rows is None or any(m.kind in ("distinct", "sum") for m in made)):
            return origin(*args, removes=True)
        return made, rows

    patch.setattr(delta, "measures_of", found)


def sums_that_stay_zero(patch: Patch) -> None:
    origin = measures.Measure.value
    patch.setattr(measures.Measure, "value", lambda self, removes, total: origin(self, removes=False, total=total))


def groups_that_stay_empty(patch: Patch) -> None:
    origin = delta._delta
    patch.setattr(delta, "_delta", lambda *args, removes: replace(origin(*args, removes=removes), rows=None))


def values_that_are_always_new(patch: Patch) -> None:
    origin = delta.Delta._new_values
    patch.setattr(
        delta.Delta,
        "_new_values",
        lambda *args: origin(*args).replace("n._dalsegno_value = b.", "false AND n._dalsegno_value = b."),
    )


def keys_that_are_always_new(patch: Patch) -> None:
    patch.setattr(deduplication.Deduplication, "probe", lambda *_: "SELECT 1 WHERE false")


def keys_that_the_target_does_not_show(patch: Patch) -> None:
    """A key that the source had, but whose row was left out, is taken for new."""
    origin = deduplication._numbered
    patch.setattr(deduplication, "_numbered", lambda *args: (origin(*args)[0], True))


def joins_that_are_always_new(patch: Patch) -> None:
    patch.setattr(attempts, "probe", lambda *_: "SELECT 1 WHERE false")


def null_safe_joins_of_missing_rows(patch: Patch) -> None:
    origin = selects._equal
    patch.setattr(selects, "_equal", lambda condition: ((one, other, False) for one, other, _ in origin(condition)))


def not_in_as_a_join(patch: Patch) -> None:
    origin = expressions.conjuncts
    patch.setattr(
        reading, "conjuncts", lambda each: (part.this if isinstance(part, exp.Not) else part for part in origin(each))
    )


def partitions_of_one_table_of_several(patch: Patch) -> None:
    origin = partitions.PassedPartitions.predicate

    def predicate(self: partitions.PassedPartitions, filters: Any, column: Any) -> str:
        name, columns = next(iter(self.columns.items()))
        return origin(replace(self, columns={name: columns}), filters, column)

    patch.setattr(partitions.PassedPartitions, "predicate", predicate)


def by_kind(measures: str, more: str = "") -> str:
    return f"SELECT kind, {measures} FROM facts GROUP BY kind{more}"


NUMBERED = "SELECT id, v, row_number() OVER (PARTITION BY id ORDER BY v, d, q, kind) AS n FROM facts"
OUTER = "SELECT f.id, o.tag FROM facts f LEFT JOIN others o ON f.id = o.id"
JOINED = "SELECT f.kind, o.tag FROM facts f JOIN others o ON f.id = o.id"
TWICE = "WITH c AS (SELECT id, dim, v FROM facts) SELECT a.id, a.v FROM c a JOIN c b ON a.id = b.dim"
MISSING = "SELECT f.id, d.name FROM facts f LEFT JOIN others n ON f.id = n.id JOIN dims d ON n.dim <=> d.dim"

#: How a rule is broken, and a query that needs it.
RULES: Mapping[Callable[[Patch], None], str] = {
    plain_equality: by_kind("count(*) AS n"),
    keys_of_new_rows_alone: by_kind("count(*) AS n"),
    ranges_of_one_table_alone: "SELECT id, count(*) AS n FROM (SELECT id FROM facts UNION ALL SELECT id FROM others) "
    "GROUP BY id",
    ranges_without_null: "SELECT id, max(v) AS n FROM facts GROUP BY id",
    keys_that_windows_do_not_have: "SELECT id, sum(v) OVER (PARTITION BY kind) AS n FROM facts",
    keys_of_the_nullable_side: OUTER,
    restrictions_taken_for_exact: "SELECT concat(f.kind, o.tag) AS kind FROM facts f JOIN others o ON f.id < o.id",
    one_read_of_two_restricted: TWICE,
    other_sides_of_joins_as_linear: OUTER,
    distinct_rows_as_linear: "SELECT DISTINCT kind FROM facts",
    other_sides_of_unions_read: "SELECT id FROM facts UNION ALL SELECT id FROM others",
    other_tables_read_as_they_are: JOINED,
    replays_without_what_is_gone: "SELECT concat(f.kind, o.tag) AS kind FROM facts f JOIN others o ON f.id < o.id",
    deltas_that_take_nothing_away: by_kind("count(*) AS n"),
    deltas_of_hidden_groups: by_kind("count(*) AS n", " HAVING count(*) > 1"),
    smallest_values_of_what_is_left: by_kind("min(v) AS v, count(*) AS n"),
    sums_that_stay_zero: by_kind("sum(v) AS n, count(v) AS w, count(*) AS rows"),
    groups_that_stay_empty: by_kind("count(*) AS n"),
    values_that_are_always_new: by_kind("count(DISTINCT v) AS n"),
    keys_that_are_always_new: f"SELECT id, v FROM ({NUMBERED}) WHERE n = 1",
    keys_that_the_target_does_not_show: f"SELECT id, v FROM ({NUMBERED}) WHERE n = 1 AND v > 1",
    joins_that_are_always_new: JOINED,
    null_safe_joins_of_missing_rows: MISSING,
    not_in_as_a_join: "SELECT id, kind FROM facts WHERE kind NOT IN (SELECT name FROM dims)",
    partitions_of_one_table_of_several: "SELECT day, id FROM facts UNION ALL SELECT day, id FROM others",
}
KINDS = {"id": "int", "v": "int", "kind": "string", "tag": "string", "name": "string", "day": "date"}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute("ATTACH ':memory:' AS lake")
        made.execute("SET threads = 1")
        yield made


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_broken_rule_is_found(
    rule: Callable[[Patch], None], connection: duckdb.DuckDBPyConnection, monkeypatch: Patch
) -> None:
    query = re.sub(r"\b(facts|others|dims)\b", r"lake.main.\1", RULES[rule])
    names = QueryText.of(query).parsed().named_selects
    columns = {name: KINDS.get(name, "bigint") for name in names}
    made = Made(query, columns, frozenset())
    for seed in range(10):
        one_history(connection, seed, made)
    rule(monkeypatch)
    for seed in range(MOST_HISTORIES):
        try:
            one_history(connection, seed, made)
        except AssertionError:
            return
    pytest.fail(f"{MOST_HISTORIES} histories do not show that {rule.__name__}")
