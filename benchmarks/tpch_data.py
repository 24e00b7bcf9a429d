"""TPC-H's tables in Iceberg, and how orders come and go.

Orders come and go as TPC-H's refresh functions have it: ranges of neighbouring order numbers, each order with its
lines. ``orders`` and ``lineitem`` are in the order of these numbers, as tables are that grew by appends. They are not
partitioned: no date of TPC-H is in every query, and dates of one order number are spread over seven years.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from dalsegno.rewrite import Table, analyse
from dalsegno.rewrite.texts import Edit
from tests.rewrite.tpch import COLUMNS, QUERIES

CATALOG, NAMESPACE = "lake", "tpch"
ORDER_NUMBERS: Mapping[str, str] = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
#: Columns that no query reads; a table without them would be read faster than a real one.
_COMMENTS = {name: f"{name}_comment" for name in ("region", "nation")} | {
    "part": "p_comment",
    "partsupp": "ps_comment",
    "lineitem": "l_comment",
}
#: So that a table of some GB has as many files as one of some TB.
_FILE_BYTES = 16 * 1024 * 1024
#: TPC-H numbers its orders with gaps.
_NUMBERS_PER_SCALE = 6_000_000

Sql = Callable[..., list[dict[str, Any]]]


class Event(StrEnum):
    """What happens to orders between two refreshes."""

    NEW_01 = "0.1 % new"
    NEW_1 = "1 % new"
    GONE_01 = "0.1 % deleted"

    @property
    def share(self) -> float:
        return 0.01 if self is Event.NEW_1 else 0.001


@dataclass(frozen=True)
class Tpch:
    """The tables of one scale factor."""

    sql: Sql
    #: Where the generated files are.
    folder: Path
    scale: float
    #: How often each event will happen.
    rounds: int

    def generate(self) -> None:
        program = Path(sys.executable).with_name("tpchgen-cli")
        command = [str(program), "parquet", "-s", f"{self.scale:g}", f"--output-dir={self.folder}"]
        subprocess.run(command, check=True, capture_output=True)

    def create(self) -> None:
        """All tables, without the orders that come later."""
        self.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{NAMESPACE}")
        later = [self._range(event, number) for event in (Event.NEW_01, Event.NEW_1) for number in range(self.rounds)]
        for name, columns in COLUMNS.items():
            known = dict(columns)
            if name in _COMMENTS:
                known[_COMMENTS[name].replace("region_", "r_").replace("nation_", "n_")] = "string"
            listed = ", ".join(f"{column} {kind} NOT NULL" for column, kind in known.items())
            table, key = f"{CATALOG}.{NAMESPACE}.{name}", ORDER_NUMBERS.get(name)
            created = (
                f"CREATE TABLE {table} ({listed}) USING iceberg "
                f"TBLPROPERTIES ('write.target-file-size-bytes' = '{_FILE_BYTES}')"
            )
            where = ""
            if key is not None:
                where = "WHERE NOT (" + " OR ".join(_within(key, *each) for each in later) + ")"
            self.sql(created, f"INSERT INTO {table} {self._generated(name, known)} {where}")

    def happen(self, event: Event, number: int) -> None:
        """Let an event happen, each number once."""
        first, last = self._range(event, number)
        for name, key in ORDER_NUMBERS.items():
            table = f"{CATALOG}.{NAMESPACE}.{name}"
            where = f"WHERE {_within(key, first, last)}"
            if event is Event.GONE_01:
                self.sql(f"DELETE FROM {table} {where}")
            else:
                columns = [row["col_name"] for row in self.sql(f"SHOW COLUMNS IN {table}")]
                kinds = {**COLUMNS[name], **dict.fromkeys(set(columns) - set(COLUMNS[name]), "string")}
                selected = self._generated(name, {column: kinds[column] for column in columns})
                self.sql(f"INSERT INTO {table} {selected} {where}")

    def query(self, number: int) -> str:
        """A query of TPC-H with full names of tables."""
        current = (CATALOG, NAMESPACE)
        found = analyse(QUERIES[number], [Table((*current, name), columns) for name, columns in COLUMNS.items()],
                        current=current)  # fmt: skip
        return found.text.edited([Edit(each.start, each.end, ".".join(each.name)) for each in found.occurrences])

    def _generated(self, name: str, columns: Mapping[str, str]) -> str:
        listed = ", ".join(f"CAST({column} AS {kind}) AS {column}" for column, kind in columns.items())
        return f"SELECT {listed} FROM parquet.`{self.folder / f'{name}.parquet'}`"

    def _range(self, event: Event, number: int) -> tuple[int, int]:
        """The first and the last order number of an event."""
        most = self.scale * _NUMBERS_PER_SCALE
        begin = (0.1 + 0.2 * list(Event).index(event) + 0.8 * number) / self.rounds
        first = int(begin * most)
        return first, first + int(event.share * most) - 1


def _within(key: str, first: int, last: int) -> str:
    return f"{key} BETWEEN {first} AND {last}"


def differing(sql: Sql, one: str, other: str, columns: Sequence[str]) -> int:
    """How many rows two tables do not share, counting each as often as it is there."""
    listed = ", ".join(columns)
    [row] = sql(
        f"SELECT COUNT(*) AS rows FROM ((SELECT {listed} FROM {one} EXCEPT ALL SELECT {listed} FROM {other}) UNION ALL "
        f"(SELECT {listed} FROM {other} EXCEPT ALL SELECT {listed} FROM {one}))"
    )
    return int(row["rows"])
