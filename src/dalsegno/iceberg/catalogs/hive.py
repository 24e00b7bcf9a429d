"""A Hive Metastore."""

from __future__ import annotations

from typing import ClassVar

from dalsegno.iceberg.catalogs.catalog import Catalog


class HiveCatalog(Catalog):
    extra: ClassVar[str] = "hive"
    #: PyIceberg has one connection.
    is_for_threads: ClassVar[bool] = False
    has_warehouse_folder: ClassVar[bool] = True
