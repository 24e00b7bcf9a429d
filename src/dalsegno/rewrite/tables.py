"""What the rewriter knows of tables: names, columns, partitions, and how they changed. Callers hand all of it in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dalsegno.rewrite.facts import Fact

#: The parts of a name, catalog first.
Name = tuple[str, ...]

_SYNONYMS = {
    **{"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint", "timestamptz": "timestamp"},
    **{"timestamp_ltz": "timestamp", "dec": "decimal", "numeric": "decimal", "real": "float"},
}
#: With a hundred bytes each it is what Spark broadcasts without being asked to, and twice that.
_FEW_ROWS = 200_000
_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
#: Two values of these types are equal exactly if they are the same value, and Iceberg stores them unchanged.
_EXACT = _INTEGERS | {"boolean", "string", "date", "timestamp", "timestamp_ntz", "binary"}


def type_of(text: str) -> str:
    """A type as Spark writes it, in one spelling."""
    written = re.sub(r"\s+", "", text.lower())
    base, bracket, rest = written.partition("(")
    return _SYNONYMS.get(base, base) + bracket + rest


def is_exact(kind: str | None) -> bool:
    """Whether values of a type can identify rows: no floating point, CHAR, collation, map or unknown type."""
    return kind is not None and (kind in _EXACT or bool(re.fullmatch(r"decimal(\(\d+(,\d+)?\))?", kind)))


def is_comparable(one: str | None, other: str | None) -> bool:
    """Whether ``=`` compares values of both types without changing any of them."""
    return is_exact(one) and (one == other or {one, other} <= _INTEGERS)


@dataclass(frozen=True)
class PartitionField:
    """A field of a partition spec."""

    column: str
    #: As Iceberg writes it: ``identity``, ``day``, ``bucket[16]``.
    transform: str = "identity"


@dataclass(frozen=True)
class Table:
    """A source or a target, with its columns as they were frozen when the query was pushed."""

    name: Name
    #: Column → type, in order.
    columns: Mapping[str, str]
    partitions: tuple[PartitionField, ...] = ()
    #: Columns that are never NULL.
    required: frozenset[str] = frozenset()
    #: Whether a target has so few bytes that replacing all of it costs no more than finding a part of it.
    is_small: bool = False
    #: What is known of its rows: the author has stated it, and it was checked or is trusted.
    facts: tuple[Fact, ...] = ()

    @cached_property
    def by_lower_name(self) -> Mapping[str, str]:
        """Column in lower case → as it is written."""
        return {column.lower(): column for column in self.columns}

    def type_of(self, column: str) -> str | None:
        """The type of a column, whatever its case; None if there is no such column."""
        written = self.by_lower_name.get(column.lower())
        return None if written is None else type_of(self.columns[written])

    def __str__(self) -> str:
        return ".".join(self.name)


@dataclass(frozen=True)
class Change:
    """What changed in one source, as relations that can stand behind FROM: names, or queries in parentheses.

    ``added`` minus ``removed``, counting each row as often as it is there, is exactly what lies between ``before`` and
    ``after``. Rows that are in both cancel out.
    """

    #: The whole source at the end of the range, such as ``lake.media.playback VERSION AS OF 12``.
    after: str
    added: str
    #: None: rows were only appended, and ``added`` holds these rows alone.
    removed: str | None = None
    #: The whole source at the beginning of the range; None if it was empty.
    before: str | None = None
    #: A predicate of ``iceberg.predicates`` that holds for each changed row: "true" if unknown, "false" if none.
    partition_filter: str = "true"
    #: The same for changed rows in partitions that were there before; None: as ``partition_filter``.
    reopened_filter: str | None = None
    #: All changed rows, as they were and as they are, if one relation has both: it is read once instead of twice.
    changed: str | None = None
    #: Column in lower case → a predicate of ``iceberg.predicates`` on it that holds for each changed row.
    ranges: Mapping[str, str] = field(default_factory=dict)
    #: How many rows were added to partitions that were there before; None: not known.
    late_rows: int | None = None
    #: The columns in lower case that decide in which partition a row is; None: not known. Rows that are equal in only
    #: some of them may be in a partition that was there before, and in one that was not.
    partitioned_by: frozenset[str] | None = None
    #: Columns in lower case whose added values are all larger than any value that the table had before in the
    #: partitions of ``reopened_filter``; no added value is NULL. And those for which this is so in all partitions.
    later_in_reopened: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()


def with_columns(relation: str, had: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """A state of a table with other columns than it had: new ones are NULL, and types are the wanted ones.

    A snapshot is read with the schema that it was written with.
    """
    by_lower = {name.lower(): name for name in had}
    shown = []
    for name, kind in wanted.items():
        written = by_lower.get(name.lower())
        value = "NULL" if written is None else f"s.{quoted(written)}"
        is_same = written is not None and type_of(had[written]) == type_of(kind)
        shown.append(f"{value if is_same else f'CAST({value} AS {kind})'} AS {quoted(name)}")
    return f"(SELECT {', '.join(shown)} FROM {relation} s)"


@dataclass(frozen=True)
class Reading:
    """What one run reads: the sources that changed, and the state in which it reads the others."""

    changes: Mapping[Name, Change]
    #: Source → relation. A source that is in neither is read under its own name.
    others: Mapping[Name, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether no row changed, as after a rollback to what was there before."""
        return all(change.partition_filter == "false" for change in self.changes.values())

    @property
    def has_few_late_rows(self) -> bool:
        """Whether what came late fits into the memory of each executor many times."""
        late = [change.late_rows for change in self.changes.values()]
        return all(rows is not None and rows <= _FEW_ROWS for rows in late)


def quoted(*parts: str) -> str:
    """A name as SQL."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def quoted_list(columns: Iterable[str], alias: str = "") -> str:
    return ", ".join(f"{alias}{quoted(column)}" for column in columns)
