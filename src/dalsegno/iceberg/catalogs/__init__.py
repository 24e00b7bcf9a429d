"""Catalogs: one module per type, and what dalsegno asks of all of them.

catalog     what is asked, and PyIceberg's answers
pointers    catalogs that hold a pointer to each table's metadata file; references, column_types: what they write
sql         a SQL database, shared with Iceberg's JDBC catalog; sql_tables: its tables
hive, glue  metastores; hive_client: the connection to one
rest        a server that writes the metadata itself
"""

from __future__ import annotations

from dalsegno.iceberg.catalogs.catalog import Catalog, ConcurrentChange, LoadedTable, Ref
from dalsegno.iceberg.catalogs.glue import GlueCatalog
from dalsegno.iceberg.catalogs.hive import HiveCatalog
from dalsegno.iceberg.catalogs.rest import RestCatalog
from dalsegno.iceberg.files import FileOptions
from dalsegno.settings import CatalogSettings, CatalogType

__all__ = ["Catalog", "ConcurrentChange", "LoadedTable", "Ref", "open_catalog", "spark_configuration"]


def open_catalog(settings: CatalogSettings, options: FileOptions | None = None) -> Catalog:
    """The catalog of some settings; it connects on first use."""
    match settings.type:
        case CatalogType.SQL:
            from dalsegno.iceberg.catalogs.sql import SqlCatalog  # noqa: PLC0415 - others do without SQLAlchemy

            return SqlCatalog(settings, options)
        case CatalogType.REST:
            return RestCatalog(settings, options)
        case CatalogType.HIVE:
            return HiveCatalog(settings, options)
        case CatalogType.GLUE:
            return GlueCatalog(settings, options)


def spark_configuration(settings: CatalogSettings) -> dict[str, str]:
    """What a Spark session needs to see the same catalog under the same name."""
    return open_catalog(settings).spark_configuration()
