"""The partitions of a declared table: derived from its sources, or as its author writes them."""

from __future__ import annotations

from collections.abc import Iterable

from dalsegno.rewrite.tables import PartitionField, Table, quoted


def derived_partitions(outputs: Iterable[str], sources: Iterable[Table]) -> tuple[PartitionField, ...]:
    """Those of the first source whose partition columns are among the outputs."""
    by_lower = {name.lower(): name for name in outputs}
    for source in sources:
        if found := [each for each in source.partitions if each.column.lower() in by_lower and not _is_bucket(each)]:
            return tuple(PartitionField(by_lower[each.column.lower()], each.transform) for each in found)
    return ()


def _is_bucket(field: PartitionField) -> bool:
    return field.transform.startswith(("bucket", "truncate"))


def partition_field(text: str) -> PartitionField:
    """``event_day``, ``days(event_time)`` or ``bucket(16, id)``."""
    function, bracket, rest = text.strip().rstrip(")").partition("(")
    if not bracket:
        return PartitionField(function.strip("` "))
    *width, column = (part.strip("` ") for part in rest.split(","))
    unit = function.strip().lower().removesuffix("s")
    return PartitionField(column, f"{unit}[{width[0]}]" if width else unit)


def written_partitions(table: Table) -> str:
    """The partitions of a table, as ``CREATE TABLE`` names them; empty, or followed by a space."""
    spec = ", ".join(_written_field(each) for each in table.partitions)
    return f"PARTITIONED BY ({spec}) " if spec else ""


def _written_field(field: PartitionField) -> str:
    transform, bracket, width = field.transform.rstrip("]").partition("[")
    column = quoted(field.column)
    if transform == "identity":
        return column
    return f"{transform}({width}, {column})" if bracket else f"{transform}s({column})"
