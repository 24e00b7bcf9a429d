"""Random queries, from a grammar over the operators that the rewriter knows, and some that it does not.

A query is made by its seed alone. What it returns depends on the rows alone: every order is total but for equal rows.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

#: Table → its columns and their types. Values come from small domains, so that rows meet.
TABLES: Mapping[str, Mapping[str, str]] = {
    "facts": {
        **{"id": "int", "day": "date", "kind": "string", "v": "int", "d": "decimal(9,2)", "dim": "int"},
        **{"at": "timestamp", "s": "struct<a:int,b:string>", "q": "int"},
    },
    "others": {"id": "int", "day": "date", "w": "bigint", "tag": "string", "dim": "int"},
    "dims": {"dim": "int", "name": "string", "factor": "int"},
}
#: Columns that are never NULL.
REQUIRED = {"facts": frozenset({"q"}), "others": frozenset(), "dims": frozenset[str]()}
_NUMBERS = ("int", "bigint", "decimal(9,2)")


@dataclass(frozen=True)
class Made:
    """A query, its columns, and which operators it was made with."""

    sql: str
    columns: Mapping[str, str]
    operators: frozenset[str]


@dataclass
class Maker:
    """Makes queries. ``names`` are the tables' names in SQL."""

    chance: random.Random
    names: Mapping[str, str]
    count: int = 0
    operators: set[str] = field(default_factory=set)
    ctes: list[tuple[str, str]] = field(default_factory=list)

    def fresh(self) -> str:
        self.count += 1
        return f"r{self.count}"

    def one(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def made(self) -> Made:
        depth = self.chance.choice([1, 1, 2, 2, 3])
        way = self.chance.random()
        make = self.query
        for limit, kind in ((0.3, self.grouped), (0.4, self.deduplicated), (0.6, self.joined)):
            if way < limit:
                make = kind
                break
        sql, columns = make(depth)
        if self.ctes:
            self.operators.add("CTE")
            listed = ", ".join(f"{name} AS ({body})" for name, body in self.ctes)
            sql = f"WITH {listed} {sql}"
        return Made(self.scribbled(sql), columns, frozenset(self.operators))

    def scribbled(self, sql: str) -> str:
        """With comments, other spaces and another case where they mean nothing."""
        if self.chance.random() < 0.3:
            sql = sql.replace("SELECT ", "select /* it's; FROM t */ ").replace(" FROM ", "\n  from -- ' comment\n")
        return sql + (" -- the end" if self.chance.random() < 0.2 else "")

    # What a FROM can name.

    def source(self, depth: int) -> tuple[str, str, dict[str, str]]:
        """Something to select from, how its columns are qualified, and its columns."""
        if depth <= 0 or self.chance.random() < 0.35:
            table = self.chance.choices(list(TABLES), [5, 3, 2])[0]
            columns = dict(TABLES[table])
            if self.chance.random() < 0.3:
                return self.names[table], self.names[table].split(".")[-1], columns
            alias = self.fresh()
            return f"{self.names[table]} {self.one('', 'AS ')}{alias}", alias, columns
        sql, columns = self.query(depth - 1)
        alias = self.fresh()
        if self.chance.random() < 0.25:
            self.ctes.append((alias, sql))
            return alias, alias, columns
        return f"({sql}) {alias}", alias, columns

    def query(self, depth: int) -> tuple[str, dict[str, str]]:
        kinds: list[tuple[int, Callable[[int], tuple[str, dict[str, str]]]]] = [
            (3, self.plain),
            (3, self.grouped),
            (2, self.distinct),
            (2, self.deduplicated),
            (2, self.windowed),
            (4, self.joined),
            (2, self.united),
            (1, self.exploded),
            (2, self.with_subquery),
            (1, self.twice),
        ]
        return self.chance.choices([make for _, make in kinds], [weight for weight, _ in kinds])[0](depth)

    # Conditions and columns.

    def condition(self, alias: str, columns: Mapping[str, str]) -> str:
        name = self.chance.choice(list(columns))
        column, kind = f"{alias}.{name}", columns[name]
        if kind in _NUMBERS:
            return self.one(
                f"{column} > 1", f"{column} IS NOT NULL", f"coalesce({column}, 0) <> 2", f"{column} IN (0, 1, 3)"
            )
        if kind == "string":
            return self.one(
                f"{column} <> 'it''s'", f"{column} IS NULL OR {column} = 'a'", f"upper({column}) IN ('A', 'B')"
            )
        if kind == "date":
            return self.one(f"{column} >= DATE'2026-01-02'", f"{column} IS NOT NULL")
        return f"{column} IS NOT NULL"

    def where(self, alias: str, columns: Mapping[str, str]) -> str:
        if self.chance.random() < 0.5:
            return ""
        self.operators.add("filter")
        return f" WHERE ({self.condition(alias, columns)})"

    def some(self, columns: Mapping[str, str], least: int = 1) -> list[str]:
        names = [name for name, kind in columns.items() if not kind.startswith("struct")]
        count = self.chance.randint(min(least, len(names)), min(len(names), 4))
        chosen = set(self.chance.sample(names, count))
        return [name for name in names if name in chosen]

    def projected(self, alias: str, columns: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """Columns as they are, renamed, or made into something."""
        shown, kinds = [], {}
        for name in self.some(columns):
            kind = columns[name]
            column = self.one(f"{alias}.{name}", f"{alias}.`{name}`")
            way = self.chance.random()
            new = self.one(name, name, f"{name}_x")
            if new in kinds:
                continue
            if way < 0.75:
                shown.append(column if new == name else f"{column} AS {new}")
                kinds[new] = kind
            elif kind in ("int", "bigint"):
                shown.append(f"CASE WHEN {column} > 1 THEN {column} + 1 ELSE {column} END AS {new}")
                kinds[new] = kind
            elif kind == "timestamp":
                shown.append(f"{self.one('date', 'to_date')}({column}) AS {new}")
                kinds[new] = "date"
            elif kind == "string":
                shown.append(f"upper({column}) AS {new}")
                kinds[new] = kind
            else:
                shown.append(f"{column} AS {new}")
                kinds[new] = kind
        if columns.get("s", "").startswith("struct") and self.chance.random() < 0.4 and "s_a" not in kinds:
            shown.append(f"{alias}.s.a AS s_a")
            kinds["s_a"] = "int"
        return shown, kinds

    # Queries.

    def plain(self, depth: int) -> tuple[str, dict[str, str]]:
        self.operators.add("projection")
        source, alias, columns = self.source(depth - 1)
        if self.chance.random() < 0.15 and not any(kind.startswith("struct") for kind in columns.values()):
            return f"SELECT * FROM {source}{self.where(alias, columns)}", dict(columns)
        shown, kinds = self.projected(alias, columns)
        numbers = [name for name, kind in columns.items() if kind == "int"]
        if numbers and self.chance.random() < 0.1:
            self.operators.add("lateral alias")
            one, other = self.fresh(), self.fresh()
            shown += [f"{alias}.{numbers[0]} AS {one}", f"{one} + 1 AS {other}"]
            kinds |= {one: "int", other: "int"}
        return f"SELECT {', '.join(shown)} FROM {source}{self.where(alias, columns)}", kinds

    def aggregates(self, alias: str, columns: Mapping[str, str], used: set[str]) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []
        for _ in range(self.chance.randint(1, 3)):
            name = self.chance.choice([name for name, kind in columns.items() if not kind.startswith("struct")])
            column, kind = f"{alias}.{name}", columns[name]
            choices = [("count(*)", "bigint"), (f"count({column})", "bigint"), (f"count(DISTINCT {column})", "bigint")]
            choices += [(f"min({column})", kind), (f"max({column})", kind), (f"count_if({column} IS NULL)", "bigint")]
            if kind in ("int", "bigint"):
                choices += [(f"sum({column})", "bigint"), (f"avg({column})", "double")]
            elif kind == "decimal(9,2)":
                choices += [(f"sum({column})", "decimal(19,2)"), (f"avg({column})", "decimal(13,6)")]
            sql, made = self.chance.choice(choices)
            new = f"m{len(found)}_{self.fresh()}"
            if new not in used:
                found.append((sql, new, made))
                self.operators.add(sql.split("(")[0] + (" distinct" if "DISTINCT" in sql else ""))
        return found

    def grouped(self, depth: int) -> tuple[str, dict[str, str]]:
        source, alias, columns = self.source(depth - 1)
        shown, kinds = self.projected(alias, columns) if self.chance.random() < 0.93 else ([], {})
        shown, kinds = shown[:3], dict(list(kinds.items())[:3])
        self.operators.add("GROUP BY" if shown else "total")
        measures = self.aggregates(alias, columns, set(kinds))
        if self.chance.random() < 0.4:
            # What a delta needs after deletes.
            counted = [
                sql.replace("sum(", "count(").replace("avg(", "count(")
                for sql, _, _ in measures
                if sql[:3] in ("sum", "avg")
            ]
            summed = [(sql.replace("avg(", "sum("), kind) for sql, _, kind in measures if sql.startswith("avg")]
            measures += [(sql, f"c_{self.fresh()}", "bigint") for sql in ["count(*)", *counted]]
            measures += [
                (sql, f"s_{self.fresh()}", "bigint" if kind == "double" else "decimal(19,2)") for sql, kind in summed
            ]
        listed = [*shown, *(f"{sql} AS {name}" for sql, name, _ in measures)]
        by = ""
        if shown:
            how = self.one("ALL", "ordinals", "names")
            bare = [each.rsplit(" AS ", 1)[0] for each in shown]
            by = {
                "ALL": "ALL",
                "ordinals": ", ".join(str(at + 1) for at in range(len(shown))),
                "names": ", ".join(bare),
            }[how]
            by = f" GROUP BY {by}"
        having = ""
        if self.chance.random() < 0.2:
            self.operators.add("HAVING")
            having = f" HAVING {self.one('count(*) > 1', 'count(*) < 3', f'{measures[0][1]} IS NOT NULL')}"
        kinds |= {name: kind for _, name, kind in measures}
        if shown and self.chance.random() < 0.1:
            self.operators.add("window of groups")
            key, name = shown[0].rsplit(" AS ", 1)[0], self.fresh()
            listed.append(f"sum(count(*)) OVER (PARTITION BY {key}) AS {name}")
            kinds[name] = "bigint"
        return f"SELECT {', '.join(listed)} FROM {source}{self.where(alias, columns)}{by}{having}", kinds

    def distinct(self, depth: int) -> tuple[str, dict[str, str]]:
        self.operators.add("DISTINCT")
        source, alias, columns = self.source(depth - 1)
        shown, kinds = self.projected(alias, columns)
        return f"SELECT DISTINCT {', '.join(shown)} FROM {source}{self.where(alias, columns)}", kinds

    def deduplicated(self, depth: int) -> tuple[str, dict[str, str]]:
        self.operators.add("ROW_NUMBER")
        source, alias, columns = self.source(depth - 1)
        by = self.some(columns)[:2]
        keys = ", ".join(f"{alias}.{name}" for name in by)
        plain = [name for name, kind in columns.items() if not kind.startswith("struct")]
        ordered = self.chance.sample(plain, len(plain))
        order = ", ".join(f"{alias}.{name}{self.one('', ' DESC', ' NULLS LAST')}" for name in ordered)
        number, inner = self.fresh(), self.fresh()
        listed = ", ".join(f"{alias}.{name}" for name in plain)
        sql = (
            f"SELECT {listed}, row_number() OVER (PARTITION BY {keys} ORDER BY {order}) AS {number} "
            f"FROM {source}{self.where(alias, columns)}"
        )
        kept = {name: columns[name] for name in plain}
        shown, kinds = self.projected(inner, kept)
        if self.chance.random() < 0.7:
            missing = [name for name in by if name not in kinds]
            shown += [f"{inner}.{name}" for name in missing]
            kinds |= {name: kept[name] for name in missing}
        more = f" AND ({self.condition(inner, kept)})" if self.chance.random() < 0.3 else ""
        return (
            f"SELECT {', '.join(shown)} FROM ({sql}) {inner} WHERE {self.one(f'{number} = 1', f'1 = {number}')}{more}",
            kinds,
        )

    def windowed(self, depth: int) -> tuple[str, dict[str, str]]:
        self.operators.add("window")
        source, alias, columns = self.source(depth - 1)
        shown, kinds = self.projected(alias, columns)
        keys = ", ".join(f"{alias}.{name}" for name in self.some(columns)[:2])
        name = self.fresh()
        numbers = [each for each, kind in columns.items() if kind in ("int", "bigint")]
        inside = f"sum({alias}.{self.chance.choice(numbers)})" if numbers else "count(*)"
        partition = f"PARTITION BY {keys}" if self.chance.random() < 0.85 else ""
        shown.append(f"{inside} OVER ({partition}) AS {name}")
        kinds[name] = "bigint"
        return f"SELECT {', '.join(shown)} FROM {source}{self.where(alias, columns)}", kinds

    def pairs(self, one: str, columns: Mapping[str, str], other: str, more: Mapping[str, str]) -> list[str]:
        """One or two equalities between columns of two relations, if there are any of one type."""
        alike = [(a, b) for a, kind in columns.items() for b, found in more.items() if kind == found]
        alike = [(a, b) for a, b in alike if columns[a] in ("int", "date", "string", "bigint")]
        alike = [pair for pair in alike if pair[0] == pair[1]] or alike
        chosen = self.chance.sample(alike, min(len(alike), self.chance.choice([1, 1, 2])))
        return [f"{one}.{a} {self.one('=', '=', '<=>')} {other}.{b}" for a, b in chosen]

    def joined(self, depth: int) -> tuple[str, dict[str, str]]:
        source, alias, columns = self.source(depth - 1)
        seen = {alias: columns}
        shown, kinds = self.projected(alias, columns)
        sql, conditions = source, []
        for _ in range(self.chance.choice([1, 1, 2])):
            right, other, more = self.source(depth - 1)
            # With one table before it, or with all of them.
            with_all = self.chance.random() < 0.3
            anchors = list(seen) if with_all else [self.chance.choice(list(seen))]
            equal = [pair for each in anchors for pair in self.pairs(each, seen[each], other, more)]
            if other in seen or not equal:
                continue
            ways = ["JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "CROSS JOIN"]
            how = self.chance.choices(ways, [5, 5, 1, 1, 1])[0]
            self.operators.add(how)
            if self.chance.random() < 0.15:
                equal.append(f"({self.condition(other, more)})")
            on = " AND ".join(equal)
            common = [name for name in seen[anchors[0]] if more.get(name) == seen[anchors[0]][name] == "int"]
            if len(seen) == 1 and common and how in ("JOIN", "LEFT JOIN") and self.chance.random() < 0.15:
                self.operators.add("USING")
                sql += f" {how} {right} USING ({common[0]})"
            else:
                sql += f" {how} {right}" + ("" if how == "CROSS JOIN" else f" ON {on}")
            conditions += [on] if how == "CROSS JOIN" else []
            if how in ("LEFT SEMI JOIN", "LEFT ANTI JOIN"):
                continue
            seen[other] = more
            extra, extra_kinds = self.projected(other, more)
            for each, (name, kind) in zip(extra, extra_kinds.items(), strict=True):
                if name not in kinds:
                    shown.append(each)
                    kinds[name] = kind
        filtered = self.chance.choice(list(seen))
        if self.chance.random() < 0.4:
            conditions.append(f"({self.condition(filtered, seen[filtered])})")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {', '.join(shown)} FROM {sql}{where}", kinds

    def united(self, depth: int) -> tuple[str, dict[str, str]]:
        one, columns = self.query(depth - 1) if depth > 1 else self.plain(0)
        source, alias, more = self.source(depth - 1)
        sides = []
        for kind in columns.values():
            fitting = [name for name, found in more.items() if found == kind]
            sides.append(f"{alias}.{self.chance.choice(fitting)}" if fitting else f"CAST(NULL AS {kind})")
        distinct = self.chance.random() < 0.2
        self.operators.add("UNION" if distinct else "UNION ALL")
        union = "UNION" if distinct else "UNION ALL"
        return f"{one} {union} SELECT {', '.join(sides)} FROM {source}{self.where(alias, more)}", columns

    def exploded(self, depth: int) -> tuple[str, dict[str, str]]:
        self.operators.add("LATERAL VIEW")
        source, alias, columns = self.source(depth - 1)
        shown, kinds = self.projected(alias, columns)
        name, view = self.fresh(), self.fresh()
        shown.append(f"{view}.{name}")
        kinds[name] = "int"
        first = f"{alias}.{self.chance.choice(list(columns))}"
        array = f"array(1, CASE WHEN {first} IS NULL THEN 1 ELSE 2 END)"
        return f"SELECT {', '.join(shown)} FROM {source} LATERAL VIEW explode({array}) {view} AS {name}", kinds

    def with_subquery(self, depth: int) -> tuple[str, dict[str, str]]:
        source, alias, columns = self.source(depth - 1)
        inner, other, more = self.source(0)
        shown, kinds = self.projected(alias, columns)
        same = [
            (a, b) for a, kind in columns.items() for b, found in more.items() if kind == found and kind != "double"
        ]
        same = [(a, b) for a, b in same if not columns[a].startswith("struct")]
        ways = ["total"]
        if same:
            ways += ["IN", "NOT IN", "EXISTS", "NOT EXISTS", "count"]
        how = self.chance.choice(ways)
        self.operators.add(f"subquery {how}")
        a, b = self.chance.choice(same) if same else ("", "")
        more_of_it = f" AND ({self.condition(other, more)})" if self.chance.random() < 0.3 else ""
        equal_rows = f"FROM {inner} WHERE {other}.{b} = {alias}.{a}{more_of_it}"
        compared = {
            "total": f"(SELECT count(*) FROM {inner}) > 2",
            "IN": f"{alias}.{a} IN (SELECT {other}.{b} FROM {inner})",
            "NOT IN": f"{alias}.{a} NOT IN (SELECT {other}.{b} FROM {inner})",
            "EXISTS": f"EXISTS (SELECT 1 {equal_rows})",
            "NOT EXISTS": f"NOT EXISTS (SELECT 1 {equal_rows})",
            "count": f"(SELECT count(*) {equal_rows}) <= 1",
        }[how]
        return f"SELECT {', '.join(shown)} FROM {source} WHERE {compared}", kinds

    def twice(self, depth: int) -> tuple[str, dict[str, str]]:
        """A CTE that is read twice, once grouped."""
        self.operators.add("CTE twice")
        sql, columns = self.plain(0)
        name = self.fresh()
        self.ctes.append((name, sql))
        key = next((each for each, kind in columns.items() if kind in ("int", "date", "string")), None)
        if key is None:
            return f"SELECT * FROM {name}", columns
        counted = f"SELECT {key} AS k, count(*) AS n FROM {name} GROUP BY 1"
        kinds = {key: columns[key], "n": "bigint"}
        return f"SELECT a.{key}, b.n FROM {name} a JOIN ({counted}) b ON a.{key} = b.k", kinds
