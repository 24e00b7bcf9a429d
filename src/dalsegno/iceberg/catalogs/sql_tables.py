"""The tables of a SQL catalog, as Iceberg's JDBC catalog and PyIceberg make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from sqlalchemy import Column, ColumnElement, Engine, MetaData, String, Table, create_engine, or_, select
from sqlalchemy.exc import DBAPIError

_metadata = MetaData()
entries = Table(
    "iceberg_tables",
    _metadata,
    Column("catalog_name", String, primary_key=True),
    Column("table_namespace", String, primary_key=True),
    Column("table_name", String, primary_key=True),
    Column("metadata_location", String),
    Column("previous_metadata_location", String),
    Column("iceberg_type", String),
)
namespaces = Table(
    "iceberg_namespace_properties",
    _metadata,
    Column("catalog_name", String, primary_key=True),
    Column("namespace", String, primary_key=True),
    Column("property_key", String, primary_key=True),
)
#: What PyIceberg reads of a catalog's properties before it connects.
_READ_FIRST = frozenset({"echo", "pool_pre_ping", "schema_version", "init_catalog_tables", "py-catalog-impl"})


class SqlTables:
    """An open database of a catalog."""

    def __init__(self, engine: Engine, *, has_kinds: bool) -> None:
        self.engine = engine
        #: Whether a column distinguishes views from tables; a catalog that was made long ago has none.
        self.has_kinds = has_kinds

    @classmethod
    def find(cls, properties: Mapping[str, str]) -> Self | None:
        """The tables, if they are there and as new ones are; PyIceberg, which takes long to load, sees to others."""
        if not properties.get("uri") or _READ_FIRST & properties.keys():
            return None
        engine = create_engine(properties["uri"])
        with engine.connect() as connection:
            try:
                for table in (entries, namespaces):
                    connection.execute(select(*table.c).limit(0))
            except DBAPIError:
                is_found = False
            else:
                is_found = True
        if not is_found:
            engine.dispose()
            return None
        return cls(engine, has_kinds=True)

    def is_table(self) -> ColumnElement[bool] | None:
        """The condition that a row is a table; None if there are no others."""
        kind = entries.c.iceberg_type
        return or_(kind == "TABLE", kind.is_(None)) if self.has_kinds else None

    def has_namespace(self, catalog: str, namespace: str) -> bool:
        query = select(namespaces.c.namespace).where(
            namespaces.c.catalog_name == catalog, namespaces.c.namespace == namespace
        )
        with self.engine.connect() as connection:
            return connection.execute(query.limit(1)).first() is not None
