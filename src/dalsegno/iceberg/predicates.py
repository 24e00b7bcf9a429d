"""What a capture touched, as predicates of Spark SQL: columns in backticks, values as literals of their type.

Whoever merges into a table that is partitioned alike says with one which partitions can be concerned, and no others are
read. So a predicate holds for every row that it is about. It may hold for more: what cannot be written for certain,
such as a bucket or a binary, is left out, up to ``true``. A compound one stands in parentheses, so that it can be put
into any condition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from dalsegno.iceberg.layout import Layout
from dalsegno.iceberg.partition_specs import IDENTITY, PartitionField
from dalsegno.iceberg.partitions import Novelty, Partition
from dalsegno.iceberg.values import ends_of_unit

EVERYTHING, NOTHING = "true", "false"


@dataclass(frozen=True)
class PartitionFilters:
    """The rows of all touched partitions; and of those the new and the re-opened ones, which have no row in common."""

    every: str
    new: str
    reopened: str


@dataclass(frozen=True)
class _Condition:
    """What is known of one column in a partition: a value, null, or a half-open span of time."""

    column: str
    transform: str
    #: As literals; both None for null, the same for a single value.
    since: str | None
    until: str | None


#: What can be said of a partition, column by column.
_Conditions = tuple[_Condition, ...]


def range_filter(path: Sequence[str] | None, kind: IcebergType, low: Any, high: Any, *, has_nulls: bool) -> str:
    """The rows from one value of a column to another, both included."""
    if path is None:
        return EVERYTHING
    column = _quoted_path(path)
    found = [f"{column} IS NULL"] if has_nulls else []
    if low is not None:
        ends = [_literal(kind, low), _literal(kind, high)]
        if None in ends:
            return EVERYTHING
        found = [_equal_or_between(column, *map(str, ends)), *found]
    return any_of(found)


def partition_filters(layout: Layout, partitions: Sequence[Partition] | None) -> PartitionFilters:
    """The rows of partitions; everything if it is not known which they are."""
    if partitions is None:
        # Nobody knows that anything is new, and what is not is re-opened.
        return PartitionFilters(EVERYTHING, NOTHING, EVERYTHING)
    conditions = [(_conditions(layout, partition), partition.novelty is Novelty.NEW) for partition in partitions]
    every = {each for each, _ in conditions}
    reopened = {each for each, is_new in conditions if not is_new}
    if reopened and len({_shape(each) for each in every}) > 1:
        # Partitions of different shapes may overlap: what is new in one may have been there in another.
        reopened = every
    return PartitionFilters(_filter(every), _filter(every - reopened), _filter(reopened))


def _shape(conditions: _Conditions) -> tuple[tuple[str, str], ...]:
    return tuple((condition.column, condition.transform) for condition in conditions)


def _conditions(layout: Layout, partition: Partition) -> _Conditions:
    fields = layout.specs[partition.spec_id]
    found = (_condition(layout, item, partition.values.get(item.name)) for item in fields)
    return tuple(condition for condition in found if condition is not None)


def _condition(layout: Layout, item: PartitionField, value: Any) -> _Condition | None:
    """What a partition's value says about the column that it is made of; None if that cannot be written."""
    path = layout.column_path(item.source_id)
    if path is None or not (item.is_identity or item.unit):
        return None
    column, transform = _quoted_path(path), item.transform
    if value is None:
        return _Condition(column, transform, None, None)
    kind = layout.schema.find_field(item.source_id).field_type
    if item.is_identity:
        literal = _literal(kind, value)
        return None if literal is None else _Condition(column, transform, literal, literal)
    ends = [_literal(kind, moment) for moment in ends_of_unit(kind, str(value)) or ()]
    return None if not ends or None in ends else _Condition(column, transform, *ends)


def _filter(partitions: Collection[_Conditions]) -> str:
    if not partitions:
        return NOTHING
    by_shape: dict[tuple[tuple[str, str], ...], list[_Conditions]] = {}
    for conditions in partitions:
        by_shape.setdefault(_shape(conditions), []).append(conditions)
    return EVERYTHING if () in by_shape else any_of([_factored(each) for _, each in sorted(by_shape.items())])


def _factored(partitions: Iterable[_Conditions]) -> str:
    """The partitions of one shape; those that only differ in one column are told together."""
    ends: dict[_Conditions, set[_Condition]] = {}
    for conditions in partitions:
        ends.setdefault(conditions[:-1], set()).add(conditions[-1])
    beginnings: dict[frozenset[_Condition], list[_Conditions]] = {}
    for beginning, lasts in ends.items():
        beginnings.setdefault(frozenset(lasts), []).append(beginning)
    found = []
    for last, some in beginnings.items():
        condition = _of_column(last)
        found.append(f"({_factored(some)} AND {condition})" if some[0] else condition)
    return any_of(sorted(found))


def _of_column(conditions: Collection[_Condition]) -> str:
    """Any of several values of one column."""
    column, transform = next((each.column, each.transform) for each in conditions)
    known = sorted((each.since, each.until) for each in conditions if each.since is not None and each.until is not None)
    found: list[str]
    if transform == IDENTITY:
        found = [_equal_or_in(column, [value for value, _ in known])] if known else []
    else:
        found = [f"({column} >= {since} AND {column} < {until})" for since, until in _joined(known)]
    if len(known) < len(conditions):
        found.append(f"{column} IS NULL")
    return any_of(found)


def _joined(spans: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Spans with those joined that follow on each other."""
    joined: list[tuple[str, str]] = []
    for since, until in spans:
        follows = bool(joined) and joined[-1][1] == since
        joined.append((joined.pop()[0] if follows else since, until))
    return joined


def _equal_or_in(column: str, values: Sequence[str]) -> str:
    return f"{column} = {values[0]}" if len(values) == 1 else f"{column} IN ({', '.join(values)})"


def _equal_or_between(column: str, low: str, high: str) -> str:
    return f"{column} = {low}" if low == high else f"{column} BETWEEN {low} AND {high}"


def any_of(predicates: Iterable[str]) -> str:
    """One that holds where any of them does."""
    found = list(dict.fromkeys(each for each in predicates if each != NOTHING))
    if not found or EVERYTHING in found:
        return EVERYTHING if found else NOTHING
    return found[0] if len(found) == 1 else f"({' OR '.join(found)})"


def _literal(kind: IcebergType, said: Any) -> str | None:
    """A value as a literal that compares exactly; None where there is none."""
    written = _LITERALS.get(type(kind))
    return None if written is None else written(said)


_ESCAPES: Mapping[str, str] = {"\\": "\\\\", "'": "\\'", "$": "\\u0024", "\0": "\\u0000"}


def _text(value: str) -> str:
    """A text as Spark reads it back; a dollar sign could begin one of its variables, and no store holds NUL."""
    return "'" + "".join(_ESCAPES.get(character, character) for character in value) + "'"


def _quoted_path(path: Sequence[str]) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)


#: No numbers with a floating point: bounds leave "not a number" out.
_LITERALS: Mapping[type[IcebergType], Callable[[Any], str]] = {
    BooleanType: lambda said: "true" if said else "false",
    IntegerType: str,
    LongType: str,
    DecimalType: lambda said: f"{Decimal(said):f}BD",
    DateType: lambda said: f"DATE'{said}'",
    TimestampType: lambda said: f"TIMESTAMP_NTZ'{said.replace('T', ' ')}'",
    TimestamptzType: lambda said: f"TIMESTAMP_LTZ'{said.replace('T', ' ')}'",
    StringType: _text,
}
