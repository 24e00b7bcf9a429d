"""A lake on S3 with a SQL catalog, and tables that PyIceberg writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from dalsegno import Changes, Lake, Settings
from dalsegno.settings import CatalogSettings
from tests.lakes.object_stores import ObjectStore

SCHEMA = pa.schema([pa.field("id", pa.int32())])


@dataclass(frozen=True)
class S3Lake:
    """A lake in a bucket of its own."""

    lake: Lake
    #: As tests look at it, not as the lake does.
    store: ObjectStore
    bucket: str

    def table(self, name: str, appends: int) -> str:
        """A table with row 0 processed by consumer ``c``, and so many snapshots of one row each to capture."""
        catalog = self.lake.catalog("lake").pyiceberg
        made = catalog.create_table(f"db.{name}", SCHEMA)
        for number in range(appends + 1):
            made.append(pa.table({"id": [number]}, schema=SCHEMA))
            if number == 0:
                self.lake.set_checkpoint(f"db.{name}", consumer="c", to="latest")
        return f"db.{name}"

    def rows(self, changes: Changes) -> list[int]:
        found = self.lake.catalog("lake").pyiceberg.load_table(changes.identifier)
        return sorted(found.scan().to_arrow()["id"].to_pylist())

    def change_keys(self, name: str = "") -> list[str]:
        """Every object where change tables are, of one table or of all, markers included."""
        return self.store.keys(self.bucket, f"wh/icdc/db_{name}" if name else "wh/icdc")


def open_lake(
    folder: Path, through: ObjectStore, bucket: str, properties: Mapping[str, str] | None = None, **changed: Any
) -> Lake:
    """A lake whose files are reached through one address of the store; ``changed`` are other settings."""
    catalog = CatalogSettings(
        "lake",
        uri=f"sqlite:///{folder / 'catalog.db'}",
        warehouse=f"s3://{bucket}/wh",
        properties={**through.properties, **(properties or {})},
    )
    settings = Settings(root=folder, store=f"sqlite:///{folder / 'store.db'}", catalogs={"lake": catalog})
    return Lake.open(replace(settings, **changed))
