"""The columns that Hive and Glue list for an Iceberg table. Iceberg itself never reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: All others, such as variant and geometry, become a string: a metastore refuses names that it does not know.
_NAMES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ns": "timestamp",
    "binary": "binary",
    "unknown": "void",
}
_ZONED = frozenset({"timestamptz", "timestamptz_ns"})


def current_fields(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The columns of a table's current schema."""
    schemas = metadata.get("schemas") or [metadata["schema"]]
    current = metadata.get("current-schema-id", 0)
    return list(next(schema for schema in schemas if schema.get("schema-id", 0) == current)["fields"])


def column_type(type_: str | Mapping[str, Any], zoned: str) -> str:
    """Hive's name of an Iceberg type; ``zoned`` is what a timestamp with a time zone is called."""
    if isinstance(type_, str):
        if type_.startswith("fixed["):
            return "binary"
        if type_.startswith("decimal("):
            return type_.replace(" ", "")
        return zoned if type_ in _ZONED else _NAMES.get(type_, "string")
    match type_["type"]:
        case "list":
            return f"array<{column_type(type_['element'], zoned)}>"
        case "map":
            return f"map<{column_type(type_['key'], zoned)},{column_type(type_['value'], zoned)}>"
        case _:
            fields = (f"{each['name']}:{column_type(each['type'], zoned)}" for each in type_["fields"])
            return f"struct<{','.join(fields)}>"
