"""What a catalog and its store let us do, tried for real on a table of our own that is gone afterwards."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from dalsegno.clock import to_millis
from dalsegno.errors import DalsegnoError, StorageRefused
from dalsegno.iceberg.catalogs import Catalog, ConcurrentChange
from dalsegno.iceberg.files import Files
from dalsegno.model.tables import TableName
from dalsegno.settings import CatalogType
from dalsegno.storage_problems import refused


@dataclass(frozen=True)
class Ability:
    """One thing, whether it works, and what came of trying it."""

    name: str
    #: None: it was not tried.
    works: bool | None
    says: str


@dataclass(frozen=True)
class CatalogReport:
    catalog: str
    type: CatalogType
    abilities: tuple[Ability, ...]

    @property
    def works(self) -> bool:
        """Whether nothing that was tried failed."""
        return all(ability.works is not False for ability in self.abilities)


class _NotTried(Exception):
    """The reason why something cannot be tried here."""


def check(catalog: Catalog, namespace: str, now: datetime) -> CatalogReport:
    """Try all that a capture needs. Nothing is tried behind what does not work, but to remove what was made."""
    check_ = _Check(catalog, tuple(namespace.split(".")), now)
    steps = (
        ("reach", check_.reach),
        ("list", check_.list),
        ("read", check_.read),
        ("write", check_.write),
        ("register", check_.register),
        ("create once", check_.create_once),
        ("pin", check_.pin),
    )
    abilities: list[Ability] = []
    failed: str | None = None
    for name, step in steps:
        if failed is None:
            abilities.append(_tried(catalog, name, step))
            failed = None if abilities[-1].works is not False else name
        else:
            abilities.append(Ability(name, None, f"{failed!r} does not work"))
    abilities.append(_tried(catalog, "delete", check_.delete))
    return CatalogReport(catalog.settings.name, catalog.settings.type, tuple(abilities))


def _tried(catalog: Catalog, name: str, step: Callable[[], str]) -> Ability:
    try:
        return Ability(name, True, step())
    except _NotTried as reason:
        return Ability(name, None, str(reason))
    except StorageRefused as error:
        return Ability(name, False, str(error))
    except DalsegnoError as error:
        # The hint of a catalog's error is to run this very check.
        return Ability(name, False, error.message)
    except (ConcurrentChange, OSError) as error:
        return Ability(name, False, str(refused(error, catalog.settings.name, name) or error))


class _Check:
    def __init__(self, catalog: Catalog, namespace: tuple[str, ...], now: datetime) -> None:
        self.catalog, self.now = catalog, now
        word = f"dalsegno_check_{uuid.uuid4().hex[:12]}"
        self.probe = TableName(catalog.settings.name, namespace, word)
        self.found: list[TableName] = []
        self.location: str | None = None
        self.had_namespace = True
        self.is_registered = False

    def reach(self) -> str:
        return f"it answers; namespaces: {len(self.catalog.namespaces())}"

    def list(self) -> str:
        namespaces = self.catalog.namespaces()
        self.had_namespace = self.probe.namespace in [tuple(each) for each in namespaces]
        for namespace in namespaces:
            self.found += self.catalog.tables(namespace)
        return f"tables: {len(self.found)}"

    def read(self) -> str:
        if not self.found:
            raise _NotTried("the catalog has no table")
        table = self.catalog.load(self.found[0])
        return f"the metadata of {table.name} can be read"

    def write(self) -> str:
        """Write the metadata of a table that nobody knows, and read it back."""
        namespace = ".".join(self.probe.namespace)
        folder = self.catalog.fixed_changes_folder(namespace)
        if folder is None:
            if not self.found:
                raise _NotTried("there is no table yet beside which change tables would be put")
            folder = self.catalog.changes_folder(namespace, self.catalog.load(self.found[0]))
        self.location = f"{folder}/{self.probe.name}"
        content = json.dumps(_metadata(self.location, to_millis(self.now))).encode()
        self._files.write(self._metadata_location, content)
        if self._files.read(self._metadata_location) != content:
            raise DalsegnoError("what was written is not what is read back")
        return f"files can be written below {folder}, and read back"

    def register(self) -> str:
        self._require_files()
        self.catalog.ensure_namespace(self.probe.namespace)
        self.is_registered = True
        if not self.catalog.register(self.probe, self._metadata_location):
            raise DalsegnoError("the catalog says that there is a table of a name that nobody used before")
        return f"change tables can be registered in {'.'.join(self.probe.namespace)}"

    def create_once(self) -> str:
        self._require_files()
        if self.catalog.register(self.probe, self._metadata_location):
            raise DalsegnoError("two tables of the same name can be registered, so two captures could mix")
        return "a second table of the same name is refused"

    def pin(self) -> str:
        if not self.catalog.settings.pin:
            raise _NotTried("pin = false, so captures warn that history may expire under them")
        self._require_files()
        ref = {"snapshot-id": _SNAPSHOT_ID, "type": "branch", "min-snapshots-to-keep": 1}
        self.catalog.set_ref(self.catalog.load(self.probe), "dalsegno_check", ref)
        refs = self.catalog.load(self.probe).metadata["refs"]
        if "dalsegno_check" not in refs:
            raise DalsegnoError("the branch was accepted but is not there")
        return "branches can be written; a source that refuses is captured unpinned, and the capture says so"

    def delete(self) -> str:
        """Remove what was made, also where something went wrong on the way."""
        self._require_files()
        files = self._files
        if self.is_registered:
            self.catalog.forget(self.probe)
            if not self.had_namespace:
                # Somebody may be using it by now.
                with suppress(DalsegnoError):
                    self.catalog.drop_namespace(self.probe.namespace)
        found = files.list(str(self.location))
        files.delete(*found)
        if left := files.list(str(self.location)):
            raise DalsegnoError(f"files are left: {', '.join(left)}")
        files.remove_empty_folder(str(self.location))
        return f"the table is dropped, its files are deleted: {len(found)}"

    def _require_files(self) -> None:
        if self.location is None:
            raise _NotTried("nothing was written")

    @property
    def _files(self) -> Files:
        return self.catalog.files_of(self.probe, str(self.location))

    @property
    def _metadata_location(self) -> str:
        return f"{self.location}/metadata/{self.probe.name}.metadata.json"


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
