"""The same as ``test_rewrites``, a thousand times as often: DuckDB executes what is written for Spark, translated.

Sources are lists of rows, and what changed is their difference. Real captures and real Spark are in ``test_rewrites``.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import duckdb
import pytest
from sqlglot import transpile

from dalsegno.rewrite.analysis import Analysis, analyse
from dalsegno.rewrite.keys import NotProven
from dalsegno.rewrite.stated import stated_facts, with_facts
from dalsegno.rewrite.states import states_of
from dalsegno.rewrite.strategies import strategies_for
from dalsegno.rewrite.strategy import Changed, StrategyName
from dalsegno.rewrite.tables import Change, PartitionField, Reading, Table
from dalsegno.spark.forms import Effect, form_of
from tests.rewrite.queries import REQUIRED, TABLES, Made, Maker

Row = tuple[str, ...]
_DAYS = ["DATE '2026-01-01'", "DATE '2026-01-02'", "DATE '2026-01-03'", "DATE '2025-06-01'"]
covered: Counter[tuple[str, str, str]] = Counter()


def in_duckdb(sql: str) -> str:
    """A query for Spark as one for DuckDB."""
    (found,) = transpile(sql, read="spark", write="duckdb", identify=True)
    # Of no rows, its COUNT_IF gives NULL.
    found = found.replace("COUNT_IF(", "COUNT(*) FILTER (WHERE ")
    return re.sub(r"\bLEFT (SEMI|ANTI) JOIN\b", r"\1 JOIN", found)


@dataclass
class Lake:
    chance: random.Random
    connection: duckdb.DuckDBPyConnection
    rows: dict[str, list[Row]] = field(default_factory=dict)
    partitioned: dict[str, bool] = field(default_factory=dict)
    #: Whether each table's id tells its day.
    is_lawful: bool = False
    #: Larger than all other numbers.
    latest: int = 1000
    #: A column that tables are partitioned by besides the day.
    second: dict[str, str] = field(default_factory=dict)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement).fetchall()

    def value(self, column: str, kind: str) -> str:
        chance = self.chance
        if chance.random() < 0.12 and column != "q":
            return "NULL"
        kinds = {
            "date": chance.choice(_DAYS),
            "string": chance.choice(["'a'", "'b'", "'it''s'", "'c'"]),
            "timestamp": f"TIMESTAMP '2026-01-0{chance.randint(1, 3)} {chance.choice(['00:00:00', '23:30:00'])}'",
            "decimal(9,2)": f"{chance.randint(0, 5)}.{chance.randint(0, 99):02}",
        }
        if kind.startswith("struct"):
            return f"{{'a': {chance.randint(0, 2)}, 'b': 'x'}}"
        return kinds.get(kind) or str(chance.randint(0, 3 if column in ("id", "dim") else 5))

    def row(self, name: str) -> Row:
        return self.lawful(name, tuple(self.value(column, kind) for column, kind in TABLES[name].items()))

    def lawful(self, name: str, row: Row) -> Row:
        if not self.is_lawful or not {"id", "day"} <= set(TABLES[name]):
            return row
        found = dict(zip(TABLES[name], row, strict=True))
        day = "NULL" if found["id"] in ("NULL", "0") else _DAYS[int(found["id"]) % len(_DAYS)]
        return tuple({**found, "day": day}.values())

    def show(self, table: str, rows: list[Row], name: str) -> None:
        listed = ", ".join(f'"{column}" {_type(kind)}' for column, kind in TABLES[name].items())
        values = ", ".join(f"({', '.join(row)})" for row in rows)
        filled = f"; INSERT INTO lake.main.{table} VALUES {values}" if rows else ""
        self.connection.execute(f"CREATE OR REPLACE TABLE lake.main.{table} ({listed}){filled}")

    def changed(self, name: str, *, appends_only: bool) -> tuple[Changed, Change]:
        """Change a table at random, and say what changed."""
        chance, before = self.chance, list(self.rows[name])
        after = list(before)
        kind = Changed.APPENDED
        if not appends_only:
            kind = Changed.ANY
            after = [row for row in after if chance.random() > chance.choice([0.0, 0.2, 0.2, 1.0])]
            for at in range(len(after)):
                if chance.random() < 0.2:
                    column = chance.randrange(len(after[at]))
                    new = list(after[at])
                    new[column] = self.value(*list(TABLES[name].items())[column])
                    after[at] = self.lawful(name, tuple(new))
        added_rows = [self.row(name) for _ in range(chance.randint(1, 3))]
        if chance.random() < 0.3:
            keys = {at for at, column in enumerate(TABLES[name]) if column in ("id", "dim")}
            added_rows = [
                self.lawful(name, tuple("77" if at in keys else v for at, v in enumerate(row))) for row in added_rows
            ]
        if chance.random() < 0.4:
            # As the time of arrival: larger than all before.
            at = chance.choice([at for at, kind in enumerate(TABLES[name].values()) if kind in ("int", "bigint")])
            self.latest += 1
            added_rows = [self.lawful(name, (*row[:at], str(self.latest), *row[at + 1 :])) for row in added_rows]
        after += added_rows
        added, removed = Counter(after) - Counter(before), Counter(before) - Counter(after)
        if kind is Changed.ANY and before and chance.random() < 0.5:
            # Rows that a file holds besides: they are on both sides.
            besides = Counter(chance.sample(after, min(len(after), 2)))
            added, removed = added + besides, removed + besides
        self.rows[name] = after
        for suffix, rows in (
            ("", after),
            ("_before", before),
            ("_added", added.elements()),
            ("_removed", removed.elements()),
        ):
            self.show(name + suffix, list(rows), name)
        known = {self.partition(name, row) for row in before}
        reopened = [row for row in (*added, *removed) if self.partition(name, row) in known]
        in_reopened = [
            row for row in before if self.partition(name, row) in {*map(partial(self.partition, name), added)}
        ]
        both = f"(SELECT * FROM lake.main.{name}_added UNION ALL SELECT * FROM lake.main.{name}_removed)"
        return kind, Change(
            after=f"lake.main.{name}",
            added=f"lake.main.{name}_added",
            removed=None if kind is Changed.APPENDED else f"lake.main.{name}_removed",
            before=f"lake.main.{name}_before" if before else None,
            partition_filter=self.filter(name, [*added, *removed]),
            reopened_filter=self.filter(name, reopened) if chance.random() < 0.7 else None,
            late_rows=len(reopened) if chance.random() < 0.5 else None,
            changed=both if kind is Changed.ANY and chance.random() < 0.5 else None,
            ranges=self.ranges(name, [*added, *removed]) if chance.random() < 0.7 else {},
            partitioned_by=frozenset({"day", self.second.get(name, "day")} if self.partitioned[name] else ()),
            later=self.later(name, list(added), before),
            later_in_reopened=self.later(name, list(added), in_reopened),
        )

    def later(self, name: str, added: list[Row], before: list[Row]) -> frozenset[str]:
        """The columns with whole numbers that are larger in all added rows."""
        found = set()
        for at, (column, kind) in enumerate(TABLES[name].items()):
            if kind in ("int", "bigint") and all(row[at] != "NULL" for row in added):
                old = [int(row[at]) for row in before if row[at] != "NULL"]
                if all(int(row[at]) > max(old, default=-1) for row in added):
                    found.add(column.lower())
        return frozenset(found)

    def partition(self, name: str, row: Row) -> tuple[str, str]:
        values = dict(zip(TABLES[name], row, strict=True))
        return values.get("day", ""), values.get(self.second.get(name, ""), "")

    def ranges(self, name: str, rows: list[Row]) -> dict[str, str]:
        """As ``iceberg.predicates`` writes the range of each column with whole numbers, or days."""
        found = {}
        for at, (column, kind) in enumerate(TABLES[name].items()):
            if kind not in ("int", "bigint", "date"):
                continue
            values = {row[at].replace("DATE ", "DATE") for row in rows}
            known = sorted(values - {"NULL"}, key=lambda value: (int(value) if kind != "date" else 0, value))
            parts = [f"`{column}` BETWEEN {known[0]} AND {known[-1]}"] if known else []
            parts += [f"`{column}` IS NULL"] if "NULL" in values else []
            found[column.lower()] = parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"
        return found

    def filter(self, name: str, rows: list[Row]) -> str:
        if not self.partitioned[name]:
            return "true"
        if not rows:
            return "false"
        at = list(TABLES[name]).index("day")
        days = sorted({row[at].replace("DATE ", "DATE") for row in rows} - {"NULL"})
        parts = [f"`day` IN ({', '.join(days)})"] if days else []
        parts += ["`day` IS NULL"] if any(row[at] == "NULL" for row in rows) else []
        return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def write(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    """Execute a statement; DuckDB has no REPLACE WHERE."""
    replaced = re.match(r"INSERT INTO (\S+) REPLACE WHERE ([^\n]*)\n(.*)", statement, re.DOTALL)
    if replaced is None:
        connection.execute(in_duckdb(statement))
        return
    target, condition, query = replaced.groups()
    connection.execute(f"CREATE OR REPLACE TEMP TABLE new_rows AS {in_duckdb(query)}")
    deleted = in_duckdb(f"SELECT * FROM {target} WHERE {condition}").replace("SELECT * FROM", "DELETE FROM", 1)
    connection.execute(deleted)
    connection.execute(f"INSERT INTO {target.replace('`', '')} SELECT * FROM new_rows")


def _type(kind: str) -> str:
    return {"string": "VARCHAR"}.get(kind, "STRUCT(a INT, b VARCHAR)" if kind.startswith("struct") else kind)


@dataclass
class Declared:
    made: Made
    analysis: Analysis
    target: Table
    full: str


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute("ATTACH ':memory:' AS lake")
        made.execute("SET threads = 1")
        yield made


def begun(connection: duckdb.DuckDBPyConnection, seed: int, split_share: float = 0.4) -> tuple[Lake, list[Table]]:
    lake = Lake(random.Random(seed), connection)
    lake.is_lawful = lake.chance.random() < 0.3
    for name in TABLES:
        lake.rows[name] = [lake.row(name) for _ in range(lake.chance.randint(2, 9))]
        lake.partitioned[name] = "day" in TABLES[name] and lake.chance.random() < 0.6
        if lake.partitioned[name] and lake.chance.random() < split_share:
            lake.second[name] = lake.chance.choice(list(TABLES[name]))
        lake.show(name, lake.rows[name], name)
    parts = {name: {"day": None, lake.second.get(name, "day"): None} for name in TABLES if lake.partitioned[name]}
    fields = {name: tuple(map(PartitionField, parts.get(name, ()))) for name in TABLES}
    tables = [Table(("lake", "main", name), TABLES[name], fields[name], REQUIRED[name]) for name in TABLES]
    laws = [f"trusted id -> day in {table}" for table in tables if {"id", "day"} <= set(table.columns)]
    return lake, with_facts(tables, stated_facts(laws, tables)) if lake.is_lawful else tables


def declared(lake: Lake, sources: list[Table], made: Made | None) -> Declared | None:
    made = made or Maker(lake.chance, {name: f"lake.main.{name}" for name in TABLES}).made()
    try:
        full = in_duckdb(made.sql)
        lake.sql(f"CREATE OR REPLACE TABLE lake.main.target AS {full}")
    except duckdb.Error:
        # DuckDB does not know everything that Spark does.
        return None
    days = tuple(PartitionField(name) for name, kind in made.columns.items() if kind == "date")[:1]
    target = Table(("lake", "main", "target"), made.columns, days, is_small=lake.chance.random() < 0.3)
    kinds = made.columns if lake.chance.random() < 0.8 else None
    return Declared(made, analyse(made.sql, sources, kinds=kinds), target, full)


def one_history(
    connection: duckdb.DuckDBPyConnection, seed: int, made: Made | None = None, most_sources: int = 9
) -> None:
    """A random history, of a random query if none is given."""
    lake, sources = begun(connection, seed) if made is None else begun(connection, seed, split_share=0.8)
    query = declared(lake, sources, made)
    if query is None:
        return
    columns = ", ".join(f'"{name}"' for name in query.target.columns)
    for _ in range(2):
        appends_only = lake.chance.random() < 0.5
        read = query.analysis.sources
        names = lake.chance.sample(read, lake.chance.randint(1, min(len(read), most_sources)))
        found = {name: lake.changed(name[-1], appends_only=appends_only) for name in names}
        kinds = {name: kind for name, (kind, _) in found.items()}
        reading = Reading({name: change for name, (_, change) in found.items()})
        offered = [each for each in strategies_for(query.analysis, query.target, kinds) if each.is_possible]
        if len(offered) == 1:
            return
        chosen = lake.chance.choice(offered[:-1])
        probe = chosen.probe(reading)
        if probe is not None and lake.sql(in_duckdb(probe)):
            covered["probe", chosen.name, "found something"] += 1
            chosen = offered[-1]
        statements = chosen.statements(reading)
        context = [str(seed), query.made.sql, str(chosen), *statements]
        for form in map(form_of, statements):
            # So that it is executed once, whoever dies.
            assert (form.effect, form.target) == (Effect.STAMPED, query.target.name), "\n".join(
                [form.because, *context]
            )
        try:
            for statement in statements * (2 if chosen.is_idempotent and lake.chance.random() < 0.2 else 1):
                write(lake.connection, statement)
        except duckdb.NotImplementedException:
            # It cannot join in a correlated subquery.
            return
        except duckdb.Error as error:
            raise AssertionError("\n".join([str(error), *context])) from error
        for operator in query.made.operators:
            covered[operator, chosen.name, "any" if Changed.ANY in kinds.values() else "appended"] += 1
        difference = lake.sql(
            f"SELECT {columns}, sum(net) FROM (SELECT {columns}, 1 AS net FROM ({query.full}) UNION ALL "
            f"SELECT {columns}, -1 FROM lake.main.target) GROUP BY {columns} HAVING sum(net) <> 0"
        )
        assert not difference, "\n".join([str(difference), *context, *(f"{n}: {r}" for n, r in lake.rows.items())])


def test_states_and_results_are_the_query(connection: duckdb.DuckDBPyConnection, pytestconfig: pytest.Config) -> None:
    found = 0
    for seed in range(100 * pytestconfig.getoption("--rewrites")):
        lake, sources = begun(connection, seed)
        query = declared(lake, sources, None)
        try:
            states = states_of(query.analysis) if query else None
        except NotProven:
            continue
        if query is None or states is None:
            continue
        lake.sql(f"CREATE OR REPLACE TABLE lake.main.states AS {in_duckdb(states.states)}")
        result = in_duckdb(states.result_from("lake.main.states"))
        expected, made = (lake.sql(f"FROM ({sql}) ORDER BY ALL") for sql in (query.full, result))
        assert made == expected, "\n".join([query.made.sql, states.states, states.result])
        found += 1
    assert found > 10


_NUMBERED = """(SELECT *, row_number() OVER (PARTITION BY id, day ORDER BY v, q, kind, d, dim, at) AS n
  FROM lake.main.facts)"""
_KEYED = [
    Made(
        f"SELECT id, day, v, q, kind FROM {_NUMBERED} WHERE n = 1",
        {"id": "int", "day": "date", "v": "int", "q": "int", "kind": "string"},
        frozenset({"first of a key"}),
    ),
    Made(
        f"SELECT id, day, q, name FROM {_NUMBERED} f JOIN lake.main.dims d ON d.dim = f.dim WHERE n = 1",
        {"id": "int", "day": "date", "q": "int", "name": "string"},
        frozenset({"first of a key, joined"}),
    ),
    Made(
        "SELECT day, count(*) AS n, count(DISTINCT dim) AS dims FROM lake.main.facts GROUP BY day",
        {"day": "date", "n": "bigint", "dims": "bigint"},
        frozenset({"distinct of a day"}),
    ),
]


@pytest.mark.parametrize("made", _KEYED, ids=lambda made: next(iter(made.operators)))
def test_keys_are_found_in_whatever_partition_they_are(connection: duckdb.DuckDBPyConnection, made: Made) -> None:
    """A key may be in a partition that was there before, and come in one that was not."""
    for seed in range(80):
        one_history(connection, seed, made, most_sources=1)
    taken = {name for operator, name, _ in covered if operator in made.operators}
    assert taken & {StrategyName.NEW_KEYS, StrategyName.DELTA}, taken


def test_targets_equal_the_full_query(connection: duckdb.DuckDBPyConnection, pytestconfig: pytest.Config) -> None:
    first = pytestconfig.getoption("--first-rewrite")
    for seed in range(first, first + 100 * pytestconfig.getoption("--rewrites")):
        one_history(connection, seed)
    taken = {name for _, name, _ in covered}
    assert taken >= {*StrategyName} - {StrategyName.APPEND_JOINED, StrategyName.DELTA_JOINED, StrategyName.FULL}, taken
