"""TPC-H's queries as declared tables: which are incremental, by which strategy, and that each leaves the right rows."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

import duckdb
import pytest

from dalsegno.rewrite.analysis import Analysis, analyse
from dalsegno.rewrite.keys import NotProven
from dalsegno.rewrite.states import states_of
from dalsegno.rewrite.strategies import strategies_for
from dalsegno.rewrite.strategy import Changed, Strategy, StrategyName
from dalsegno.rewrite.tables import Change, Reading, Table
from tests.rewrite.test_many_rewrites import in_duckdb, write
from tests.rewrite.tpch import COLUMNS, QUERIES

FACTS = ("orders", "lineitem")
SOURCES = [Table(("lake", "main", name), columns, (), frozenset(columns)) for name, columns in COLUMNS.items()]
BY_NAME = {source.name[-1]: source for source in SOURCES}
#: What a full computation is saved by; touching keys that every order has saves little.
_DELTAS = {StrategyName.DELTA_JOINED, StrategyName.DELTA, StrategyName.DELTA_KEYS, StrategyName.APPEND}


def analysed(connection: duckdb.DuckDBPyConnection, query: str) -> Analysis:
    described = connection.execute(f"DESCRIBE {in_duckdb(query)}").fetchall()
    kinds = {
        name: str(kind).lower().replace("varchar", "string").replace("hugeint", "bigint")
        for name, kind, *_ in described
    }
    return analyse(query, SOURCES, current=("lake", "main"), kinds=kinds)


class Data:
    """A few rows of each table, with values that the queries look for."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, seed: int) -> None:
        self.connection = connection
        self.chance = random.Random(seed)
        self.orders = 0
        for name, columns in COLUMNS.items():
            kinds = {"string": "VARCHAR"}
            listed = ", ".join(f"{column} {kinds.get(kind, kind)}" for column, kind in columns.items())
            connection.execute(f"CREATE OR REPLACE TABLE lake.main.{name} ({listed})")
        for key, region in enumerate(["EUROPE", "ASIA", "AMERICA"]):
            self.insert("region", [(key, region)])
        names = ["FRANCE", "GERMANY", "BRAZIL", "CANADA", "SAUDI ARABIA", "CHINA"]
        self.insert("nation", [(key, nation, key % 3) for key, nation in enumerate(names)])
        one = self.chance.choice
        for key in range(8):
            self.insert("supplier", [(key, f"s{key}", "a", key % 6, "1", key, one(["x", "Customer Complaints"]))])
            self.insert(
                "customer", [(key, f"c{key}", "a", key % 6, one(["13-", "31-", "99-"]), key - 1, "BUILDING", "x")]
            )
            kind = one(["PROMO BRASS", "ECONOMY ANODIZED STEEL", "STEEL"])
            brand, container = one([("Brand#23", "MED BOX"), ("Brand#12", "SM BOX"), ("Brand#34", "LG BOX")])
            self.insert("part", [(key, one(["green x", "forest y"]), "m", brand, kind, one([15, 49, 3]), container, 1)])
            self.insert(
                "partsupp", [(key, supplier, self.chance.randint(1, 40), key + 1) for supplier in (key, (key + 1) % 8)]
            )
        self.new_orders("", 12)

    def insert(self, table: str, rows: list[tuple[object, ...]]) -> None:
        written = [", ".join(f"'{value}'" if isinstance(value, str) else str(value) for value in row) for row in rows]
        self.connection.execute(f"INSERT INTO lake.main.{table} VALUES {', '.join(f'({row})' for row in written)}")

    def new_orders(self, suffix: str, count: int) -> None:
        """Orders with their lines."""
        one, number = self.chance.choice, self.chance.randint
        orders: list[tuple[object, ...]] = []
        lines: list[tuple[object, ...]] = []
        for _ in range(count):
            self.orders += 1
            day = one(["1993-08-01", "1993-11-01", "1994-05-01", "1995-03-01", "1996-02-01"])
            comment = one(["x", "special requests"])
            priority = one(["1-URGENT", "5-LOW"])
            order = (self.orders, number(0, 6), one(["F", "O"]), number(1, 9), day, priority, 0, comment)
            orders.append(order)
            for line in range(number(1, 4)):
                shipped = one(["1994-03-01", "1994-04-01", "1995-04-01", "1995-09-10", "1996-02-10", "1996-08-01"])
                part = number(0, 7)
                values = (
                    self.orders,
                    part,
                    one([part, (part + 1) % 8]),
                    line,
                    one([1, 5, 20, 150]),
                    number(10, 99),
                    one([0.05, 0.06]),
                    0.01,
                )
                dates = (shipped, one(["1994-03-05", "1994-05-01"]), one(["1994-03-20", "1994-06-01"]))
                how = ("DELIVER IN PERSON", one(["MAIL", "AIR"]))
                lines.append((*values, one(["R", "N"]), one(["F", "O"]), *dates, *how))
        self.insert(f"orders{suffix}", orders)
        self.insert(f"lineitem{suffix}", lines)

    def changed(self, kind: Changed) -> Reading:
        for name in FACTS:
            for suffix in ("added", "removed"):
                self.connection.execute(
                    f"CREATE OR REPLACE TABLE lake.main.{name}_{suffix} AS FROM lake.main.{name} LIMIT 0"
                )
            self.connection.execute(f"CREATE OR REPLACE TABLE lake.main.{name}_before AS FROM lake.main.{name}")
        if kind is Changed.APPENDED:
            self.new_orders("_added", 3)
            for name in FACTS:
                self.connection.execute(f"INSERT INTO lake.main.{name} FROM lake.main.{name}_added")
        else:
            gone = self.chance.sample(range(1, self.orders + 1), 4)
            for name, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
                where = f"WHERE {key} IN ({', '.join(map(str, gone))})"
                self.connection.execute(f"INSERT INTO lake.main.{name}_removed FROM lake.main.{name} {where}")
                self.connection.execute(f"DELETE FROM lake.main.{name} {where}")
        return Reading({
            BY_NAME[name].name: Change(
                f"lake.main.{name}", f"lake.main.{name}_added",
                None if kind is Changed.APPENDED else f"lake.main.{name}_removed", f"lake.main.{name}_before",
            )
            for name in FACTS
        })  # fmt: skip


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute("ATTACH ':memory:' AS lake")
        made.execute("USE lake.main")
        yield made


def offered(analysis: Analysis, kind: Changed) -> list[Strategy]:
    target = Table(("lake", "main", "target"), {name: analysis.kind(name) or "string" for name in analysis.outputs})
    changed = {BY_NAME[name].name: kind for name in FACTS if BY_NAME[name].name in analysis.sources}
    return [each for each in strategies_for(analysis, target, changed) if each.is_possible] if changed else []


@pytest.mark.parametrize("kind", list(Changed))
def test_every_strategy_leaves_the_right_rows(connection: duckdb.DuckDBPyConnection, kind: Changed) -> None:
    for number, query in QUERIES.items():
        Data(connection, number)
        analysis = analysed(connection, query)
        for strategy in offered(analysis, kind):
            data = Data(connection, number)
            connection.execute(f"CREATE OR REPLACE TABLE lake.main.target AS {in_duckdb(query)}")
            reading = data.changed(kind)
            own = Reading({name: change for name, change in reading.changes.items() if name in analysis.sources})
            probe = strategy.probe(own)
            assert probe is None or not connection.execute(in_duckdb(probe)).fetchall(), (number, strategy.name)
            try:
                for statement in strategy.statements(own):
                    write(connection, statement)
            except duckdb.NotImplementedException:
                # DuckDB cannot join in a correlated subquery.
                continue
            columns = ", ".join(f'"{name}"' for name in analysis.outputs)
            difference = connection.execute(
                f"SELECT {columns}, sum(net) FROM (SELECT {columns}, 1 AS net FROM ({in_duckdb(query)}) UNION ALL "
                f"SELECT {columns}, -1 FROM lake.main.target) GROUP BY {columns} HAVING sum(net) <> 0"
            ).fetchall()
            assert not difference, (number, strategy.name, difference)


def test_most_queries_are_incremental(
    connection: duckdb.DuckDBPyConnection, capsys: pytest.CaptureFixture[str]
) -> None:
    """Print for each query the best strategy after appends and after deletes, of its own target and of its states."""
    Data(connection, 1)
    best: dict[int, list[str]] = {}
    for number, query in QUERIES.items():
        analysis = analysed(connection, query)
        if not offered(analysis, Changed.ANY):
            continue
        found = [offered(analysis, kind)[0].name for kind in Changed]
        try:
            states = analysed(connection, states_of(analysis).states)
            found += [offered(states, kind)[0].name for kind in Changed]
        except NotProven:
            found += [StrategyName.FULL, StrategyName.FULL]
        best[number] = [str(name) for name in found]
    with capsys.disabled():
        for number, names in best.items():
            sys.stdout.write(f"\n  {number}: appends {names[0]}, deletes {names[1]}; states: {names[2]}, {names[3]}")
        sys.stdout.write("\n")
    assert len(best) == 19
    assert sum(names[0] != StrategyName.FULL for names in best.values()) >= 15
    assert sum(bool({names[0], names[2]} & _DELTAS) for names in best.values()) >= 16
    assert sum(bool({names[1], names[3]} & _DELTAS) for names in best.values()) >= 16


def test_states_and_results_are_the_query(connection: duckdb.DuckDBPyConnection) -> None:
    Data(connection, 2)
    checked = 0
    for number, query in QUERIES.items():
        analysis = analysed(connection, query)
        try:
            states = states_of(analysis)
        except NotProven:
            continue
        connection.execute(f"CREATE OR REPLACE TABLE lake.main.states AS {in_duckdb(states.states)}")
        result = in_duckdb(states.result_from("lake.main.states"))
        expected = connection.execute(f"FROM ({in_duckdb(query)}) ORDER BY ALL").fetchall()
        assert connection.execute(f"FROM ({result}) ORDER BY ALL").fetchall() == expected, number
        checked += 1
    assert checked >= 14
