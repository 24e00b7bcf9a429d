"""Views of the catalogs that a SELECT reads: they are expanded, so that the tables behind them can be captured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalsegno.capture.lake import Lake
from dalsegno.errors import UserError
from dalsegno.model.tables import TableName
from dalsegno.rewrite.tables import Name, Table
from dalsegno.rewrite.views import View, without_views
from dalsegno.steps.declared.sources import current_namespace, parts_of, spark_type

_DIALECT = "spark"
_QUERY_COLUMNS = "spark.query-column-names"


def over_tables(lake: Lake, query: str) -> str:
    """The query with each view replaced by its own query."""
    known: dict[Name, View | None] = {}

    def find(name: Name) -> View | None:
        if name not in known:
            known[name] = _view(lake, TableName(name[0], name[1:-1], name[-1]))
        return known[name]

    def resolve(name: Name, current: Name) -> Name:
        if current == current_namespace(lake):
            return parts_of(lake.name(".".join(name)))
        is_full = len(name) > 2 and name[0] in lake.settings.catalogs  # noqa: PLR2004 - catalog, namespace, name
        return name if is_full else (current[0], *(name if len(name) > 1 else (*current[1:], *name)))

    return without_views(query, current_namespace(lake), resolve, find)


def described_view(lake: Lake, name: TableName) -> Table | None:
    """A view with its columns; None if there is no such view."""
    metadata = _metadata(lake, name)
    if metadata is None:
        return None
    return Table(parts_of(name), {field["name"]: spark_type(field["type"]) for field in _fields(metadata)})


def _view(lake: Lake, name: TableName) -> View | None:
    metadata = _metadata(lake, name)
    if metadata is None:
        return None
    version = _version(metadata)
    queries = {each["dialect"].lower(): each["sql"] for each in version["representations"] if each["type"] == "sql"}
    if _DIALECT not in queries:
        raise UserError(
            f"The view {name} has no SQL for Spark, only for {', '.join(sorted(queries)) or 'nothing'}.",
            hint="Create the view with Spark, or name its tables in the query.",
        )
    columns = tuple(field["name"] for field in _fields(metadata))
    named = tuple(filter(None, metadata.get("properties", {}).get(_QUERY_COLUMNS, "").split(",")))
    current = (version.get("default-catalog") or name.catalog, *(version.get("default-namespace") or ()))
    return View(parts_of(name), queries[_DIALECT], current, columns, named if len(named) == len(columns) else ())


def _metadata(lake: Lake, name: TableName) -> Mapping[str, Any] | None:
    catalog = lake.catalog(name.catalog)
    return catalog.view_metadata(name) if catalog.has_view(name) else None


def _version(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    wanted = metadata["current-version-id"]
    found: Mapping[str, Any] = next(each for each in metadata["versions"] if each["version-id"] == wanted)
    return found


def _fields(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    wanted = _version(metadata)["schema-id"]
    found: list[Mapping[str, Any]] = next(
        each["fields"] for each in metadata["schemas"] if each.get("schema-id", 0) == wanted
    )
    return found
