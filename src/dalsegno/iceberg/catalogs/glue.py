"""The AWS Glue Data Catalog."""

from __future__ import annotations

from typing import ClassVar

from dalsegno.iceberg.catalogs.catalog import Catalog


class GlueCatalog(Catalog):
    extra: ClassVar[str] = "glue"
