"""Queries that find rows for which a fact does not hold. They return the offending keys, at most ten.

A fact held before the run, so a violation has at least one new row. It is looked for among the new rows, and where
the other rows with the same key are: in the target, if that has each key of the source once, or else in the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sqlglot import exp

from dalsegno.errors import UserError
from dalsegno.rewrite.analysis import Analysis
from dalsegno.rewrite.deduplication import deduplication_of, is_first_taken
from dalsegno.rewrite.dependencies import determined
from dalsegno.rewrite.expressions import condition_sql, sql_of
from dalsegno.rewrite.facts import Fact, FactKind
from dalsegno.rewrite.keys import NotProven
from dalsegno.rewrite.relations import Block, Scan
from dalsegno.rewrite.tables import Change, Name, Reading, Table, is_exact, quoted, quoted_list

MOST_KEYS = 10


@dataclass(frozen=True)
class Check:
    """A query that returns the keys for which a fact does not hold."""

    fact: Fact
    sql: str
    #: The tables of which it reads all rows, in these columns alone.
    reads: tuple[tuple[Name, tuple[str, ...]], ...]


def checks_for(
    analysis: Analysis, target: Table, facts: Sequence[Fact], reading: Reading, *, known: frozenset[Fact] = frozenset()
) -> list[Check]:
    """What to ask before anything is written.

    ``known``: the facts that held when the target was last written. Others are looked for in all rows.
    """
    tables = {table.name: table for table in (each.table for each in analysis.occurrences)}
    found: list[Check] = []
    for fact in facts:
        if fact.is_trusted:
            continue
        is_known = fact in known
        if fact.kind is FactKind.NO_TIES:
            found += _ties(analysis, fact, reading, is_known=is_known)
        elif fact.table is not None and (not is_known or fact.table in reading.changes):
            found.append(_check(analysis, target, fact, tables[fact.table], reading, is_known=is_known))
    return found


def _check(analysis: Analysis, target: Table, fact: Fact, table: Table, reading: Reading, *, is_known: bool) -> Check:
    for column in (*fact.columns, *fact.determined):
        if not is_exact(table.type_of(column)):
            raise UserError(
                f"The fact {str(fact)!r} cannot be checked: {column} has the type {table.type_of(column)}.",
                hint=f"If you are sure of it, write: trusted {fact}",
            )
    change = reading.changes.get(table.name)
    columns = (*fact.columns, *fact.determined)
    state = change.after if change else reading.others.get(table.name, quoted(*table.name))
    rows, reads = f"SELECT {quoted_list(columns, 's.')} FROM {state} s", ((table.name, columns),)
    if is_known and change is not None:
        touched = f"(SELECT DISTINCT {quoted_list(fact.columns)} FROM {change.added})"
        kept = f"LEFT SEMI JOIN {touched} k ON {_same('s', 'k', fact.columns, fact.columns)}"
        rows = f"{rows} {kept}"
        if (outputs := _witness(analysis, target, fact, table, change)) is not None:
            named = ", ".join(f"t.{quoted(out)} AS {quoted(own)}" for out, own in zip(outputs, columns, strict=True))
            on = _same("t", "k", outputs[: len(fact.columns)], fact.columns)
            rows = (
                f"SELECT {quoted_list(columns)} FROM {change.added} UNION ALL "
                f"SELECT {named} FROM {quoted(*target.name)} t LEFT SEMI JOIN {touched} k ON {on}"
            )
            reads = ((target.name, outputs),)
    keys = quoted_list(fact.columns)
    wrong = "count(*) > 1" if fact.kind is FactKind.UNIQUE else " OR ".join(map(_varies, fact.determined))
    sql = f"SELECT {keys} FROM ({rows}) GROUP BY {keys} HAVING {wrong} LIMIT {MOST_KEYS}"
    return Check(fact, sql, reads)


def _varies(column: str) -> str:
    """Whether a column has several values, NULL being one of them."""
    name = quoted(column)
    return f"min({name}) <> max({name}) OR (count({name}) > 0 AND count({name}) < count(*))"


def _witness(analysis: Analysis, target: Table, fact: Fact, table: Table, change: Change) -> tuple[str, ...] | None:
    """The target's columns that have the fact's, if it has a row of every key that the source had; None if not so."""
    if fact.kind is not FactKind.DETERMINES or change.removed is not None:
        return None
    scans = analysis.scans([table.name])
    with suppress(NotProven):
        found = deduplication_of(analysis, target, scans)
        key = {part.name for part in found.source_key[: found.key_size] if isinstance(part, exp.Column)}
        if (
            not (found.is_total and found.is_whole)
            or len(key) < found.key_size
            or key != {each.lower() for each in fact.columns}
        ):
            return None
        outputs = []
        for column in (*fact.columns, *fact.determined):
            output = next((name for name in analysis.outputs if _is_column(analysis, name, table, column)), None)
            if output is None or target.type_of(output) != table.type_of(column):
                return None
            outputs.append(target.by_lower_name[output.lower()])
        return tuple(outputs)
    return None


def _is_column(analysis: Analysis, output: str, table: Table, column: str) -> bool:
    """Whether an output is a column of a table, unchanged."""
    at, name = analysis.root, output.lower()
    while isinstance(at, Block):
        part = at.outputs[name]
        if not isinstance(part, exp.Column):
            return False
        item = next(item for item in at.items if part.table == f"#{item.number}")
        at, name = item.relation, part.name
    return isinstance(at, Scan) and at.table.name == table.name and name == column.lower()


def _same(one: str, other: str, names: Sequence[str], others: Sequence[str]) -> str:
    pairs = zip(names, others, strict=True)
    return " AND ".join(f"{one}.{quoted(name)} <=> {other}.{quoted(as_other)}" for name, as_other in pairs)


# Ties.


def _ties(analysis: Analysis, fact: Fact, reading: Reading, *, is_known: bool) -> Iterator[Check]:
    for block, window in analysis.ordered_windows:
        if _is_unique(block, window):
            continue
        scan = block.items[0].relation if len(block.items) == 1 else None
        partition = [sql_of(part, "s.") for part in window.args.get("partition_by") or ()]
        order = [_ordered(part) for part in (window.args["order"].expressions if window.args.get("order") else ())]
        condition = "" if block.condition is None else condition_sql(block.condition, "s.", analysis.text.text)
        if not isinstance(scan, Scan) or condition is None or None in (*partition, *order) or not order:
            raise UserError(
                "The fact 'no ties' cannot be checked: a window function orders rows of several tables, or by an "
                "expression, or behind a filter that is not simple.",
                hint="Number the rows of one table by its columns, and filter and join later; "
                "or write: trusted no ties",
            )
        if is_known and scan.table.name not in reading.changes:
            continue
        ranking = _Ranking(scan, [*filter(None, partition)], [*filter(None, order)], condition)
        yield _tie(analysis, fact, ranking, reading, is_known=is_known)


@dataclass(frozen=True)
class _Ranking:
    """The rows of one read, in the order that a window function looks at them."""

    scan: Scan
    partition: Sequence[str]
    order: Sequence[str]
    condition: str


def _tie(analysis: Analysis, fact: Fact, ranking: _Ranking, reading: Reading, *, is_known: bool) -> Check:
    """Different rows that stand at one place; equal ones do no harm."""
    scan, partition = ranking.scan, ranking.partition
    table, columns = scan.table, analysis.occurrences[scan.occurrence].columns
    change = reading.changes.get(table.name)
    state = change.after if change else reading.others.get(table.name, quoted(*table.name))
    names = [quoted(f"_dalsegno_{number}") for number in range(len(partition))]
    keys = ", ".join(f"{part} AS {name}" for part, name in zip(partition, names, strict=True))
    rows = f"SELECT DISTINCT {quoted_list(columns, 's.')} FROM {state} s"
    if not all(is_exact(table.type_of(column)) for column in columns):
        rows = f"SELECT {quoted_list(columns, 's.')} FROM {state} s"
    if is_known and change is not None and partition:
        on = " AND ".join(f"{part} <=> k.{name}" for part, name in zip(partition, names, strict=True))
        # A row that went may have stood before two that tie.
        changed = [change.added, *([change.removed] if change.removed else [])]
        touched = " UNION ".join(f"SELECT {keys} FROM {relation} s" for relation in changed)
        rows = f"{rows} LEFT SEMI JOIN ({touched}) k ON {on}"
    if ranking.condition:
        rows = f"{rows} WHERE {ranking.condition}"
    over = (f"PARTITION BY {', '.join(partition)} " if partition else "") + f"ORDER BY {', '.join(ranking.order)}"
    place = "`_dalsegno_place`"
    ranked = f"SELECT {keys}{', ' if keys else ''}rank() OVER ({over}) AS {place} FROM ({rows}) s"
    first = f" WHERE {place} = 1" if is_first_taken(analysis, scan) else ""
    shown = ", ".join(f"{name} AS {quoted(_shown(part))}" for part, name in zip(partition, names, strict=True))
    grouped = ", ".join([*names, place])
    sql = f"SELECT {shown or place} FROM ({ranked}){first} GROUP BY {grouped} HAVING count(*) > 1 LIMIT {MOST_KEYS}"
    return Check(fact, sql, ((table.name, columns),))


def _shown(part: str) -> str:
    return part.replace("s.`", "").replace("`", "")


def _ordered(part: exp.Expr) -> str | None:
    inner = sql_of(part.this if isinstance(part, exp.Ordered) else part, "s.")
    if inner is None or not isinstance(part, exp.Ordered):
        return inner
    nulls = "FIRST" if part.args.get("nulls_first") else "LAST"
    return f"{inner} {'DESC' if part.args.get('desc') else 'ASC'} NULLS {nulls}"


def _is_unique(block: Block, window: exp.Window) -> bool:
    """Whether no two rows can tie, as the columns of PARTITION BY and ORDER BY have a unique key."""
    item = block.items[0] if len(block.items) == 1 else None
    if item is None or not isinstance(item.relation, Scan):
        return False
    order = window.args["order"].expressions if window.args.get("order") else []
    parts = [*(window.args.get("partition_by") or ()), *(each.this for each in order if isinstance(each, exp.Ordered))]
    known = {each.name for each in determined(block, parts) if isinstance(each, exp.Column)}
    return any(
        fact.kind is FactKind.UNIQUE and {name.lower() for name in fact.columns} <= known
        for fact in item.relation.table.facts
    )
