"""Changes that the history of a source may not show, made up from its own rows and written to its clone.

They are the same for the same rows: rows are chosen by a hash, and no value is random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from dalsegno.rewrite.analysis import Analysis
from dalsegno.rewrite.facts import Fact
from dalsegno.rewrite.lineage import origins_in
from dalsegno.rewrite.relations import Block, blocks_in
from dalsegno.rewrite.tables import Name, Table, quoted

#: Rows of a source that a change is made of.
ROWS = 8
_FEW = 3
#: Types whose values cannot be compared, so rows that have them are copied without.
_OPAQUE = ("map<", "variant", "geo", "void", "unknown")


@dataclass(frozen=True)
class MadeUp:
    """A kind of change, and the statements that make it."""

    kind: str
    statements: tuple[str, ...]


@dataclass(frozen=True)
class Maker:
    """Makes changes of one source: ``table`` describes it, ``clone`` and ``sample`` are names as SQL."""

    table: Table
    clone: str
    sample: str
    #: What the query reads of it.
    used: tuple[str, ...]
    #: What it groups, joins or deduplicates by.
    keys: tuple[str, ...]
    #: What identifies a row by a fact that the author states: new rows need new values there.
    identifying: tuple[str, ...] = ()
    #: Columns of facts that nobody checks: a change must not contradict them, or the result is open.
    trusted: tuple[str, ...] = ()

    @classmethod
    def of(cls, analysis: Analysis, table: Table, clone: str, sample: str, facts: Sequence[Fact] = ()) -> Maker:
        read = {name for each in analysis.occurrences if each.name == table.name for name in each.columns}
        keys = set(_keys(analysis, table.name)) | {each.column for each in table.partitions}
        copied = [name for name, kind in table.columns.items() if not any(word in kind for word in _OPAQUE)]
        table = Table(table.name, {name: table.columns[name] for name in copied}, table.partitions, table.required)
        return cls(
            table,
            clone,
            sample,
            tuple(name for name in copied if name in read),
            tuple(name for name in copied if name in keys),
            tuple(dict.fromkeys(name for fact in facts for name in fact.columns)),
            tuple(name for fact in facts if fact.is_trusted for name in (*fact.columns, *fact.determined)),
        )

    def sampling(self, number: int) -> str:
        """Takes rows of the clone as it is now; another number, other rows."""
        columns = self._listed()
        # Rows that are alike would be matched twice.
        distinct = f"SELECT DISTINCT {columns} FROM {self.clone}"  # noqa: S608 - names are quoted
        order = f"xxhash64({columns}, {number}), {columns}"
        chosen = f"SELECT {columns} FROM ({distinct}) ORDER BY {order} LIMIT {ROWS}"  # noqa: S608
        return f"CREATE OR REPLACE TABLE {self.sample} USING iceberg AS {chosen}"

    def all(self) -> Iterator[MadeUp]:
        """Every kind that the columns allow."""
        values = [name for name in self.used if name not in (*self.keys, *self.identifying, *self.trusted)]
        keys = [name for name in self.keys if name not in self.trusted]
        yield MadeUp("late rows", (self._insert((*values, *self.identifying) or self.used),))
        if not self.trusted:
            yield MadeUp("duplicates", (self._insert(()),))
        nulled = self._nullable()
        if nulled and not self.trusted:
            yield MadeUp("NULLs added", (self._insert_nulls(nulled),))
        if values:
            yield MadeUp("values updated", (self._merge(self._set(values, _altered), ROWS),))
        if keys:
            yield MadeUp("keys updated", (self._merge(self._set(keys, _of_another), _FEW),))
        if nulled:
            yield MadeUp("updated to NULL", (self._merge(self._set(nulled, lambda *_: "NULL"), 1),))
        yield MadeUp("rows deleted", (self._merge("DELETE", _FEW),))
        if self.keys:
            yield MadeUp("groups deleted", (self._delete_groups(),))

    def returning(self, snapshot_id: int) -> MadeUp:
        """Rows that a snapshot had come back, so that later changes find some: groups that vanished appear again."""
        same = " AND ".join(f"c.{quoted(name)} <=> v.{quoted(name)}" for name in self.table.columns)
        gone = (
            f"SELECT {self._listed('v.')} FROM (SELECT * FROM {self.clone} VERSION AS OF {snapshot_id}) v "  # noqa: S608
            f"LEFT ANTI JOIN {self.clone} c ON {same}"
        )
        return MadeUp("rows return", (f"INSERT INTO {self.clone} ({self._listed()}) {gone}",))

    def several(self) -> tuple[str, ...]:
        """Rows that come and rows that go, for one refresh."""
        return self._insert((*self.used, *self.identifying)), self._merge("DELETE", _FEW)

    def _listed(self, prefix: str = "") -> str:
        return ", ".join(prefix + quoted(name) for name in self.table.columns)

    def _nullable(self) -> list[str]:
        return [name for name in self.used if name not in self.table.required and name not in self.trusted]

    def _insert(self, altered: Sequence[str]) -> str:
        values = [
            _altered(f"s.{quoted(name)}", kind) if name in altered else f"s.{quoted(name)}"
            for name, kind in self.table.columns.items()
        ]
        return f"INSERT INTO {self.clone} ({self._listed()}) SELECT {', '.join(values)} FROM {self.sample} s"  # noqa: S608

    def _insert_nulls(self, nulled: Sequence[str]) -> str:
        """A row for each column, which has no value there; and one in which all of them are missing."""
        rows = [
            f"(SELECT {self._with_nulls(each)} FROM {self.sample} s LIMIT 1)"  # noqa: S608
            for each in [*([name] for name in nulled), nulled]
        ]
        return f"INSERT INTO {self.clone} ({self._listed()}) {' UNION ALL '.join(rows)}"

    def _with_nulls(self, nulled: Sequence[str]) -> str:
        return ", ".join(
            f"CAST(NULL AS {kind}) AS {quoted(name)}" if name in nulled else f"s.{quoted(name)}"
            for name, kind in self.table.columns.items()
        )

    def _set(self, names: Sequence[str], value: Callable[[str, str], str]) -> str:
        said = (f"t.{quoted(name)} = {value(f's.{quoted(name)}', self.table.columns[name])}" for name in names)
        return f"UPDATE SET {', '.join(said)}"

    def _merge(self, then: str, most: int) -> str:
        same = " AND ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in self.table.columns)
        others = ", ".join(f"max({quoted(name)}) OVER () AS {_other(quoted(name))}" for name in self.keys)
        rows = f"SELECT *{', ' * bool(others)}{others} FROM {self.sample} ORDER BY {self._listed()} LIMIT {most}"  # noqa: S608
        return f"MERGE INTO {self.clone} t USING ({rows}) s ON {same} WHEN MATCHED THEN {then}"

    def _delete_groups(self) -> str:
        names = ", ".join(map(quoted, self.keys))
        same = " AND ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in self.keys)
        group = f"SELECT DISTINCT {names} FROM {self.sample} ORDER BY {names} LIMIT 1"  # noqa: S608
        return f"MERGE INTO {self.clone} t USING ({group}) s ON {same} WHEN MATCHED THEN DELETE"


def _keys(analysis: Analysis, table: Name) -> Iterator[str]:
    """The columns of a table that decide which rows come together."""
    for block in blocks_in(analysis.root):
        found: list[Any] = [*(block.groups or ()), *(each for parts, _ in block.windows for each in parts)]
        found += [side for edge in block.edges for side in (edge.one_side, edge.other_side)]
        found += block.outputs.values() if block.is_distinct else ()
        for column in (each for expression in found for each in expression.find_all(exp.Column)):
            yield from _origins(block, column, table)


def _origins(block: Block, column: exp.Column, table: Name) -> Iterator[str]:
    item = next((each for each in block.items if f"#{each.number}" == column.table), None)
    if item is not None and column.name in item.relation.names:
        yield from (each.column for each in origins_in(item.relation, column.name) or () if each.table == table)


def _other(name: str) -> str:
    return quoted(f"_other_{name.strip('`')}")


def _of_another(value: str, _: str) -> str:
    """The value that another row of the sample has: rows move to a group that exists."""
    alias, _, name = value.partition(".")
    return f"{alias}.{_other(name)}"


#: Another value of the same type, by type; NULL stays NULL.
_ALTERED = {
    "tinyint": "CAST(IF({0} > 100, {0} - 7, {0} + 7) AS TINYINT)",
    "smallint": "CAST(IF({0} > 100, {0} - 7, {0} + 7) AS SMALLINT)",
    "int": "IF({0} > 2000000000, {0} - 7, {0} + 7)",
    "bigint": "IF({0} > 2000000000, {0} - 7, {0} + 7)",
    "float": "CAST({0} + 1.5D AS FLOAT)",
    "double": "{0} + 1.5D",
    "string": "concat({0}, '~')",
    "date": "date_add({0}, 1)",
    "timestamp": "{0} + INTERVAL 61 SECONDS",
    "timestamp_ntz": "{0} + INTERVAL 61 SECONDS",
    "boolean": "NOT {0}",
}


def _altered(value: str, kind: str) -> str:
    """Another value; what cannot be altered stays."""
    if kind.startswith("decimal"):
        return f"coalesce(try_cast({value} + 1 AS {kind}), {value})"
    return _ALTERED.get(kind, "{0}").format(value)
