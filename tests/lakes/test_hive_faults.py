"""What a Hive metastore does that others do not: locks, lost answers, its own names of types; and Hive 4."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

from dalsegno import Lake
from dalsegno.errors import UnknownName
from dalsegno.iceberg.catalogs import ConcurrentChange, hive
from dalsegno.model.tables import TableName
from dalsegno.settings import CatalogSettings, CatalogType
from tests.iceberg.support import fresh_name, numbered, settings_with, sqlite_settings
from tests.lakes.catalogs import SCHEMA, make_settings, rows_of, stored_below, table_with
from tests.lakes.hive import HiveMetastore, running_metastore
from tests.services.ports import LOOPBACK

pytestmark = pytest.mark.prove_lakes
BRANCH = {"type": "branch", "min-snapshots-to-keep": 1}
ODD_TYPES = [
    *("boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "timestamp_ns"),
    *("timestamptz_ns", "string", "uuid", "binary", "fixed[3]", "decimal(9, 2)", "unknown", "variant", "geometry"),
    {"type": "list", "element-id": 101, "element": "long", "element-required": False},
    {"type": "map", "key-id": 102, "key": "string", "value-id": 103, "value": "time", "value-required": False},
    {"type": "struct", "fields": [{"id": 104, "name": "a b, ü", "required": False, "type": "int"}]},
]


@dataclass
class ThriftProxy:
    """Breaks the connection instead of answering the next call of a name."""

    upstream: int
    port: int = 0
    losing: list[bytes] = field(default_factory=list)
    lost: list[bytes] = field(default_factory=list)

    def serve(self, client: socket.socket) -> None:
        server = socket.create_connection((LOOPBACK, self.upstream))
        is_lost = threading.Event()
        threading.Thread(target=self.answer, args=(server, client, is_lost), daemon=True).start()
        with suppress(OSError), client, server:
            while request := client.recv(1 << 20):
                for name in [name for name in self.losing if name in request]:
                    self.losing.remove(name)
                    self.lost.append(name)
                    is_lost.set()
                server.sendall(request)

    def answer(self, server: socket.socket, client: socket.socket, is_lost: threading.Event) -> None:
        """Pass on what the server sends; an answer that is to be lost breaks the connection when it was made."""
        with suppress(OSError):
            while sent := server.recv(1 << 20):
                if is_lost.is_set():
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(sent)


@contextmanager
def running_thrift_proxy(upstream: int) -> Iterator[ThriftProxy]:
    proxy = ThriftProxy(upstream)
    with socket.create_server((LOOPBACK, 0)) as listening:
        proxy.port = listening.getsockname()[1]

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=proxy.serve, args=(listening.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield proxy
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def proxy(hive_metastore: HiveMetastore) -> Iterator[ThriftProxy]:
    with running_thrift_proxy(hive_metastore.port) as running:
        yield running


@pytest.fixture
def lake(request: pytest.FixtureRequest, proxy: ThriftProxy, tmp_path: Path) -> Iterator[Lake]:
    settings = make_settings("hive", request, tmp_path, "lake")
    # Nobody listens at the first address.
    uri = f"thrift://{LOOPBACK}:1,thrift://{LOOPBACK}:{proxy.port}"
    catalog = replace(settings.catalogs["lake"], uri=uri)
    with Lake.open(replace(settings, catalogs={"lake": catalog}, change_namespace=fresh_name())) as opened:
        yield opened


def test_lost_answers_are_found_out(lake: Lake, proxy: ThriftProxy) -> None:
    name = table_with(lake, 1)
    proxy.losing = [b"alter_table_with_environment_context"]
    changes = lake.capture(name, consumer="c")
    assert proxy.losing == []
    assert changes.details["pinned"], changes.details["pin"]
    assert rows_of(lake, TableName.of(changes.table)) == numbered(1)
    # The lock is free: others can write.
    table_with(lake, 2)
    assert changes.commit().left_over == ()
    proxy.losing = [b"create_table"]
    with pytest.raises(Exception, match="could not register"):
        lake.capture(name, consumer="c")
    changes = lake.capture(name, consumer="c")
    assert rows_of(lake, TableName.of(changes.table)) == numbered(2)
    assert changes.commit().left_over == ()


def test_a_pin_never_undoes_a_commit(lake: Lake) -> None:
    name = lake.name(table_with(lake, 1))
    catalog = lake.catalog("lake")
    before = catalog.load(name)
    table_with(lake, 2)
    location = str(before.metadata["location"])
    files = stored_below(location)
    with pytest.raises(ConcurrentChange):
        catalog.set_ref(before, "x", {"snapshot-id": before.metadata["current-snapshot-id"], **BRANCH})
    assert rows_of(lake, name) == numbered(1, 2)
    assert stored_below(location) == files


def test_a_lock_that_stays_taken_leaves_a_capture_unpinned(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from hive_metastore import ttypes

    monkeypatch.setattr(hive, "_LOCK_SECONDS", 1.0)
    name = table_with(lake, 1)
    database, table = name.split(".")
    part = ttypes.LockComponent(ttypes.LockType.EXCLUSIVE, ttypes.LockLevel.TABLE, database, table)
    connections = lake.catalog("lake")._connections  # type: ignore[attr-defined]
    with connections as client:
        held = client.lock(ttypes.LockRequest([part], user="somebody", hostname="elsewhere"))
    changes = lake.capture(name, consumer="c")
    assert not changes.details["pinned"]
    assert "was not free" in str(changes.details["pin"])
    assert rows_of(lake, TableName.of(changes.table)) == numbered(1)
    with connections as client:
        client.unlock(ttypes.UnlockRequest(lockid=held.lockid))
    changes.commit()


def test_every_type_of_column_can_be_registered(lake: Lake) -> None:
    source = lake.name(table_with(lake, 1))
    catalog = lake.catalog("lake")
    table = catalog.load(source)
    fields = [{"id": n, "name": f"c {n}", "required": False, "type": t} for n, t in enumerate(ODD_TYPES, 1)]
    schema = {"type": "struct", "schema-id": 0, "fields": fields}
    metadata = {**table.metadata, "schemas": [schema], "format-version": 3}
    location = table.metadata_location.replace(".metadata.json", "-odd.metadata.json")
    table.files.write(location, json.dumps(metadata).encode())
    odd = TableName("lake", source.namespace, "odd")
    assert catalog.register(odd, location)
    assert catalog.load(odd).metadata["schemas"] == [schema]
    catalog.forget(odd)
    with pytest.raises(UnknownName):
        catalog.load(odd)


def test_hive_4(tmp_path: Path) -> None:
    """Its locks need tables that only its installer makes, so writers here compare instead, which it can."""
    with Lake.open(sqlite_settings(tmp_path, "made")) as made, running_metastore(tmp_path, "4.0.1") as metastore:
        made_name = table_with_made(made)
        lockless = CatalogSettings(
            "lake",
            type=CatalogType.HIVE,
            uri=metastore.uri,
            warehouse=str(tmp_path / "warehouse"),
            properties={"iceberg.engine.hive.lock-enabled": "false"},
        )
        (tmp_path / "four").mkdir()
        with Lake.open(settings_with(tmp_path / "four", lockless)) as lake:
            catalog = lake.catalog("lake")
            catalog.ensure_namespace(("db",))
            name = TableName("lake", ("db",), "t")
            assert catalog.register(name, made.load(made_name).metadata_location)
            assert not catalog.register(name, made.load(made_name).metadata_location)
            changes = lake.capture("db.t", consumer="c")
            assert changes.details["pinned"], changes.details["pin"]
            assert rows_of(lake, TableName.of(changes.table)) == numbered(1, 2)
            before = made.load(made_name)
            stale = replace(catalog.load(name), metadata_location=before.metadata_location)
            with pytest.raises(ConcurrentChange):
                catalog.set_ref(stale, "x", {"snapshot-id": before.metadata["current-snapshot-id"], **BRANCH})
            assert changes.commit().left_over == ()
            (report,) = lake.check_catalogs()
            assert report.works, report


def table_with_made(lake: Lake) -> TableName:
    catalog = lake.catalog("made").pyiceberg
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA)
    for id_ in (1, 2):
        table.append(pa.table({"id": [id_]}, schema=SCHEMA))
    return lake.name("db.t")
