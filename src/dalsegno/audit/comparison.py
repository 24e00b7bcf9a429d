"""Two tables that should hold the same rows: counts and checksums by partition, then the rows themselves where these
differ. Everything is computed by Spark; only what differs comes back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dalsegno.errors import DataError
from dalsegno.spark.rewriting import literal, quoted

if TYPE_CHECKING:
    import pyarrow as pa

#: Executes a query and gives at most so many rows.
Ask = Callable[[str, int], "pa.Table"]
_MOST_PARTITIONS = 1_000_000
#: Beyond so many partitions that differ, rows are looked for in all of them.
_MOST_NAMED = 200
#: Options of ``to_json`` that lose nothing.
_AS_JSON = (
    "'ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX', "
    "'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS'"
)


@dataclass(frozen=True)
class PartitionField:
    """What a table is partitioned by: a column, or something that is made of one."""

    name: str
    column: str
    #: SQL that has its value.
    expression: str


Partition = tuple[str | None, ...]


@dataclass(frozen=True)
class ColumnResult:
    """A column over all rows; a checksum does not depend on their order."""

    name: str
    is_equal: bool
    expected_checksum: str
    found_checksum: str
    expected_nulls: int
    found_nulls: int


@dataclass(frozen=True)
class PartitionResult:
    values: Mapping[str, str | None]
    expected_rows: int
    found_rows: int


@dataclass(frozen=True)
class Difference:
    """Rows of one key, or one row if there is no key: as they should be, and as they are."""

    key: Mapping[str, Any]
    #: missing, superfluous or changed.
    kind: str
    expected: tuple[Mapping[str, Any], ...]
    found: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Comparison:
    expected_rows: int
    found_rows: int
    columns: tuple[ColumnResult, ...]
    partitions: int
    differing_partitions: tuple[PartitionResult, ...]
    missing_rows: int = 0
    superfluous_rows: int = 0
    #: How many keys differ; None where no key is known.
    differing_keys: int | None = None
    differences: tuple[Difference, ...] = ()
    #: Columns that only one of them has.
    uncompared: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        return not self.differing_partitions


@dataclass(frozen=True)
class Pair:
    """What to compare: two relations as SQL, and how."""

    expected: str
    found: str
    fields: Sequence[PartitionField] = ()
    #: Only these, each with a value for every field.
    only: Sequence[Partition] | None = None
    left_out: Sequence[str] = ()
    keys: Sequence[str] = ()
    #: How many rows or keys are shown.
    limit: int = 10
    types: Mapping[str, str] = field(default_factory=dict)


def compare(ask: Ask, pair: Pair, *, with_rows: bool = True) -> Comparison:
    columns, uncompared = _columns(ask, pair)
    sums = _sums(ask, pair, columns)
    differing = sorted((p for p, (expected, found) in sums.items() if expected != found), key=str)
    totals = [_total(side) for side in zip(*sums.values(), strict=True)] if sums else [_total(()), _total(())]
    result = Comparison(
        totals[0].rows,
        totals[1].rows,
        tuple(_column(name, at, totals[0], totals[1], sums.values()) for at, name in enumerate(columns)),
        len(sums),
        tuple(
            PartitionResult(
                dict(zip((each.name for each in pair.fields), partition, strict=True)),
                sums[partition][0].rows,
                sums[partition][1].rows,
            )
            for partition in differing
        ),
        uncompared=uncompared,
    )
    return _with_rows(ask, pair, columns, differing, result) if differing and with_rows else result


def predicate(fields: Sequence[PartitionField], types: Mapping[str, str], partitions: Iterable[Partition]) -> str:
    """SQL that is true in these partitions; in none if there is none."""
    said = [
        " AND ".join(
            f"{each.expression} <=> {'NULL' if value is None else f'CAST({literal(value)} AS {types[each.name]})'}"
            for each, value in zip(fields, partition, strict=True)
        )
        or "true"
        for partition in partitions
    ]
    return f"({' OR '.join(f'({each})' for each in said)})" if said else "false"


def field_types(ask: Ask, fields: Sequence[PartitionField], relation: str) -> dict[str, str]:
    if not fields:
        return {}
    selected = ", ".join(f"{each.expression} AS {quoted(each.name)}" for each in fields)
    rows = ask(f"DESCRIBE QUERY SELECT {selected} FROM {relation}", len(fields)).to_pylist()
    return {row["col_name"]: row["data_type"] for row in rows}


@dataclass(frozen=True)
class _Sums:
    rows: int = 0
    #: Of whole rows.
    checksum: int = 0
    #: For each column: how many values are not null, and their checksum.
    columns: tuple[tuple[int, int], ...] = ()


def _columns(ask: Ask, pair: Pair) -> tuple[dict[str, _Column], tuple[str, ...]]:
    """The columns that both have, and the names of those that only one has."""
    schemas = [ask(f"SELECT * FROM {relation}", 0).schema for relation in (pair.expected, pair.found)]
    names = [[name for name in schema.names if name not in pair.left_out] for schema in schemas]
    both = [name for name in names[1] if name in names[0]]
    if not both:
        raise DataError(f"There is no column to compare: {', '.join(names[0])} and {', '.join(names[1])}.")
    types = schemas[1]
    as_sql = {name: _comparable(quoted(name), types.field(name).type) for name in both}
    return as_sql, tuple(sorted(set(names[0]) ^ set(names[1])))


@dataclass(frozen=True)
class _Column:
    """A column as SQL: one that can be grouped by and shown, and one that can be hashed."""

    shown: str
    hashed: str


def _comparable(name: str, kind: pa.DataType) -> _Column:
    # A hash passes over nulls: [1, null] and [null, 1] have the same one, and so have their structs.
    as_json = f"to_json({name}, map({_AS_JSON}))"
    return _Column(as_json if _holds_map(kind) else name, as_json if kind.num_fields else name)


def _holds_map(kind: pa.DataType) -> bool:
    """Spark neither groups by a map nor hashes one."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    if pa.types.is_map(kind):
        return True
    return any(_holds_map(kind.field(at).type) for at in range(kind.num_fields))


def _sums(ask: Ask, pair: Pair, columns: Mapping[str, _Column]) -> dict[Partition, list[_Sums]]:
    """By partition, of what is expected and of what is found."""
    keys = [f"CAST({each.expression} AS STRING) AS p{at}" for at, each in enumerate(pair.fields)]
    sql = [column.hashed for column in columns.values()]
    hashes = [f"count({each}) AS n{at}, {_sum_of_hashes(each)} AS c{at}" for at, each in enumerate(sql)]
    # With a word for each null: a hash passes over them, and two rows with one value in another column would be alike.
    rows = _sum_of_hashes(", ".join(f"{each}, isnull({each})" for each in sql))
    said = ", ".join([*keys, f"count(*) AS n, {rows} AS c", *hashes])
    grouped = f" GROUP BY {', '.join(each.expression for each in pair.fields)}" if pair.fields else ""
    halves = [
        f"SELECT {side} AS side, {said} FROM {relation}{_where(pair)}{grouped}"
        for side, relation in ((0, pair.expected), (1, pair.found))
    ]
    found: dict[Partition, list[_Sums]] = defaultdict(lambda: [_Sums(), _Sums()])
    for row in ask(" UNION ALL ".join(halves), 2 * _MOST_PARTITIONS).to_pylist():
        each = tuple((row[f"n{at}"], int(row[f"c{at}"] or 0)) for at in range(len(columns)))
        if row["n"]:
            partition = tuple(row[f"p{at}"] for at in range(len(pair.fields)))
            found[partition][row["side"]] = _Sums(row["n"], int(row["c"] or 0), each)
    return dict(found)


def _sum_of_hashes(sql: str) -> str:
    # Decimal: the sum of 64-bit numbers is more than 64 bits wide.
    return f"sum(CAST(xxhash64({sql}) AS DECIMAL(38, 0)))"


def _where(pair: Pair, partitions: Iterable[Partition] | None = None) -> str:
    chosen = partitions if partitions is not None else pair.only
    return "" if chosen is None else f" WHERE {predicate(pair.fields, pair.types, chosen)}"


def _total(side: Iterable[_Sums]) -> _Sums:
    known = [each for each in side if each.rows]
    return _Sums(
        sum(each.rows for each in known),
        sum(each.checksum for each in known),
        tuple(
            (sum(n for n, _ in column), sum(c for _, c in column))
            for column in zip(*(each.columns for each in known), strict=True)
        ),
    )


def _column(name: str, at: int, expected: _Sums, found: _Sums, by_partition: Iterable[Sequence[_Sums]]) -> ColumnResult:
    sides = [each.columns[at] if each.columns else (0, 0) for each in (expected, found)]
    is_equal = all(
        (left.columns[at : at + 1] or ((0, 0),)) == (right.columns[at : at + 1] or ((0, 0),))
        for left, right in by_partition
    )
    return ColumnResult(
        name,
        is_equal,
        _hex(sides[0][1]),
        _hex(sides[1][1]),
        expected.rows - sides[0][0],
        found.rows - sides[1][0],
    )


def _hex(checksum: int) -> str:
    return f"{checksum % (1 << 64):016x}"


def _with_rows(
    ask: Ask, pair: Pair, columns: Mapping[str, _Column], differing: Sequence[Partition], result: Comparison
) -> Comparison:
    """The same with the rows that only one of them has."""
    where = _where(pair, differing if pair.fields and len(differing) <= _MOST_NAMED else None)
    selected = ", ".join(f"{column.shown} AS {quoted(name)}" for name, column in columns.items())
    names = ", ".join(quoted(name) for name in columns)
    keys = [key for key in pair.keys if key in columns]
    net = (
        f"WITH net AS (SELECT {names}, sum(_net) AS _net FROM ("
        f"SELECT {selected}, 1 AS _net FROM {pair.expected}{where} UNION ALL "
        f"SELECT {selected}, -1 AS _net FROM {pair.found}{where}) GROUP BY {names} HAVING sum(_net) <> 0) "
    )
    counts = "coalesce(sum(greatest(_net, 0)), 0) AS missing, coalesce(sum(greatest(-_net, 0)), 0) AS superfluous"
    by_key = f", count(DISTINCT struct({', '.join(map(quoted, keys))})) AS keys" if keys else ""
    [counted] = ask(f"{net}SELECT {counts}{by_key} FROM net", 1).to_pylist()
    order = ", ".join(map(quoted, keys or columns))
    # A key has at least one row on each side if it changed.
    shown = ask(f"{net}SELECT * FROM net ORDER BY {order}, _net", 4 * pair.limit).to_pylist()
    return replace(
        result,
        missing_rows=int(counted["missing"]),
        superfluous_rows=int(counted["superfluous"]),
        differing_keys=int(counted["keys"]) if keys else None,
        differences=_differences(shown, keys, pair.limit),
    )


def _differences(rows: Iterable[dict[str, Any]], keys: Sequence[str], limit: int) -> tuple[Difference, ...]:
    by_key: dict[str, tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]] = {}
    for number, row in enumerate(rows):
        net = int(row.pop("_net"))
        name = repr([row[key] for key in keys]) if keys else str(number)
        by_key.setdefault(name, ([], []))[0 if net > 0 else 1].extend([row] * min(abs(net), limit))
    found = []
    for expected, present in list(by_key.values())[:limit]:
        kind = "changed" if expected and present else "missing" if expected else "superfluous"
        first = (expected or present)[0]
        key = {name: first[name] for name in (keys or first)}
        found.append(Difference(key, kind, tuple(expected), tuple(present)))
    return tuple(found)
