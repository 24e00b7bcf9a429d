"""SQL for one run: the user's own text with other relations in the place of tables, and statements around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from dalsegno.rewrite.analysis import Analysis
from dalsegno.rewrite.expressions import sql_of
from dalsegno.rewrite.keys import Carrier, Direct, Joined, Parts, Touch, Whole
from dalsegno.rewrite.linear import linear_scans
from dalsegno.rewrite.partitions import EVERYTHING, PassedPartitions
from dalsegno.rewrite.ranges import range_of, range_of_keys, where_all
from dalsegno.rewrite.relations import Occurrence, Scan
from dalsegno.rewrite.tables import Change, Name, Reading, Table, quoted, quoted_list
from dalsegno.rewrite.texts import Edit
from dalsegno.rewrite.touching import Replayed, TouchedKeys

KEYS = "_dalsegno_keys"
_OLD = "_dalsegno_old"
#: Nothing to read of a table that no column is read of.
_NO_COLUMN = "1 AS _dalsegno_row"


class Selected(str):
    """A query in parentheses that has the columns that the user's query reads, and no others."""

    __slots__ = ()


class Writer:
    """Writes the statements of one run."""

    def __init__(self, analysis: Analysis, target: Table, reading: Reading) -> None:
        self.analysis = analysis
        self.target = target
        self.reading = reading
        #: The columns of the target, in its order, as the query calls them.
        by_lower = {name.lower(): name for name in analysis.outputs}
        self.columns = [by_lower[name.lower()] for name in target.columns]
        self.name = quoted(*target.name)

    # Relations.

    def state(self, table: Table) -> str:
        """A source as this run reads it."""
        change = self.reading.changes.get(table.name)
        return change.after if change else self.reading.others.get(table.name, quoted(*table.name))

    def change(self, name: Name) -> Change:
        return self.reading.changes[name]

    def broadcast(self, alias: str, *, is_late: bool) -> str:
        """A hint for a side of a join that has about as many rows as came late, if these are known to be few.

        Spark would find out by itself, after it has begun to shuffle the other side.
        """
        return f"/*+ BROADCAST({alias}) */ " if is_late and self.reading.has_few_late_rows else ""

    def query(
        self, relation: Callable[[Occurrence], str | None] | None = None, edits: Sequence[Edit] | None = None
    ) -> str:
        """The user's query; ``relation`` gives what stands for an occurrence, None for the state of its table."""
        edits = list(self.analysis.edits if edits is None else edits)
        for occurrence in self.analysis.occurrences:
            if any(edit.start <= occurrence.start < edit.end for edit in edits):
                continue
            chosen = relation(occurrence) if relation else None
            edits.append(self._replaced(occurrence, chosen or self.state(occurrence.table)))
        return self.analysis.text.edited(edits)

    def _replaced(self, occurrence: Occurrence, relation: str) -> Edit:
        # A relation may have other columns besides, which ``*`` would show.
        body = relation if isinstance(relation, Selected) else self.selected(occurrence, relation)
        alias = f" {quoted(occurrence.implied_alias)}" if occurrence.implied_alias else ""
        return Edit(occurrence.start, occurrence.end, body + alias)

    def selected(self, occurrence: Occurrence, relation: str, where: str = "") -> Selected:
        """The columns that the query reads of a relation."""
        columns = quoted_list(occurrence.columns, "s.") or _NO_COLUMN
        return Selected(f"(SELECT {columns} FROM {relation} s{where})")

    def outputs(self, query: str, more: str = "", alias: str = "q") -> str:
        """The columns of a query in the target's order."""
        return f"SELECT {quoted_list(self.columns, f'{alias}.')}{more} FROM (\n{query}\n) {alias}"

    # Touched keys.

    def keys_sql(self, keys: TouchedKeys) -> str:
        """The touched values of a key, each once."""
        found = [self._touched(touch, keys.names) for touch in keys.touches]
        union = "\n    UNION ALL\n    ".join(dict.fromkeys(found))
        return f"SELECT DISTINCT * FROM (\n    {union}\n  )"

    def _touched(self, touch: Touch | Replayed, names: Sequence[str], depth: int = 1) -> str:
        match touch:
            case Direct(carrier):
                return self._changed(carrier.scan.table, carrier.key, names)
            case Joined(carriers, size, by):
                joined = [f"_dalsegno_{depth}_{number}" for number in range(len(carriers[0].key) - size)]
                rows = " UNION ALL ".join(self._rows(carrier, [*names, *joined], size, by) for carrier in carriers)
                condition = " AND ".join(f"f.{quoted(name)} <=> j.{quoted(name)}" for name in joined)
                inner = self._touched(by, joined, depth + 1)
                return f"SELECT {quoted_list(names, 'f.')} FROM ({rows}) f LEFT SEMI JOIN ({inner}) j ON {condition}"
            case Replayed(scan):
                return f"SELECT {quoted_list(names, 'q.')} FROM (\n{self.query(self._replayed(scan))}\n) q"

    def _rows(self, carrier: Carrier, names: Sequence[str], size: int, by: Touch) -> str:
        """A key, and behind it what is compared with the keys that ``by`` finds, in all rows that may have them."""
        ranges = [
            range_of(self.reading, by, at, f"s.{quoted(part.name)}")
            for at, part in enumerate(carrier.key[size:])
            if isinstance(part, exp.Column)
        ]
        return f"SELECT {_named(carrier.key, names, 's.')} FROM {self.state(carrier.scan.table)} s{where_all(ranges)}"

    def _changed(self, table: Table, key: Whole, names: Sequence[str]) -> str:
        """The key's values in all rows that came or went."""
        change = self.change(table.name)
        both = [change.added, *([change.removed] if change.removed else [])]
        relations = [change.changed] if change.changed else both
        return " UNION ALL ".join(f"SELECT {_named(key, names, 's.')} FROM {relation} s" for relation in relations)

    def _replayed(self, scan: Scan) -> Callable[[Occurrence], str | None]:
        """The changed rows for one read; for others in which the query is linear, all rows that were or are there."""
        linear = {each.occurrence for each in linear_scans(self.analysis.root)}

        def relation(occurrence: Occurrence) -> str | None:
            change = self.reading.changes.get(occurrence.name)
            if change is None or occurrence.number not in linear:
                return None
            is_it = occurrence.number == scan.occurrence
            present = change.added if is_it else change.after
            if is_it and change.changed:
                return change.changed
            if change.removed is None:
                return present
            both = [self.selected(occurrence, each)[1:-1] for each in (present, change.removed)]
            return Selected(f"(SELECT * FROM ({' UNION ALL '.join(both)}))")

        return relation

    def nothing(self, occurrence: Occurrence) -> str:
        """A table without rows."""
        return self.selected(occurrence, self.state(occurrence.table), " WHERE false")

    def restricted(
        self,
        keys: TouchedKeys,
        through: PassedPartitions | None = None,
        filters: Mapping[Name, str] | None = None,
        *,
        is_before: bool = False,
    ) -> str:
        """The query over the rows that have touched keys, read from the partitions that have any.

        ``is_before``: over the sources as they were before the range.
        """

        def relation(occurrence: Occurrence) -> str | None:
            parts: Parts = keys.restrictions.get(occurrence.number, ())
            pairs = [(name, part) for name, part in zip(keys.names, parts, strict=False) if part is not None]
            change = self.reading.changes.get(occurrence.name) if is_before else None
            if change is not None and change.before is None:
                return self.nothing(occurrence)
            state = self.state(occurrence.table) if change is None else change.before or ""
            if not pairs:
                return state
            compared = " AND ".join(f"{sql_of(part, 's.')} <=> k.{quoted(name)}" for name, part in pairs)
            wanted = KEYS
            if len(pairs) < len(keys.names):
                wanted = f"(SELECT DISTINCT {quoted_list(name for name, _ in pairs)} FROM {KEYS})"
            plain = {name: f"s.{quoted(part.name)}" for name, part in pairs if isinstance(part, exp.Column)}
            ranges = [range_of_keys(self.reading, keys, name, column) for name, column in plain.items()]
            pruning = _pruning(pairs, through, filters or {})
            where = f" LEFT SEMI JOIN {wanted} k ON {compared}{where_all([pruning, *ranges])}"
            return self.selected(occurrence, state, where)

        query = self.query(relation)
        if keys.is_exact:
            return query
        compared = " AND ".join(f"q.{quoted(name)} <=> k.{quoted(name)}" for name in keys.names)
        return f"SELECT q.* FROM (\n{query}\n) q LEFT SEMI JOIN {KEYS} k ON {compared}"

    def in_partitions(self, keys: TouchedKeys, through: PassedPartitions) -> str:
        """The query over the touched partitions alone, where Spark does not see that no others matter."""
        filters = {name: change.partition_filter for name, change in self.reading.changes.items()}

        def relation(occurrence: Occurrence) -> str | None:
            parts: Parts = keys.restrictions.get(occurrence.number, ())
            pairs = [(name, part) for name, part in zip(keys.names, parts, strict=False) if part is not None]
            pruning = _pruning(pairs, through, filters)
            state = self.state(occurrence.table)
            return state if pruning == EVERYTHING else self.selected(occurrence, state, f" WHERE {pruning}")

        return self.query(relation)

    # Statements.

    def full(self) -> str:
        return f"INSERT INTO {self.name} REPLACE WHERE true\n{self.outputs(self.query())}"

    def append(self, queries: Sequence[str]) -> str:
        body = "\nUNION ALL\n".join(self.outputs(query) for query in queries)
        return f"INSERT INTO {self.name} ({quoted_list(self.columns)})\n{body}"

    def replace_partitions(self, condition: str, query: str) -> str:
        return f"INSERT INTO {self.name} REPLACE WHERE {condition}\n{self.outputs(query)}\nWHERE {condition}"

    def merge(self, keys: TouchedKeys, query: str, keys_sql: str, pruning: str = "") -> str:
        """Delete what the target has of the touched keys, and insert what they are now, in one commit."""
        old = ", ".join(quoted(name) if name in keys.names else f"NULL AS {quoted(name)}" for name in self.columns)
        on = " AND ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in keys.names)
        columns, values = quoted_list(self.columns), quoted_list(self.columns, "s.")
        return f"""MERGE INTO {self.name} t
USING (
  WITH {KEYS} AS (
  {keys_sql}
  )
  SELECT {old}, true AS {_OLD} FROM {KEYS}
  UNION ALL
  {self.outputs(query, f", false AS {_OLD}")}
) s
ON {on} AND s.{_OLD}{pruning}
WHEN MATCHED THEN DELETE
WHEN NOT MATCHED AND NOT s.{_OLD} THEN INSERT ({columns}) VALUES ({values})"""


def _pruning(
    pairs: Sequence[tuple[str, exp.Expr]], through: PassedPartitions | None, filters: Mapping[Name, str]
) -> str:
    """What holds for all rows of a read that matter, if its columns are those that the partitions are passed by."""
    plain = {name: f"s.{quoted(part.name)}" for name, part in pairs if isinstance(part, exp.Column)}
    if through is None or not all(name in plain for names in through.columns.values() for name in names.values()):
        return EVERYTHING
    return through.predicate(filters, plain.__getitem__)


def _named(key: Whole, names: Sequence[str], alias: str) -> str:
    return ", ".join(f"{sql_of(part, alias)} AS {quoted(name)}" for part, name in zip(key, names, strict=True))
