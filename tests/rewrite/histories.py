"""Random histories of the tables that random queries read, through real Spark."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.iceberg.support import COPY_ON_WRITE, MERGE_ON_READ, Place, Source
from tests.rewrite.queries import REQUIRED, TABLES

_SPECS = {
    "facts": ["", "day", "day", "day", "day, kind", "days(at)", "bucket(2, id)"],
    "others": ["", "day", "day"],
    "dims": ["", "", "dim"],
}
_KINDS = [(1, COPY_ON_WRITE), (2, COPY_ON_WRITE), (2, MERGE_ON_READ), (3, COPY_ON_WRITE), (3, MERGE_ON_READ)]
_DAYS = ["DATE'2026-01-01'", "DATE'2026-01-02'", "DATE'2026-01-03'", "DATE'2025-06-01'"]


@dataclass
class RandomLake:
    """The tables of one history."""

    chance: random.Random
    tables: dict[str, Source]
    specs: dict[str, str]
    steps: list[str] = field(default_factory=list)

    @classmethod
    def begun(cls, place: Place, seed: int) -> RandomLake:
        chance = random.Random(seed)
        tables, specs = {}, {}
        for name, columns in TABLES.items():
            version, modes = chance.choice(_KINDS)
            specs[name] = chance.choice(_SPECS[name])
            required = REQUIRED[name]
            listed = ", ".join(
                f"{column} {kind}{' NOT NULL' * (column in required)}" for column, kind in columns.items()
            )
            tables[name] = place.table(listed, partitioned=specs[name], version=version, properties=modes)
        lake = cls(chance, tables, specs)
        for name in tables:
            lake.append(name, chance.randint(3, 8))
        return lake

    # Values.

    def value(self, column: str, kind: str) -> str:
        chance = self.chance
        if chance.random() < 0.12 and column != "q":
            return "null"
        match kind:
            case "date" | "string":
                return chance.choice(_DAYS if kind == "date" else ["'a'", "'b'", "'it''s'", "'ü'"])
            case "timestamp":
                return (
                    f"TIMESTAMP'2026-01-0{chance.randint(1, 3)} {chance.choice(['00:00:00', '23:30:00', '12:00:00'])}'"
                )
            case _ if kind.startswith("struct"):
                return f"named_struct('a', {chance.randint(0, 2)}, 'b', 'x')"
            case _ if kind.startswith("decimal"):
                return f"CAST({chance.randint(0, 5)}.{chance.randint(0, 99):02} AS {kind})"
            case _:
                return str(chance.randint(0, 3 if column in ("id", "dim") else 5))

    def row(self, name: str) -> str:
        return ", ".join(self.value(column, kind) for column, kind in TABLES[name].items())

    # What happens.

    def append(self, name: str, count: int | None = None) -> None:
        rows = ", ".join(f"({self.row(name)})" for _ in range(count or self.chance.randint(1, 4)))
        columns = ", ".join(TABLES[name])
        self.tables[name].sql(f"INSERT INTO {{t}} ({columns}) VALUES {rows}")

    def update(self, name: str) -> None:
        column, kind = self.chance.choice(list(TABLES[name].items()))
        self.tables[name].sql(f"UPDATE {{t}} SET {column} = {self.value(column, kind)} WHERE {self.some(name)}")

    def delete(self, name: str) -> None:
        self.tables[name].sql(f"DELETE FROM {{t}} WHERE {self.some(name)}")

    def some(self, name: str) -> str:
        return self.chance.choice({
            "facts": ["id = 1", "id IS NULL", "v > 3", "kind = 'a'", "day IS NULL"],
            "others": ["id = 2", "w < 2", "tag IS NULL"],
            "dims": ["dim = 1", "dim IS NULL", "factor > 2"],
        }[name])  # fmt: skip

    def delete_a_day(self, name: str) -> None:
        if "day" in TABLES[name]:
            self.tables[name].sql(f"DELETE FROM {{t}} WHERE day = {self.chance.choice(_DAYS)}")

    def overwrite(self, name: str) -> None:
        spark = self.tables[name].place.spark
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        rows = ", ".join(f"({self.row(name)})" for _ in range(2))
        self.tables[name].sql(f"INSERT OVERWRITE {{t}} ({', '.join(TABLES[name])}) VALUES {rows}")
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")

    def empty(self, name: str) -> None:
        columns = ", ".join(TABLES[name])
        self.tables[name].sql(f"INSERT INTO {{t}} ({columns}) SELECT {columns} FROM {{t}} WHERE false")

    def add_column(self, name: str) -> None:
        self.tables[name].sql(f"ALTER TABLE {{t}} ADD COLUMN extra_{len(self.steps)} int")

    def compact(self, name: str) -> None:
        source = self.tables[name]
        source.place.call(f"rewrite_data_files(table => '{source.name}', options => map('rewrite-all', 'true'))")

    def empty_out(self, name: str) -> None:
        self.tables[name].sql("DELETE FROM {t} WHERE true")

    def roll_back(self, name: str) -> None:
        source = self.tables[name]
        if len(source.snapshots) > 1:
            metadata = source.metadata
            parents = {raw["snapshot-id"]: raw.get("parent-snapshot-id") for raw in metadata["snapshots"]}
            if (parent := parents[source.head]) is not None:
                source.place.call(f"rollback_to_snapshot('{source.name}', {parent})")

    def append_pairs(self, name: str) -> None:
        """New rows that join with each other alone: keys that were never there."""
        key = 100 + len(self.steps)
        for name in ("facts", "others"):  # noqa: PLR1704 - whichever was drawn
            row = ", ".join(
                str(key) if column in ("id", "dim") else self.value(column, kind)
                for column, kind in TABLES[name].items()
            )
            self.tables[name].sql(f"INSERT INTO {{t}} ({', '.join(TABLES[name])}) VALUES ({row})")

    def go_on(self, *, appends_only: bool) -> None:
        kinds = {
            self.append: 16, self.update: 8, self.delete: 6, self.delete_a_day: 4, self.overwrite: 4, self.empty: 1,
            self.add_column: 1, self.compact: 1, self.empty_out: 2, self.roll_back: 2,
        }  # fmt: skip
        if appends_only:
            kinds = {self.append: 14, self.append_pairs: 6, self.empty: 1, self.add_column: 1, self.compact: 1}
        name = self.chance.choices(list(TABLES), [6, 3, 2])[0]
        step = self.chance.choices(list(kinds), list(kinds.values()))[0]
        self.steps.append(f"{step.__name__} {name}")
        step(name)
