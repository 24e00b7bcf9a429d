"""Tables of the catalogs as the rewriter sees them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dalsegno.capture.lake import Lake
from dalsegno.errors import UnknownName, UserError
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.model.tables import TableName
from dalsegno.rewrite.analysis import tables_in
from dalsegno.rewrite.tables import Name, PartitionField, Table

#: The primitive types of Iceberg that Spark calls otherwise.
_SPARK_TYPES = {"long": "bigint", "timestamptz": "timestamp", "timestamp": "timestamp_ntz"}


def parts_of(name: TableName) -> Name:
    return (name.catalog, *name.identifier)


def current_namespace(lake: Lake) -> Name:
    """The catalog, and the namespace if there is one, of names without."""
    namespace = lake.settings.default_namespace
    return (lake.settings.default_catalog, *(namespace.split(".") if namespace else ()))


def sources_of(lake: Lake, query: str) -> dict[Name, LoadedTable]:
    """The tables that a query reads, each once, by their full names."""
    found: dict[Name, LoadedTable] = {}
    for written in tables_in(query):
        name = lake.name(".".join(written))
        if parts_of(name) not in found:
            found[parts_of(name)] = lake.load(name)
    if not found:
        raise UserError("The query reads no table, so nothing in it can ever change.")
    return found


def find(lake: Lake, name: TableName) -> LoadedTable | None:
    try:
        return lake.load(name)
    except UnknownName:
        return None


def described(table: LoadedTable) -> Table:
    """A table with the columns and partitions that it has now."""
    schema, spec = _current(table.metadata)
    names = {field["id"]: field["name"] for field in schema["fields"]}
    return Table(
        parts_of(table.name),
        {field["name"]: spark_type(field["type"]) for field in schema["fields"]},
        tuple(
            PartitionField(names[field["source-id"]], field["transform"])
            for field in spec["fields"]
            if field.get("source-id") in names and field["transform"] != "void"
        ),
        frozenset(field["name"] for field in schema["fields"] if field.get("required")),
    )


def spark_type(kind: Any) -> str:
    """A type of Iceberg as Spark writes it."""
    if isinstance(kind, str):
        return _SPARK_TYPES.get(kind, re.sub(r"\s+", "", kind))
    match kind["type"]:
        case "struct":
            fields = (f"{each['name']}:{spark_type(each['type'])}" for each in kind["fields"])
            return f"struct<{','.join(fields)}>"
        case "list":
            return f"array<{spark_type(kind['element'])}>"
        case _:
            return f"map<{spark_type(kind['key'])},{spark_type(kind['value'])}>"


def _current(metadata: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    schemas = metadata.get("schemas") or [metadata["schema"]]
    schema_id = metadata.get("current-schema-id", 0)
    specs = metadata.get("partition-specs") or [{"spec-id": 0, "fields": metadata["partition-spec"]}]
    spec_id = metadata.get("default-spec-id", 0)
    schema = next(each for each in schemas if each.get("schema-id", 0) == schema_id)
    return schema, next(each for each in specs if each["spec-id"] == spec_id)
