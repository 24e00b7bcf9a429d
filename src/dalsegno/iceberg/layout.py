"""How a table's values are stored and said: its schema, its partition specs, its bounds."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from pyiceberg.conversions import from_bytes
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DecimalType,
    NestedField,
    PrimitiveType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    UUIDType,
)
from pyiceberg.utils.decimal import unscaled_to_decimal

from dalsegno.errors import UnknownName, UserError
from dalsegno.hints import did_you_mean
from dalsegno.iceberg.history import RawMetadata
from dalsegno.iceberg.partition_specs import PartitionField, PartitionSpec, partition_specs
from dalsegno.iceberg.values import said, said_unit

_DAY_MS = 86_400_000


class UnreadableBound(Exception):
    """A bound that was written for another type of the column."""


@dataclass(frozen=True)
class Layout:
    """A table's schema at one of its states, and all of its partition specs."""

    metadata: RawMetadata
    schema_id: int

    @cached_property
    def schema(self) -> Schema:
        raw = self._raw_schema
        try:
            return Schema.model_validate(raw)
        except ValueError:
            return Schema.model_validate({**raw, "fields": [_nameable(item) for item in raw["fields"]]})

    @cached_property
    def _raw_schema(self) -> Mapping[str, Any]:
        schemas = self.metadata.get("schemas") or [self.metadata["schema"]]
        return next(schema for schema in schemas if schema.get("schema-id", 0) == self.schema_id)

    @cached_property
    def specs(self) -> dict[int, PartitionSpec]:
        return partition_specs(self.metadata)

    def column(self, name: str) -> NestedField:
        """The column of that name, which must hold single values."""
        try:
            field = self.schema.find_field(name)
        except ValueError:
            names = self.schema.column_names
            hint = did_you_mean(name, names, f"Columns: {', '.join(names)}.")
            raise UnknownName(f"There is no column {name!r}.", hint=hint) from None
        if not isinstance(field.field_type, PrimitiveType):
            raise UserError(f"Column {name!r} is a {field.field_type}; expected a column of single values.")
        return field

    def top_columns(self) -> list[str]:
        """The names of the columns that ``*`` stands for."""
        return [field.name for field in self.schema.fields]

    def incomparable_columns(self) -> list[str]:
        """The columns that hold, at any depth, what no engine can compare."""
        return [field["name"] for field in self._raw_schema["fields"] if _holds_incomparable(field["type"])]

    def column_name(self, field_id: int) -> str:
        """The name of a column, or its id if the schema no longer has it."""
        return self.schema.find_column_name(field_id) or str(field_id)

    def column_path(self, field_id: int) -> tuple[str, ...] | None:
        """The names that lead to a column, from struct to struct; None if there are none, as into a list."""
        return _path(self.schema.fields, field_id)

    def has_column(self, name: str) -> bool:
        try:
            return isinstance(self.schema.find_field(name).field_type, PrimitiveType)
        except ValueError:
            return False

    def event_time_column(self) -> NestedField | None:
        """The first column that some spec partitions by as a time: a fair guess at the time of the event."""
        for _, fields in sorted(self.specs.items(), reverse=True):
            for item in fields:
                field = self._source(item)
                if field and (item.is_identity or item.unit) and is_time(field):
                    return field
        return None

    def identity_position(self, spec_id: int, field: NestedField) -> int | None:
        """Where in a spec's tuples a column stands unchanged, if it does."""
        for position, item in enumerate(self.specs[spec_id]):
            if item.source_id == field.field_id and item.is_identity:
                return position
        return None

    def is_unpartitioned(self, spec_id: int) -> bool:
        return all(item.is_void for item in self.specs[spec_id])

    def partition(self, spec_id: int, values: Sequence[Any]) -> dict[str, Any]:
        """A partition's values by field name, as people write them."""
        fields = self.specs[spec_id]
        return {item.name: self._said(item, value) for item, value in zip(fields, values, strict=True)}

    def partition_bound(self, spec_id: int, position: int, bound: bytes | None) -> Any:
        """A bound of a partition field as it stands in partition tuples; None if unknown."""
        item = self.specs[spec_id][position]
        source = self._source(item)
        # Writers do not agree on the order of uuids: some take their bytes as signed numbers.
        if bound is None or source is None or isinstance(source.field_type, UUIDType):
            return None
        return read_bound(item.result_type(source.field_type), bound)

    def _source(self, item: PartitionField) -> NestedField | None:
        try:
            return self.schema.find_field(item.source_id)
        except ValueError:
            return None

    def _said(self, item: PartitionField, value: Any) -> Any:
        source = self._source(item)
        if value is None or source is None:
            return None if value is None else str(value)
        if item.keeps_values:
            return said(source.field_type, _logical(source.field_type, value))
        if isinstance(value, int):
            return value if item.unit is None else said_unit(item.unit, value)
        return str(value)


def _path(fields: Sequence[NestedField], field_id: int) -> tuple[str, ...] | None:
    for field in fields:
        if field.field_id == field_id:
            return (field.name,)
        below = _path(field.field_type.fields, field_id) if isinstance(field.field_type, StructType) else None
        if below is not None:
            return (field.name, *below)
    return None


def _nameable(field: Mapping[str, Any]) -> Mapping[str, Any]:
    """A field as it is or, if PyIceberg does not know its type (variant, say), as an empty struct of its name."""
    kind = field["type"]
    if isinstance(kind, Mapping) and kind["type"] == "struct":
        return {**field, "type": {**kind, "fields": [_nameable(item) for item in kind["fields"]]}}
    try:
        NestedField.model_validate(field)
    except ValueError:
        return {**field, "type": {"type": "struct", "fields": []}}
    return field


def _holds_incomparable(kind: Any) -> bool:
    if isinstance(kind, str):
        return kind.startswith(("variant", "geometry", "geography"))
    inner = [item["type"] for item in kind.get("fields", ())]
    inner += [kind[part] for part in ("element", "key", "value") if part in kind]
    return any(map(_holds_incomparable, inner))


def is_time(field: NestedField) -> bool:
    return isinstance(
        field.field_type, DateType | TimestampType | TimestamptzType | TimestampNanoType | TimestamptzNanoType
    )


def read_bound(kind: Any, bound: bytes) -> Any:
    """A bound's value; dates and times stay numbers, which compare alike."""
    try:
        return from_bytes(kind, bound)
    except (struct.error, ValueError) as error:
        raise UnreadableBound(str(error)) from error


def to_epoch_ms(field: NestedField, value: int) -> int:
    """A stored date or time as milliseconds since 1970."""
    if isinstance(field.field_type, DateType):
        return value * _DAY_MS
    if isinstance(field.field_type, TimestampNanoType | TimestamptzNanoType):
        return value // 1_000_000
    return value // 1000


def _logical(kind: Any, value: Any) -> Any:
    if isinstance(kind, DecimalType) and isinstance(value, bytes):
        return unscaled_to_decimal(int.from_bytes(value, "big", signed=True), kind.scale)
    if isinstance(kind, UUIDType) and isinstance(value, bytes):
        return UUID(bytes=value)
    return value
