"""What a catalog lets us do, tried for real on a table of our own that is gone afterwards."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import datetime

from dalsegno.clock import to_millis
from dalsegno.errors import DalsegnoError
from dalsegno.iceberg.catalogs import Catalog, ConcurrentChange
from dalsegno.model.tables import TableName
from dalsegno.settings import CatalogType


@dataclass(frozen=True)
class Ability:
    """One thing tried, and what came of it."""

    name: str
    works: bool
    says: str


@dataclass(frozen=True)
class CatalogReport:
    catalog: str
    type: CatalogType
    abilities: tuple[Ability, ...]

    @property
    def works(self) -> bool:
        return all(ability.works for ability in self.abilities)


def check(catalog: Catalog, namespace: str, now: datetime) -> CatalogReport:
    """Reach, list, read, register and pin; each is only tried where the one before worked."""
    check_ = _Check(catalog, tuple(namespace.split(".")), now)
    steps = (
        ("reach", check_.reach),
        ("list", check_.list),
        ("read", check_.read),
        ("register", check_.register),
        ("pin", check_.pin),
    )
    abilities: list[Ability] = []
    try:
        for name, step in steps:
            try:
                abilities.append(Ability(name, True, step()))
            except (DalsegnoError, ConcurrentChange, OSError) as error:
                # The hint of a catalog's error is to run this very check.
                said = error.message if isinstance(error, DalsegnoError) else str(error)
                abilities.append(Ability(name, False, said))
                break
    finally:
        try:
            check_.clean_up()
        except (DalsegnoError, OSError):
            # What failed before explains this, too.
            if all(ability.works for ability in abilities):
                raise
    done = {ability.name for ability in abilities}
    rest = (Ability(name, False, "not tried") for name, _ in steps if name not in done)
    return CatalogReport(catalog.settings.name, catalog.settings.type, (*abilities, *rest))


class _Check:
    def __init__(self, catalog: Catalog, namespace: tuple[str, ...], now: datetime) -> None:
        self.catalog, self.now = catalog, now
        word = f"dalsegno_check_{uuid.uuid4().hex[:12]}"
        self.probe = TableName(catalog.settings.name, namespace, word)
        self.found: list[TableName] = []
        self.location: str | None = None

    def reach(self) -> str:
        return f"it answers; namespaces: {len(self.catalog.namespaces())}"

    def list(self) -> str:
        for namespace in self.catalog.namespaces():
            self.found += self.catalog.tables(namespace)
        return f"tables: {len(self.found)}"

    def read(self) -> str:
        if not self.found:
            return "there is no table yet to try it on"
        table = self.catalog.load(self.found[0])
        return f"the metadata of {table.name} can be read"

    def register(self) -> str:
        namespace = ".".join(self.probe.namespace)
        folder = self.catalog.fixed_changes_folder(namespace)
        if folder is None:
            if not self.found:
                return "not tried: there is no table yet beside which change tables would be put"
            folder = self.catalog.changes_folder(namespace, self.catalog.load(self.found[0]))
        self.location = f"{folder}/{self.probe.name}"
        metadata_location = f"{self.location}/metadata/{self.probe.name}.metadata.json"
        files = self.catalog.files_at(self.location)
        files.write(metadata_location, json.dumps(_metadata(self.location, to_millis(self.now))).encode())
        self.catalog.ensure_namespace(self.probe.namespace)
        self.catalog.register(self.probe, metadata_location)
        return f"change tables can be registered in {namespace}"

    def pin(self) -> str:
        if not self.catalog.settings.pin:
            return "not wanted: pin = false, so captures warn that history may expire under them"
        if self.location is None:
            return "not tried: there is no table yet to try it on"
        ref = {"snapshot-id": _SNAPSHOT_ID, "type": "branch", "min-snapshots-to-keep": 1}
        self.catalog.set_ref(self.catalog.load(self.probe), "dalsegno_check", ref)
        refs = self.catalog.load(self.probe).metadata["refs"]
        if "dalsegno_check" not in refs:
            raise DalsegnoError("the branch was accepted but is not there")
        return "branches can be written; a source that refuses is captured unpinned, and the capture says so"

    def clean_up(self) -> None:
        if self.location is None:
            return
        self.catalog.forget(self.probe)
        files = self.catalog.files_at(self.location)
        for location in files.list(self.location):
            files.delete(location)
        files.remove_empty_folder(self.location)


_SNAPSHOT_ID = 1


def _metadata(location: str, now_ms: int) -> dict[str, object]:
    """The smallest table with a snapshot, which a branch needs; it is never read."""
    return {
        "format-version": 2,
        "table-uuid": str(uuid.uuid4()),
        "location": location,
        "last-sequence-number": 1,
        "last-updated-ms": now_ms,
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
            }
        ],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"gc.enabled": "false"},
        "current-snapshot-id": _SNAPSHOT_ID,
        "refs": {"main": {"snapshot-id": _SNAPSHOT_ID, "type": "branch"}},
        "snapshots": [
            {
                "snapshot-id": _SNAPSHOT_ID,
                "sequence-number": 1,
                "timestamp-ms": now_ms,
                "manifest-list": f"{location}/metadata/none.avro",
                "summary": {"operation": "append"},
                "schema-id": 0,
            }
        ],
        "snapshot-log": [{"snapshot-id": _SNAPSHOT_ID, "timestamp-ms": now_ms}],
        "metadata-log": [],
        "statistics": [],
        "partition-statistics": [],
    }
