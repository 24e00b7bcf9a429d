"""Each strategy, tried on a query and a kind of change: what it does, or what is not proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dalsegno.errors import UserError
from dalsegno.rewrite.analysis import Analysis
from dalsegno.rewrite.deduplication import deduplication_of
from dalsegno.rewrite.delta import Delta, delta_of, restricted_delta_of
from dalsegno.rewrite.dependencies import facts_behind
from dalsegno.rewrite.facts import Fact, FactKind
from dalsegno.rewrite.keys import NotProven, key_of
from dalsegno.rewrite.linear import linear_scans
from dalsegno.rewrite.partitions import EVERYTHING, PassedPartitions, partition_names, passed, quoted_with
from dalsegno.rewrite.relations import Obstacle, Scan
from dalsegno.rewrite.strategy import Changed, Options, Strategy, StrategyName
from dalsegno.rewrite.tables import Name, Reading, Table
from dalsegno.rewrite.terms import joined_term, terms
from dalsegno.rewrite.together import Pair, pairs_of, probe
from dalsegno.rewrite.touching import TouchedKeys, best_key, candidates, touched_keys
from dalsegno.rewrite.writing import Writer


def full(analysis: Analysis, target: Table) -> Strategy:
    return Strategy(
        StrategyName.FULL,
        "It is right for every query.",
        _write=lambda reading: [Writer(analysis, target, reading).full()],
    )


def append(
    analysis: Analysis, target: Table, changed: Mapping[Name, Changed], scans: Sequence[Scan], _: Options
) -> Strategy:
    for name, kind in changed.items():
        if kind is not Changed.APPENDED:
            raise NotProven(Obstacle("append", f"rows of {'.'.join(name)} were updated or deleted.", ""))
    linear = linear_scans(analysis.root)
    for scan in scans:
        if scan not in linear:
            raise NotProven(
                Obstacle(
                    "append",
                    f"new rows of {scan.table} can change existing rows of the result: they are grouped, deduplicated, "
                    "or on the right side of an outer join.",
                    "",
                )
            )

    reads = {scan: linear[scan] for scan in scans}

    def write(reading: Reading) -> list[str]:
        writer = Writer(analysis, target, reading)
        return [writer.append([writer.query(term.relation) for term in terms(writer, reads)])]

    return Strategy(StrategyName.APPEND, "Each new row makes new rows of the result, and changes none.", _write=write)


def append_joined(
    analysis: Analysis, target: Table, changed: Mapping[Name, Changed], scans: Sequence[Scan], options: Options
) -> Strategy:
    append(analysis, target, changed, scans, options)
    pairs = _joined(analysis, changed, scans)
    linear = linear_scans(analysis.root)
    reads = {scan: linear[scan] for scan in scans}

    def write(reading: Reading) -> list[str]:
        writer = Writer(analysis, target, reading)
        return [writer.append([writer.query(joined_term(writer, reads).relation)])]

    return Strategy(
        StrategyName.APPEND_JOINED,
        "New rows join with new rows alone, so old rows of the sources need not be read.",
        _write=write,
        _probe=lambda reading: probe(pairs, reading),
    )


def _joined(analysis: Analysis, changed: Mapping[Name, Changed], scans: Sequence[Scan]) -> list[Pair]:
    """The joins of all reads that changed."""
    if Changed.ANY in changed.values():
        raise NotProven(Obstacle("new joins", "rows were updated or deleted.", ""))
    pairs = pairs_of(analysis.root, scans)
    if pairs is None:
        raise NotProven(Obstacle("new joins", "only one table changed, or they are not joined by equal columns.", ""))
    return pairs


def append_new_keys(
    analysis: Analysis, target: Table, changed: Mapping[Name, Changed], scans: Sequence[Scan], _: Options
) -> Strategy:
    if Changed.ANY in changed.values():
        raise NotProven(Obstacle("append new keys", "rows were updated or deleted.", ""))
    found = deduplication_of(analysis, target, scans)
    return Strategy(
        StrategyName.NEW_KEYS,
        f"The query takes one row of each key ({', '.join(found.keys)}), and rows with new keys are only added.",
        facts=_facts(analysis, found.keys),
        key=found.keys,
        partition_columns={} if found.through is None else _columns(found.through),
        _write=found.statements,
        _probe=None if found.is_distinct else found.probe,
    )


def delta(
    analysis: Analysis, target: Table, changed: Mapping[Name, Changed], scans: Sequence[Scan], _: Options
) -> Strategy:
    found = delta_of(analysis, target, scans, removes=Changed.ANY in changed.values())
    return _by_delta(StrategyName.DELTA, "Each aggregate is its old value, and what changed of it.", found)


def delta_of_new_joins(
    analysis: Analysis, target: Table, changed: Mapping[Name, Changed], scans: Sequence[Scan], _: Options
) -> Strategy:
    pairs = _joined(analysis, changed, scans)
    found = _by_delta(
        StrategyName.DELTA_JOINED,
        "Each aggregate is its old value, and what new rows add that join with new rows alone.",
        replace(delta_of(analysis, target, scans, removes=False), is_joined=True),
    )
    return replace(found, _probe=lambda reading: probe(pairs, reading))


def delta_of_touched_keys(
    analysis: Analysis, target: Table, changed: Mapping[Name, Changed], scans: Sequence[Scan], _: Options
) -> Strategy:
    return _by_delta(
        StrategyName.DELTA_KEYS,
        "Each aggregate is its old value, less what rows with touched keys made of it, and what they make of it.",
        restricted_delta_of(analysis, target, scans),
    )


def _by_delta(name: StrategyName, why: str, delta: Delta) -> Strategy:
    averages = [measure.name for measure in delta.measures if measure.type == "double"]
    return Strategy(
        name,
        why,
        facts=tuple(Fact(FactKind.SMALL_SUM, (each,)) for each in averages),
        key=delta.keys,
        partition_columns={} if delta.through is None else _columns(delta.through),
        _write=delta.statements,
    )


def touched_partitions(
    analysis: Analysis, target: Table, changed: Mapping[Name, Changed], scans: Sequence[Scan], _: Options
) -> Strategy:
    usable = set(candidates(analysis, target))
    names = [name for name in partition_names(target, analysis.outputs) if name in usable]
    if not names:
        raise NotProven(
            Obstacle(
                "touched partitions", "the target is not partitioned by an output column that is passed through.", ""
            )
        )
    keys = _provable(analysis, names, scans)
    through = passed(keys, target, aligned=True)
    if through is None:
        raise NotProven(
            Obstacle("touched partitions", "the sources are not partitioned as the target is, by the same columns.", "")
        )

    facts = _facts(analysis, keys.names)

    def write(reading: Reading) -> list[str]:
        writer = Writer(analysis, target, reading)
        query = writer.in_partitions(keys, through) if facts else writer.query()
        return [writer.replace_partitions(_predicate(through, reading), query)]

    return Strategy(
        StrategyName.PARTITIONS,
        f"{_listed(names)} passes through the query unchanged, so other partitions cannot change.",
        facts=facts,
        key=tuple(names),
        partition_columns=_columns(through),
        _write=write,
    )


def _provable(analysis: Analysis, names: Sequence[str], scans: Sequence[Scan]) -> TouchedKeys:
    """All of the names, or the first that will do alone."""
    try:
        return touched_keys(analysis, names, scans)
    except NotProven:
        for name in names[1:]:
            try:
                return touched_keys(analysis, [name], scans)
            except NotProven:
                continue
        return touched_keys(analysis, names[:1], scans)


def by_touched_keys(
    analysis: Analysis, target: Table, changed: Mapping[Name, Changed], scans: Sequence[Scan], options: Options
) -> Strategy:
    if options.keys:
        unknown = [name for name in options.keys if name.lower() not in {each.lower() for each in analysis.outputs}]
        if unknown:
            raise UserError(f"{_listed(unknown)} is declared as a key, but is not an output column of the query.")
        usable = {name.lower() for name in candidates(analysis, target)}
        inexact = [name for name in options.keys if name.lower() not in usable]
        if inexact:
            raise NotProven(
                Obstacle(
                    "touched keys", f"the type of {_listed(inexact)} is not known, or not exact.", "Choose other keys."
                )
            )
        written = {name.lower(): name for name in analysis.outputs}
        keys = touched_keys(analysis, [written[name.lower()] for name in options.keys], scans)
    else:
        keys = best_key(analysis, target, scans)
    through = passed(keys, target, aligned=False)

    def write(reading: Reading) -> list[str]:
        writer = Writer(analysis, target, reading)
        filters = {name: change.partition_filter for name, change in reading.changes.items()}
        pruning = EVERYTHING if through is None else through.predicate(filters, quoted_with("t."))
        query = writer.restricted(keys, through, filters)
        return [writer.merge(keys, query, writer.keys_sql(keys), "" if pruning == EVERYTHING else f" AND {pruning}")]

    return Strategy(
        StrategyName.KEYS,
        f"A change of a source changes only rows with the keys ({', '.join(keys.names)}) that it touches.",
        facts=_facts(analysis, keys.names),
        key=keys.names,
        partition_columns={} if through is None else _columns(through),
        _write=write,
    )


def _predicate(through: PassedPartitions, reading: Reading) -> str:
    filters = {name: change.partition_filter for name, change in reading.changes.items()}
    return through.predicate(filters, quoted_with(""))


def _columns(through: PassedPartitions) -> dict[Name, dict[str, str]]:
    return {name: dict(columns) for name, columns in through.columns.items()}


def _facts(analysis: Analysis, names: Sequence[str]) -> tuple[Fact, ...]:
    """What must hold if rows are replaced by a key of output columns."""
    key = key_of(analysis.root, [name.lower() for name in names])
    return (*facts_behind(analysis.root, key), *analysis.ties)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
