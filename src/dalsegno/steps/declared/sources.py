"""Tables of the catalogs as the rewriter sees them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from dalsegno.capture.lake import Lake
from dalsegno.errors import UnknownName, UserError
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.model.tables import TableName
from dalsegno.rewrite.analysis import tables_in
from dalsegno.rewrite.tables import Name, PartitionField, Table, quoted

#: The columns of a query, and their types as Spark writes them.
DescribeQuery = Callable[[str], Mapping[str, str]]

#: So few bytes are in one file or two, which MERGE rewrites whatever it changes.
_SMALL_BYTES = 32 * 1024 * 1024
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
            found[parts_of(name)] = _loaded(lake, name)
    if not found:
        raise UserError("The query reads no table, so nothing in it can ever change.")
    return found


def _loaded(lake: Lake, name: TableName) -> LoadedTable:
    try:
        return lake.load(name)
    except UnknownName as error:
        catalog = lake.catalog(name.catalog)
        if not catalog.has_views:
            kind = catalog.settings.type
            error.hint = (
                f"If it is a view: dalsegno reads no views of a {kind} catalog. Name the view's tables instead."
            )
        raise


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
        _is_small(table),
    )


def _is_small(table: LoadedTable) -> bool:
    """Whether it has few bytes, as far as its snapshot tells."""
    head = table.history().head
    total = None if head is None else head.count("total-files-size")
    return total is not None and total <= _SMALL_BYTES


def as_now(relation: str, table: LoadedTable, schema_id: int | None) -> str:
    """A state of a table with the columns that the table has now: a snapshot is read with the schema of its own time.

    Columns are matched by their ids, since a renamed one is the same, and a new one of an old name is not.
    """
    now, _ = _current(table.metadata)
    schemas = {each.get("schema-id", 0): each for each in table.metadata.get("schemas") or [table.metadata["schema"]]}
    then = schemas.get(now.get("schema-id", 0) if schema_id is None else schema_id)
    if then is None or then["fields"] == now["fields"]:
        return relation
    known = {field["id"]: field for field in then["fields"]}
    columns = []
    for field in now["fields"]:
        kind, old = spark_type(field["type"]), known.get(field["id"])
        value = "NULL" if old is None else f"s.{quoted(old['name'])}"
        is_same = old is not None and spark_type(old["type"]) == kind
        columns.append(f"{value if is_same else f'CAST({value} AS {kind})'} AS {quoted(field['name'])}")
    return f"(SELECT {', '.join(columns)} FROM {relation} s)"


def state_at(table: LoadedTable, snapshot_id: int | None) -> str:
    """A table as of a snapshot; one without any has no version to name, and no rows."""
    name = quoted(*parts_of(table.name))
    if snapshot_id is None:
        return f"(SELECT * FROM {name} WHERE false)"
    schemas = {raw["snapshot-id"]: raw.get("schema-id") for raw in table.metadata.get("snapshots", ())}
    return as_now(f"{name} VERSION AS OF {snapshot_id}", table, schemas.get(snapshot_id))


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
